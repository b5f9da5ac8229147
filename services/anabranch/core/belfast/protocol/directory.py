"""What every node tells a client of the log: who serves which shard, and where the log stands."""

from anabranch.core.belfast.ledger.ledger import Ledger, Member
from anabranch.core.belfast.protocol.messages import Directory, Shard


def directory(ledger: Ledger, index: int, leader: str) -> Directory:
    """The ledger after this entry. The leader is empty if the node knows of none."""
    shards = tuple(
        Shard(
            name=member.name,
            standing=member.standing,
            epoch=member.epoch,
            primary=member.primary,
            replicas=member.replicas,
            stand_in=stand_in_of(ledger, member),
        )
        for member in sorted(ledger.members.values(), key=lambda each: each.id)
    )
    return Directory(
        index=index,
        view=ledger.view,
        leader=leader,
        shards=shards,
        confirmed=ledger.confirmed,
        trimmed=ledger.trimmed,
    )


def stand_in_of(ledger: Ledger, member: Member) -> str:
    """The shard that serves this one's subscribers while it has failed; empty if none does."""
    known = ledger.members.get(member.stand_in)
    return known.name if known is not None else ""


class Directories:
    """The same Directory for everybody who asks, until one of its parts has changed."""

    def __init__(self) -> None:
        self._ledger: Ledger | None = None
        self._last: Directory | None = None

    def of(self, ledger: Ledger, index: int, leader: str) -> Directory:
        """What `directory` says. An entry changes the index, and a snapshot makes a new ledger."""
        last = self._last
        if (
            last is None
            or ledger is not self._ledger
            or (last.index, last.leader) != (index, leader)
        ):
            self._ledger = ledger
            self._last = last = directory(ledger, index, leader)
        return last
