"""What a shard does for one that has failed as a whole: it tells its subscribers that there is
nothing but no-ops (Belfast, 4.8).
"""

from anabranch.core.belfast.ledger.ledger import Ledger, Member, Standing
from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.protocol.messages import Failed
from anabranch.core.errors import ShardAway
from anabranch.core.types import Position


def server_of(ledger: Ledger, shard: Member) -> Member:
    """Whose primary serves this shard's subscribers."""
    if shard.standing is Standing.FAILED:
        return ledger.members.get(shard.stand_in, shard)
    return shard


def stands_in(ledger: Ledger, shard: ShardId, me: ShardId) -> bool:
    member = ledger.members[shard]
    return member.standing is Standing.FAILED and member.stand_in == me


def failure_of(shard: Member) -> Failed:
    """What those who were connected to it alone haven't heard."""
    assert shard.void_view > 0
    return Failed(
        view=shard.void_view, since=shard.void_from, shards=(shard.name,), upto=shard.void_upto
    )


def failures_since(ledger: Ledger, view: int) -> list[Failed]:
    """Of all views after this one, in their order. What failed in one view is told of at once: till
    then the others' voids would be taken for good.
    """
    found: dict[int, Failed] = {}
    for member in ledger.members.values():
        for void in member.voids:
            if void.view > view:
                known = found[void.view].shards if void.view in found else ()
                found[void.view] = Failed(
                    view=void.view, since=void.start, shards=(*known, member.name), upto=void.end
                )
    return [found[each] for each in sorted(found)]


def check_start(shard: Member, start: Position) -> None:
    """Its records are with itself: only what follows them can be had elsewhere."""
    if start < shard.void_from:
        reason = f"it has failed; what it holds below {shard.void_from} comes when it is back"
        raise ShardAway(shard.name, reason)
