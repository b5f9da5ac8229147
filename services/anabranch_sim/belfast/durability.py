"""Is what a primary calls durable in the journals of a majority? By what its replicas have said."""

from anabranch.core.belfast.ledger.ledger import Member
from anabranch.core.replication.letters import Stored
from anabranch.core.types import LocalSequence


class Durability:
    """Of every shard. What was durable once stays so, whoever is a replica by then."""

    def __init__(self) -> None:
        self._stored: dict[str, LocalSequence] = {}
        """What each replica has said to have in its journal."""
        self._claimed: dict[str, LocalSequence] = {}
        """What was durable of each shard already."""
        self._lists: dict[tuple[str, int], tuple[str, ...]] = {}
        """Who the replicas of each epoch are: one that was decided needn't be known yet."""
        self._begun: dict[str, int] = {}
        """The epoch in which the primary of each shard spoke last."""

    def arranged(self, member: Member) -> None:
        self._lists.setdefault((member.name, member.epoch), member.replicas)

    def stored(self, node: str, letter: Stored) -> None:
        self._stored[node] = max(self._stored.get(node, 0), letter.upto)

    def claim(self, node: str, shard: str, epoch: int, durable: LocalSequence) -> bool:
        """May this primary say so? Its first word in an epoch may be of what the one before made
        durable.
        """
        replicas = self._lists.get((shard, epoch), ())
        if node not in replicas:
            return True
        epochs = (epoch,) if self._begun.get(shard) == epoch else (epoch, epoch - 1)
        self._begun[shard] = epoch
        if durable <= self._claimed.get(shard, 0):
            return True
        self._claimed[shard] = durable
        return any(self._held(node, shard, each, durable) for each in epochs)

    def _held(self, node: str, shard: str, epoch: int, durable: LocalSequence) -> bool:
        replicas = self._lists.get((shard, epoch), ())
        others = [self._stored.get(each, 0) >= durable for each in replicas if each != node]
        return node in replicas and (1 + sum(others)) * 2 > len(replicas)

    def cut_back(self, shard: str, to: LocalSequence) -> None:
        """It has failed or left: what lies beyond will be something else."""
        self._claimed[shard] = min(self._claimed.get(shard, 0), to)
