"""Does a majority have what a primary claims to be durable? Judged by what replicas have said."""

from anabranch.core.belfast.ledger.ledger import Member
from anabranch.core.replication.letters import Stored
from anabranch.core.types import LocalSequence


class DurabilityClaims:
    """The claims of all shards. What was durable once stays so, whoever the replicas are later."""

    def __init__(self) -> None:
        self._stored: dict[str, LocalSequence] = {}
        """The records that each replica has confirmed to have in its journal."""
        self._claimed: dict[str, LocalSequence] = {}
        """The records of each shard that were durable already."""
        self._lists: dict[tuple[str, int], tuple[str, ...]] = {}
        """The replicas of each epoch. Nodes may not know yet of an epoch that was decided."""
        self._begun: dict[str, int] = {}
        """The epoch in which each shard's primary wrote to its backups last."""

    def arranged(self, member: Member) -> None:
        self._lists.setdefault((member.name, member.epoch), member.replicas)

    def stored(self, node: str, letter: Stored) -> None:
        self._stored[node] = max(self._stored.get(node, 0), letter.upto)

    def claim(
        self, node: str, shard: str, epoch: int, durable: LocalSequence, *, whole: bool
    ) -> bool:
        """False if no majority has these records. A `whole` claim is of everything that the primary
        knows to be durable, as its backups are told. The first of an epoch, and claims before it,
        may be of what was durable in the epoch before.
        """
        replicas = self._lists.get((shard, epoch), ())
        if node not in replicas:
            return True
        epochs = (epoch,) if self._begun.get(shard) == epoch else (epoch, epoch - 1)
        if whole:
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
        """The shard has failed or left: later records take the place of those beyond."""
        self._claimed[shard] = min(self._claimed.get(shard, 0), to)
