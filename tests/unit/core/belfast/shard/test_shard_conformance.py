"""A shard's replicas hold what every user of `core.replication` must hold."""

from typing import Any

import pytest
from tests.unit.core.belfast.shard.shard_stage import batch
from tests.unit.core.replication.conformance import World
from tests.unit.core.replication.replica import PATIENCE, Arrangement, Learn, Machine, Node, Seal
from tests.unit.core.replication.replica import Sealed as SealedNode

from anabranch.core.belfast.ledger.decisions import Admit, Arrange, encode_entry
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.protocol import letters
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.limits import Limits
from anabranch.core.replication.letters import ReplicaLetter
from anabranch.core.types import MS

RULES = Rules(t_ord_us=10_000, silent_intervals=PATIENCE // (10 * MS))


class ShardNode(Node):
    """Arrangements are decisions of the sequencers, numbered like their epochs."""

    bare = False
    forgets = True

    def make(self) -> Machine:
        config = ShardConfig(
            shard=self.config.group,
            node=self.node,
            replicas=self.config.nodes,
            sequencers=("s",),
            cache_bytes=self.config.cache_bytes,
            copy_bytes_max=self.config.unacknowledged_bytes_max,
        )
        return Shard(config, Limits())

    def batch(self, name: str, count: int) -> bytes:
        return batch(*(f"{name}-{nth}" for nth in range(count)))

    def arranged(self, arrangement: Arrangement) -> list[Any]:
        epoch, primary = arrangement.epoch, arrangement.primary
        replicas, disks = arrangement.replicas, arrangement.disks
        decision = Arrange(shard=0, epoch=epoch, primary=primary, replicas=replicas, disks=disks)
        if epoch == 1:
            decision = Admit(self.config.group, replicas, 0, disks)
        return [letters.Leading(1, RULES), letters.Decided(1, epoch, [encode_entry((decision,))])]

    def incoming(self, letter: Any) -> Any:
        match letter:
            case Seal(epoch):
                return letters.Seal(shard=0, epoch=epoch)
            case Learn(epoch, primary):
                return letters.Learn(shard=0, epoch=epoch, primary=primary)
            case _:
                return letter

    def outgoing(self, letter: Any) -> Any:
        if isinstance(letter, letters.Sealed):
            return SealedNode(letter.epoch, letter.last_epoch, letter.last)
        return letter if isinstance(letter, ReplicaLetter) else None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_shard_conforms(count: int, seed: int) -> None:
    world = World(seed, count, user=ShardNode, views=False)
    world.run(2_000)
    world.heal()
    assert world.observed
