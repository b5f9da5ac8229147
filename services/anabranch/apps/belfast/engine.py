"""Belfast's logs as `anabranch up` embeds them: each sequencer and each replica a machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from anabranch.apps.belfast.machines import SEQUENCER, SHARD, recover_sequencer, recover_shard
from anabranch.apps.embedded.engine import LogContext, Node
from anabranch.apps.embedded.folders import LogFolder
from anabranch.apps.embedded.losses import JournalRules
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.bolt.state.answers import embedded_sequencers
from anabranch.core.limits import MIB
from anabranch.core.quorum import MAJORITY
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.shell.server.engines import belfast_service

CACHE_BYTES = 16 * MIB
"""Of one replica's newest records."""


def _needed(group: str, members: int) -> int:
    """A majority of the sequencers fills the others, and so does any replica of a shard."""
    return MAJORITY.size(members) if group == SEQUENCER else 1


def _may_cut(group: str) -> bool:
    """What a shard loses are its own records, whose positions are no-ops then."""
    return group != SEQUENCER


BELFAST_JOURNALS = JournalRules(_needed, _may_cut, first=f"{SEQUENCER}-0")


@dataclass(frozen=True, slots=True)
class EmbeddedBelfast:
    rules: Rules
    name: str = "belfast"
    protocols: tuple[ClientProtocol, ...] = (BELFAST,)
    copies: bool = False
    asks_its_log: bool = False
    journals: JournalRules = BELFAST_JOURNALS

    def addresses(
        self, folder: LogFolder, settings: EngineSettings
    ) -> Iterator[tuple[ClientProtocol, str]]:
        for node in embedded_sequencers(folder.id, settings):
            yield BELFAST, node
        for number in range(settings.shards):
            for node in _replicas(folder, settings, number):
                yield BELFAST, node

    def nodes(self, context: LogContext) -> Iterator[Node]:
        settings, around = context.settings, context.around
        members = embedded_sequencers(context.folder.id, settings)
        for node in members:
            member = Sequencer(node, members, self.rules, around.limits, fsync=context.durable)
            recover = partial(recover_sequencer, member, log=around.log)
            yield Node(node, recover, partial(context.service, belfast_service, node))
        for number in range(settings.shards):
            replicas = _replicas(context.folder, settings, number)
            for node in replicas:
                config = ShardConfig(
                    shard=_shard(number),
                    node=node,
                    replicas=replicas,
                    sequencers=members,
                    cache_bytes=CACHE_BYTES,
                    fsync=context.durable,
                )
                recover = partial(recover_shard, Shard(config, around.limits), log=around.log)
                yield Node(node, recover, partial(context.service, belfast_service, node))


def _replicas(folder: LogFolder, settings: EngineSettings, shard: int) -> tuple[str, ...]:
    return tuple(f"/{folder.id}/{_shard(shard)}-{r}" for r in range(settings.replicas))


def _shard(number: int) -> str:
    return f"{SHARD}-{number}"
