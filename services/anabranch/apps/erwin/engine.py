"""Erwin's logs as `anabranch up` embeds them: each sequencer, each replica of a shard and the
controller a machine.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from anabranch.apps.embedded.engine import LogContext, Node
from anabranch.apps.embedded.folders import LogFolder
from anabranch.apps.embedded.losses import JournalRules
from anabranch.apps.erwin.black_boxes import open_journal
from anabranch.apps.erwin.machines import recover_controller, recover_sequencer, recover_shard
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.bolt.state.answers import embedded_sequencers
from anabranch.core.erwin.controller.config import ControllerConfig, ShardNodes
from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.protocol.clients import ERWIN
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.limits import MIB
from anabranch.core.sequencing.protocol.clients import SEQUENCING
from anabranch.core.storage.black_box_address import BlackBoxAddress
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.ports import RecordJournal
from anabranch.shell.server.engines import erwin_shard_service, sequencing_service

CACHE_BYTES = 16 * MIB
"""Of one replica's newest records."""
_NOTE = ".black-box"
"""Ends the name of a shard's note: a name with a dot isn't that of a node's journal."""


def _needed(group: str, members: int) -> int:
    """Every member of a view holds all appends, and every replica of a shard's epoch all records:
    one of them fills the others. Only the controller knows the configuration.
    """
    assert members > 0
    return members if group == "controller" else 1


def _may_cut(group: str) -> bool:
    """Positions are final at all nodes once they are stable: none may fall back behind another."""
    assert group
    return False


ERWIN_JOURNALS = JournalRules(_needed, _may_cut, first="controller-0")


@dataclass(frozen=True, slots=True)
class LogNodes:
    """The names of one log's nodes."""

    sequencers: tuple[str, ...]
    shards: tuple[ShardNodes, ...]
    controllers: tuple[str, ...]

    @staticmethod
    def of(folder: LogFolder, settings: EngineSettings) -> "LogNodes":
        names = (f"shard-{number}" for number in range(settings.shards))
        replicas = range(settings.replicas)
        return LogNodes(
            sequencers=embedded_sequencers(folder.id, settings),
            shards=tuple(
                ShardNodes(name=name, nodes=tuple(f"/{folder.id}/{name}-{r}" for r in replicas))
                for name in names
            ),
            controllers=(f"/{folder.id}/controller-0",),
        )


@dataclass(frozen=True, slots=True)
class EmbeddedErwin:
    name: str = "erwin"
    protocols: tuple[ClientProtocol, ...] = (SEQUENCING, ERWIN)
    copies: bool = True
    asks_its_log: bool = False
    journals: JournalRules = ERWIN_JOURNALS

    def addresses(
        self, folder: LogFolder, settings: EngineSettings
    ) -> Iterator[tuple[ClientProtocol, str]]:
        names = LogNodes.of(folder, settings)
        for node in names.sequencers:
            yield SEQUENCING, node
        for shard in names.shards:
            for node in shard.nodes:
                yield ERWIN, node

    def nodes(self, context: LogContext) -> Iterator[Node]:
        names = LogNodes.of(context.folder, context.settings)
        # A shard whose black box can't be used keeps the log from being served: clients are told
        # why, and not that sequencers wait for it.
        yield from _shards(context, names)
        yield from _sequencers(context, names)
        yield _controller(context, names)


def _sequencers(context: LogContext, names: LogNodes) -> Iterator[Node]:
    limits, log = context.around.limits, context.around.log
    for node in names.sequencers:
        config = SequencerConfig(
            node=node,
            controllers=names.controllers,
            mode=Mode(context.settings.mode),
            fsync=_fsync(context),
        )
        recover = partial(recover_sequencer, Sequencer(config, limits), log=log)
        service = partial(context.service, sequencing_service, node)
        yield Node(node, recover, service, drains=not config.fsync)


def _shards(context: LogContext, names: LogNodes) -> Iterator[Node]:
    limits, log = context.around.limits, context.around.log
    for number, shard in enumerate(names.shards):
        for node in shard.nodes:
            config = ErwinShardConfig(
                shard=shard.name,
                node=node,
                replicas=shard.nodes,
                controllers=names.controllers,
                cache_bytes=CACHE_BYTES,
                far=bool(context.settings.black_box),
            )
            recover = partial(recover_shard, ErwinShard(config, limits), log=log)
            service = partial(context.service, erwin_shard_service, node)
            yield Node(node, recover, service, _journal(context, shard.name, number))


def _journal(context: LogContext, shard: str, number: int) -> Callable[[], RecordJournal] | None:
    """What opens it; None for a journal in the log's folder."""
    if not context.settings.black_box:
        return None
    around, folder = context.around, context.folder
    return partial(
        open_journal,
        BlackBoxAddress.of_log(context.settings.black_box).of_shard(number),
        f"{around.cluster} {folder.name} {shard}",
        around.folders.note(folder, shard + _NOTE) if around.folders is not None else None,
        around.kafka_file,
        asyncio.get_running_loop(),
    )


def _controller(context: LogContext, names: LogNodes) -> Node:
    (node,) = names.controllers
    fsync = _fsync(context)
    config = ControllerConfig(
        node=node,
        sequencers=names.sequencers,
        shards=names.shards,
        mode=Mode(context.settings.mode),
        fsync=fsync,
        # The machines of one process fail together: `memory` says that this may lose records.
        accept_loss=not fsync,
        reports=True,
    )
    machine = Controller(config, context.around.limits)
    return Node(node, partial(recover_controller, machine, log=context.around.log), None)


def _fsync(context: LogContext) -> bool:
    return context.settings.durability == "fsync"
