"""A lazy front's sequencers as processes of their own, each with a candidate for the front's
controller beside it (docs/decisions/0067).
"""

import asyncio
from dataclasses import replace
from typing import Any, Final

from anabranch.apps.lazy.log_client import LogClient
from anabranch.apps.lazy.machines import CONTROLLER, recover_sequencer, shown_controller
from anabranch.apps.pods.log_node import Ends, LogRole, Resident
from anabranch.apps.pods.log_settings import Durability, SequencerSettings
from anabranch.apps.pods.pod import Pod
from anabranch.client.session.endpoint import endpoint
from anabranch.core.bolt.front import letters
from anabranch.core.bolt.front.config import (
    CommitBounds,
    FrontControllerConfig,
    FrontSequencerConfig,
)
from anabranch.core.bolt.front.controller import FrontController
from anabranch.core.bolt.front.questions import LOG
from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import KIB
from anabranch.core.sequencing.controller.names import address_of, controller_at, names_at
from anabranch.core.types import LogId
from anabranch.ports import RecordJournal
from anabranch.shell.peers.engines import front_node
from anabranch.shell.peers.shared_address import NodeNames, SharedAddress
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import sequencing_service

_NAMES: Final = NodeNames(
    address_of=address_of,
    names_at=names_at,
    sender_of=letters.sender_of,
    receiver_of=letters.receiver_of,
)
_BOUNDS = CommitBounds(batch_bytes=512 * KIB)
"""A batch, and one append by which it may exceed this, fit into one frame of a broker's client."""


def sequencer_role(settings: SequencerSettings) -> LogRole:
    """A sequencing replica and a candidate for the front's controller."""

    def recover(pod: Pod[Any], address: str, journal: RecordJournal) -> Resident:
        members = settings.members or (address,)
        config = FrontSequencerConfig(
            node=address,
            log=LogId(settings.log_id),
            controllers=tuple(map(controller_at, members)),
            fsync=settings.durability is Durability.FSYNC,
            bounds=_BOUNDS,
            hands_over=True,
        )
        sequencer = FrontSequencer(config, settings.limits)
        shown = recover_sequencer(sequencer, journal, pod.log)
        beside = FrontPart(pod, settings, address, members)
        return Resident(
            shown=replace(shown, obstacle=lambda: member_obstacle(sequencer)),
            ends=beside.ends,
            beside=beside,
            uncounted=sequencer.replica.uncounted,
        )

    return LogRole(peers=front_node, service=sequencing_service, recover=recover, names=_NAMES)


def member_obstacle(sequencer: FrontSequencer) -> str | None:
    """Why a sequencer with a process of its own isn't ready: whoever restarts processes one by one
    waits until each takes part again.
    """
    view = sequencer.view
    if sequencer.obstacle is not None:
        return sequencer.obstacle
    if view is None:
        return "the controller has yet to decide on the first view"
    if not view.has(sequencer.config.node, sequencer.replica.life):
        return f"it isn't a member of view {view.number}"
    if sequencer.replica.sealed or sequencer.replica.view != view:
        return f"view {view.number} has ended here, and the next one isn't started yet"
    return None


class FrontPart:
    """Beside the sequencer: the candidate for the controller, which keeps nothing, and the way of
    both to the log.
    """

    def __init__(
        self, pod: Pod[Any], settings: SequencerSettings, address: str, members: tuple[str, ...]
    ) -> None:
        config = FrontControllerConfig(
            node=controller_at(address),
            log=LogId(settings.log_id),
            sequencers=members,
            controllers=tuple(map(controller_at, members)),
            accept_loss=settings.accept_loss,
        )
        self._pod = pod
        self._settings = settings
        self._controller = FrontController(config, settings.limits)
        self._address = address
        self._host: Host | None = None
        self._log_client: LogClient | None = None
        failed = self._failed = asyncio.get_running_loop().create_future()
        self.ends: Ends = (failed,)
        pod.vitals.counters[CONTROLLER] = self._controller.counters
        shown = shown_controller(self._controller, pod.log)
        self._machine = shown.machine
        pod.vitals.gauges[CONTROLLER] = shown.gauges

    def start(self, network: SharedAddress) -> None:
        pod, node = self._pod, self._controller.config.node
        client = self._log_client = LogClient(
            endpoint(self._settings.service), self._address, network.post_to
        )
        network.open_door(LOG, client.receive)
        client.start()
        host = self._host = Host(
            self._settings.cluster, None, None, now=pod.clock.now, log=pod.log, network=network
        )
        host.failed.add_done_callback(self._host_failed)
        network.join(node, host)
        host.start({node: self._machine})

    async def stop(self) -> None:
        """What it leads goes to the next candidate at once."""
        host, client = self._host, self._log_client
        assert host is not None, "it was started"
        assert client is not None
        host.failed.remove_done_callback(self._host_failed)
        await host.drain()
        await host.stop()
        client.close()

    def _host_failed(self, failed: "asyncio.Future[str]") -> None:
        if not self._failed.done():
            self._failed.set_result(AnabranchError(reason=failed.result()))
