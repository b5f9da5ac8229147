"""SwapExtents: neighbouring extents of one log's own index, copied into one object, are referred to
there.

Nothing else about any log changes: positions, origins, forks and receipts speak of records, and
those are the same. What is to be swapped must be there exactly as it was copied, and be settled:
a promotion interleaves extents from its fork's point on, and none may straddle (AgileLog, 5.6).
"""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.index import Index
from anabranch.core.bolt.protocol.compaction import Copied, Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.compactors import CompactorId
from anabranch.core.bolt.state.positions import SUMS_FORMAT
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.scans import compactors
from anabranch.core.errors import BadRequest, BrokerFenced
from anabranch.core.records.objects import split_id
from anabranch.core.records.set_sum import UNKNOWN, combined
from anabranch.core.types import ObjectId


def swap(replica: Replica, command: SwapExtents) -> Swapped:
    """Swap all of them or none; asked again about the same object, answer as the first time.

    A broker's objects come in order, so that one that was refused, and may be gone by now, is
    never taken later.
    """
    broker = replica.brokers.get(command.broker)
    epoch, _ = split_id(command.object)
    if broker is None or broker.epoch != epoch:
        raise BrokerFenced(command.broker, epoch, broker.epoch if broker else 0)
    if broker.swapped is not None and command.object <= broker.swapped[0]:
        if command.object == broker.swapped[0]:
            return broker.swapped[1]
        raise BadRequest("a swap of extents", "the broker has had a later one decided")
    compactor = CompactorId(epoch) if epoch in replica.compactors else None
    if compactor is not None:
        compactors.alive(replica, compactor)
    log = replica.forest.logs.get(command.log)
    why = _obstacle(replica, command, log, unread=compactor is not None)
    if log is None or why:
        size = sum(joined.length for joined in command.joined)
        replica.references.created(command.object, 0, replica.at, size)
        outcome = Swapped(0, why)
    else:
        _swap(replica, log, command)
        outcome = Swapped(len(command.extents) - len(command.joined))
    broker.swapped = (command.object, outcome)
    return outcome


def copied(index: Index, extent: int) -> Copied:
    """An extent as whoever copies it must find it again."""
    assert 0 <= extent < len(index), "no such extent"
    return Copied(
        index.first[extent],
        index.count(extent),
        ObjectId(index.object[extent]),
        index.offset[extent],
        index.length[extent],
        index.sum[extent],
    )


def _obstacle(replica: Replica, command: SwapExtents, log: Log | None, *, unread: bool) -> str:
    """Why the log's extents can't be swapped; empty if they can. `unread`: no broker has read the
    originals, so that only their sums say what they were.
    """
    if log is None:
        return "the log is gone"
    if not _fits(command):
        return "the new extents aren't made of the old ones"
    if difference := _difference(log.index, command):
        return difference
    if unread and not _all_summed(log.index, command):
        return "nobody knows the sums of some extents, and only brokers copy such"
    if not may_move(replica, log, command.extents):
        return "another log may come to need the extents as they are"
    if not all(_is_whole(log.index, *part) for part in _parts(log.index, command)):
        return "records that the log inherited lie between"
    return ""


def _fits(command: SwapExtents) -> bool:
    """Every new extent has the length of those it is made of, and all of these are used."""
    since = 0
    for joined in command.joined:
        parts = command.extents[since : since + joined.extents]
        if not 0 < joined.extents == len(parts) or joined.length != sum(
            part.length for part in parts
        ):
            return False
        since += joined.extents
    return 0 < since == len(command.extents)


def _difference(index: Index, command: SwapExtents) -> str:
    """Why the log's extents aren't those that were copied; empty if they are."""
    if not _still_there(index, command):
        return "the extents are no longer as they were copied"
    if not _same_sums(index, command):
        return "what was read of the extents isn't what was committed"
    return ""


def _still_there(index: Index, command: SwapExtents) -> bool:
    since = index.at_or_before(command.extents[0].first)
    if since < 0 or since + len(command.extents) > len(index):
        return False
    return all(
        replace(copied(index, since + turn), sum=extent.sum) == extent
        for turn, extent in enumerate(command.extents)
    )


def _same_sums(index: Index, command: SwapExtents) -> bool:
    """Of each extent whose set sum both know: the copy would make for good what was damaged."""
    since = index.at_or_before(command.extents[0].first)
    return all(
        UNKNOWN in (index.sum[since + turn], extent.sum) or index.sum[since + turn] == extent.sum
        for turn, extent in enumerate(command.extents)
    )


def _all_summed(index: Index, command: SwapExtents) -> bool:
    since = index.at_or_before(command.extents[0].first)
    return all(
        UNKNOWN not in (index.sum[since + turn], extent.sum)
        for turn, extent in enumerate(command.extents)
    )


def may_move(replica: Replica, log: Log, extents: list[Copied]) -> bool:
    """Settled, so that no promotion comes between; and known by their bytes to no other log."""
    assert extents, "nothing is to be moved"
    last, shared = extents[-1], replica.references.shared
    settled = last.first + last.count <= replica.forest.settled(log)[0]
    return settled and not any(each.object in shared for each in extents)


def _parts(index: Index, command: SwapExtents) -> Iterator[tuple[int, int, Joined]]:
    """From which extent up to which one new extent takes the place of."""
    since = index.at_or_before(command.extents[0].first)
    for joined in command.joined:
        yield since, since + joined.extents, joined
        since += joined.extents


def _is_whole(index: Index, since: int, end: int, _: Joined) -> bool:
    assert since < end, "a part has an extent at least"
    return index.inherited_before(since) == index.inherited_before(end - 1)


def _swap(replica: Replica, log: Log, command: SwapExtents) -> None:
    """The new extent has the earliest of the old ones' times: whoever asks for what there was at a
    time gets all of it, and at most what came within the span that may be joined.
    """
    index, rows = log.index, Index()
    parts = list(_parts(index, command))
    since, end = parts[0][0], parts[-1][1]
    rows.forgotten = index.before(since)
    for first, after, joined in parts:
        count = index.upto[after - 1] - index.before(first)
        place = command.object, joined.offset, joined.length
        copies = command.extents[first - since : after - since]
        total = _sum(index, first, copies) if replica.format >= SUMS_FORMAT else UNKNOWN
        rows.append(index.first[first], count, *place, index.at[first], total)
    assert len(rows) == len(command.joined), "each new extent takes the place of some"
    replaced, lengths = index.object[since:end], index.length[since:end]
    index.replace(since, end, rows)
    replica.references.created(command.object, len(rows), replica.at)
    replica.references.dropped(replaced, replica.at, lengths)


def _sum(index: Index, first: int, extents: list[Copied]) -> int:
    """Of the extent that takes their place: what was committed before sums were kept gets the one
    that was read of it.
    """
    assert extents, "a part has an extent at least"
    sums = [index.sum[first + turn] or extent.sum for turn, extent in enumerate(extents)]
    return combined(sums) if UNKNOWN not in sums else UNKNOWN
