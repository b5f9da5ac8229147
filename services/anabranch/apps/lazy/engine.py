"""Lazy fronts as `anabranch up` embeds them: each sequencer and the controller a machine, and a way
to the log that they are before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from anabranch.apps.embedded.engine import LogContext, Node
from anabranch.apps.embedded.folders import LogFolder
from anabranch.apps.embedded.losses import JournalRules
from anabranch.apps.lazy.machines import recover_controller, recover_sequencer
from anabranch.core.bolt.front.config import FrontControllerConfig, FrontSequencerConfig
from anabranch.core.bolt.front.controller import FrontController
from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.core.bolt.protocol.commands import FRONT, EngineSettings
from anabranch.core.bolt.state.answers import embedded_sequencers
from anabranch.core.sequencing.protocol.clients import SEQUENCING
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.shell.server.engines import sequencing_service


def _needed(group: str, members: int) -> int:
    """Every member of a view holds all appends: one of them fills the others. The controller keeps
    nothing.
    """
    assert members > 0
    return 0 if group == "controller" else 1


def _may_cut(group: str) -> bool:
    """What a sequencer has acknowledged and the log doesn't hold is nowhere else."""
    assert group
    return False


LAZY_JOURNALS = JournalRules(_needed, _may_cut, first="sequencer-0")


@dataclass(frozen=True, slots=True)
class EmbeddedFront:
    name: str = FRONT
    protocols: tuple[ClientProtocol, ...] = (SEQUENCING,)
    copies: bool = True
    asks_its_log: bool = True
    journals: JournalRules = LAZY_JOURNALS

    def addresses(
        self, folder: LogFolder, settings: EngineSettings
    ) -> Iterator[tuple[ClientProtocol, str]]:
        for node in embedded_sequencers(folder.id, settings):
            yield SEQUENCING, node

    def nodes(self, context: LogContext) -> Iterator[Node]:
        folder, around = context.folder, context.around
        sequencers = embedded_sequencers(folder.id, context.settings)
        controller = f"/{folder.id}/controller-0"
        fsync = context.settings.durability == "fsync"
        for node in sequencers:
            config = FrontSequencerConfig(
                node=node, log=folder.id, controllers=(controller,), fsync=fsync
            )
            machine = FrontSequencer(config, around.limits)
            recover = partial(recover_sequencer, machine, log=around.log)
            service = partial(context.service, sequencing_service, node)
            yield Node(node, recover, service, drains=not fsync)
        # The machines of one process fail together: `memory` says that this may lose records.
        accepts = not fsync or around.accept_loss
        config = FrontControllerConfig(
            node=controller, log=folder.id, sequencers=sequencers, accept_loss=accepts
        )
        front = FrontController(config, around.limits)
        yield Node(controller, partial(recover_controller, front, log=around.log), None)
