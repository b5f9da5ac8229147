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
