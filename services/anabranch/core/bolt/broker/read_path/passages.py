"""A passage of a log: the batches that hold some of its positions, and the runs that say which.

Batches leave as they came, byte for byte, but for the base offset, which says where they are in the
log that is read (architecture, 2).
"""

from bisect import bisect_right
from collections.abc import Sequence

from anabranch.core.bolt.broker.read_path.cache import Extent
from anabranch.core.bolt.protocol.queries import Slice
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import rebase
from anabranch.core.records.origins import Run
from anabranch.core.types import Position


class Passage:
    """What a read or a subscriber gets at once."""

    __slots__ = ("batches", "bytes", "next", "runs")

    def __init__(self, start: Position) -> None:
        self.runs: list[Run] = []
        self.batches: list[Buffer] = []
        self.bytes = 0
        self.next = start


class Damage:
    """Positions of a log that can't be read, from and without, and why."""

    __slots__ = ("after", "first", "object", "reason")

    def __init__(self, first: Position, after: Position, piece: Slice, reason: str) -> None:
        assert first < after, "a position at least is damaged"
        self.first = first
        self.after = after
        self.object = piece.object
        self.reason = reason


def damage(slices: Sequence[Slice], extents: Sequence[Extent], start: Position) -> Damage | None:
    """The first damage at or behind this position, together with what follows it at once."""
    assert start >= 0, "positions begin at 0"
    found: Damage | None = None
    for piece, extent in zip(slices, extents, strict=True):
        base, end = piece.first - piece.skip, piece.first + piece.count
        for low, high in extent.holes:
            first, after = max(base + low, piece.first, start), min(base + high, end)
            if first >= after:
                continue
            if found is None:
                found = Damage(first, after, piece, extent.reason)
            elif first <= found.after:
                found.after = max(found.after, after)
            else:
                return found
    return found


def passage(
    slices: Sequence[Slice],
    extents: Sequence[Extent],
    start: Position,
    end: Position,
    bytes_max: int,
) -> Passage:
    """Positions from `start` to `end` as far as the slices and the bytes go; at least one batch."""
    assert start <= end
    found = Passage(start)
    for piece, extent in zip(slices, extents, strict=True):
        stop = min(piece.first + piece.count, end)
        if stop <= found.next:
            continue
        assert piece.first <= found.next, "slices follow each other without a hole (B3)"
        if found.batches and found.bytes >= bytes_max:
            break
        _take(found, piece, extent, stop, bytes_max)
        if found.next < stop:
            break
    return found


def _take(found: Passage, piece: Slice, extent: Extent, stop: Position, bytes_max: int) -> None:
    """Add a run of this slice's batches, from `found.next` to `stop` if the bytes allow."""
    assert piece.first <= found.next < stop, "there is something to take"
    base = piece.first - piece.skip
    """Where the extent's first record is, or would be, in the log that is read."""
    upto, batches = extent.upto, extent.batches
    first = found.next
    turn = bisect_right(upto, first - base)
    before = upto[turn - 1] if turn else 0
    skip = first - base - before
    position, length = base + before, 0
    while position < stop and turn < len(batches):
        batch = batches[turn]
        size = len(batch)
        if found.bytes + size > bytes_max and found.batches:
            break
        found.batches.append(b"".join(rebase(batch, position)))
        found.bytes += size
        length += size
        position = base + upto[turn]
        turn += 1
    assert length or found.batches, "an extent holds the records that its slices name"
    if not length:
        return
    until = min(position, stop)
    origin = piece.origin_first + first - piece.first
    found.runs.append(Run(first, until - first, skip, piece.origin, origin, length))
    found.next = until
