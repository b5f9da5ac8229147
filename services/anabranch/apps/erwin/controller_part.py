"""The candidate for an Erwin log's controller in the process of a sequencer: elected and journaled
through etcd; or the only one, with a journal of its own.
"""

import asyncio
import os
from typing import Any, Protocol

from anabranch.apps.erwin.machines import CONTROLLER, recover_controller, shown_controller
from anabranch.apps.pods.log_node import Ends, noted_journal
from anabranch.apps.pods.log_settings import Configurations, Durability, SequencerSettings
from anabranch.apps.pods.pod import Pod
from anabranch.core.errors import AnabranchError
from anabranch.core.erwin.controller.config import ControllerConfig
from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.sequencing.controller.names import controller_at
from anabranch.ports import Coordinator, Journal
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.peers.shared_address import SharedAddress
from anabranch.shell.runtime.driver import Host

JOURNAL = "controller"
"""Its journal's folder in the process's data directory, if it has one of its own."""
_REACHED = ".controller"
"""Added to the name of the file that notes how far the sequencer's journal went."""
_LEASE_S = 2
"""A controller whose process has died is followed by another after this time."""
_END_S = 2.0
"""What is being written when the process ends may take so long."""


class _Group(Protocol):
    """`etcd_group.GroupMember`, whose packages not every installation has."""

    damaged: "asyncio.Future[AnabranchError]"

    @property
    def journal(self) -> Journal: ...

    @property
    def coordinator(self) -> Coordinator: ...

    def begin(self, host: Host, node: str) -> None: ...

    async def close(self) -> None: ...


class ControllerPart:
    """Beside the sequencer's machine, on a host of its own: each has its journal."""

    def __init__(
        self,
        pod: Pod[Any],
        settings: SequencerSettings,
        controller: Controller,
    ) -> None:
        self._pod = pod
        self._settings = settings
        self._controller = controller
        failed = self._failed = asyncio.get_running_loop().create_future()
        self.ends: Ends = (failed,)
        self._group: _Group | None = None
        self._journal: Journal
        if controller.config.alone:
            self._journal = self._recovered()
        else:
            self._group = _join(pod, settings, controller.config.node)
            self._journal = self._group.journal
            self.ends = (failed, self._group.damaged)
        shown = shown_controller(controller, pod.log)
        self._machine = shown.machine
        pod.vitals.counters[CONTROLLER] = controller.counters
        pod.vitals.gauges[CONTROLLER] = shown.gauges
        pod.vitals.obstacles.append(lambda: controller.unfit or None)
        self._host: Host | None = None

    @classmethod
    def of(
        cls,
        pod: Pod[Any],
        settings: SequencerSettings,
        address: str,
        members: tuple[str, ...],
    ) -> "ControllerPart | None":
        """None where another sequencer has the only one."""
        alone = settings.configurations is Configurations.JOURNAL
        if alone and address != members[0]:
            return None
        config = ControllerConfig(
            node=controller_at(address),
            sequencers=members,
            shards=(),
            mode=settings.mode,
            fsync=settings.durability is Durability.FSYNC,
            accept_loss=settings.accept_loss,
            reports=True,
            alone=alone,
        )
        return cls(pod, settings, Controller(config, settings.limits))

    def start(self, network: SharedAddress) -> None:
        pod, node, group = self._pod, self._controller.config.node, self._group
        host = self._host = Host(
            self._settings.cluster,
            self._journal,
            None,
            now=pod.clock.now,
            log=pod.log,
            network=network,
            coordinator=group.coordinator if group is not None else None,
        )
        if group is not None:
            group.begin(host, node)
        host.failed.add_done_callback(self._host_failed)
        network.join(node, host)
        host.start({node: self._machine})

    async def stop(self) -> None:
        """What it leads goes to the next candidate at once."""
        host = self._host
        assert host is not None, "it was started"
        host.failed.remove_done_callback(self._host_failed)
        try:
            async with asyncio.timeout(_END_S):
                await host.drain()
        except TimeoutError:
            self._pod.log.warning("a controller's last configuration wasn't journaled in time")
        if self._group is not None:
            # Before the host, which waits for an append that may wait for an etcd that is gone.
            await self._group.close()
        await host.stop()

    def _host_failed(self, failed: "asyncio.Future[str]") -> None:
        if not self._failed.done():
            self._failed.set_result(AnabranchError(reason=failed.result()))

    def _recovered(self) -> Journal:
        pod, settings = self._pod, self._settings
        disk = RealDisk(os.path.join(settings.data, JOURNAL))
        note = f"{settings.reached_file}{_REACHED}" if settings.reached_file else ""
        journal = noted_journal(disk, settings.cluster, note)
        pod.stack.callback(journal.close)
        recover_controller(self._controller, journal, pod.log)
        return journal


def _join(pod: Pod[Any], settings: SequencerSettings, node: str) -> _Group:
    from anabranch.apps.pods.etcd_group import GroupMember
    from anabranch.shell.etcd.api.client import EtcdClient
    from anabranch.shell.etcd.group.blobs import EtcdBlobs
    from anabranch.shell.etcd.group.election import Candidate
    from anabranch.shell.etcd.group.journal import EtcdJournal
    from anabranch.shell.etcd.group.layout import controllers_of

    client = EtcdClient(settings.etcd)
    pod.stack.callback(client.close)
    cluster = controllers_of(settings.cluster)
    journal = EtcdJournal(client, cluster, EtcdBlobs(client, cluster), pod.log)
    return GroupMember(client, journal, Candidate(node, _LEASE_S), pod.clock, pod.log)
