"""Which extents are worth copying into one object: many small neighbours of one log's own index.

A log of small appends is a storm of small reads to whoever scans it. What is copied is old enough
to have been read at the tail, settled, and many times smaller than an object. Each copy at least
doubles the largest of its parts, so that a record is copied a few times at most, however slowly
its log grows.
"""

from collections.abc import Iterator

import msgspec

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.index import Index
from anabranch.core.bolt.protocol.compaction import COPIED_MAX
from anabranch.core.bolt.protocol.letters import CopyExtents
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.swap import copied
from anabranch.core.limits import Limits
from anabranch.core.types import Milliseconds, ObjectId, Position

FULL_ROWS = COPIED_MAX // 2
"""An object of so many extents of a log is left alone, however small it is."""
SCANNED_MAX = 4_096
"""Extents that one search looks at."""


class Piece(msgspec.Struct, frozen=True):
    """Extents of a log that follow each other in one object too: one read fetches them."""

    since: int
    end: int
    bytes: int


class Finding(msgspec.Struct, frozen=True):
    """What is to be copied, if anything, and where the next search of this log may begin."""

    copy: CopyExtents | None
    since: Position
    scanned: int
    """Extents looked at; with `SCANNED_MAX` of them there may be more."""


def find(
    replica: Replica, log: Log, since: Position, before: Milliseconds, limits: Limits
) -> Finding:
    """The first neighbours worth copying among the extents from `since` on that were committed
    before a time.
    """
    index, shared = log.index, replica.references.shared
    begin = index.at_or_before(since - 1) + 1
    settled = replica.forest.settled(log)[0]
    search = _Search(limits)
    reached = begin
    for piece in _pieces(index, begin, settled, before):
        reached = piece.end
        if ObjectId(index.object[piece.since]) in shared or search.is_full(piece):
            search.close()
        else:
            search.take(piece)
        if search.found:
            break
    else:
        search.close(at_end=True)
    rest = search.run[0].since if search.run else reached
    at = index.first[rest] if rest < len(index) else replica.forest.tail(log)
    assert begin <= rest <= reached, "nothing is passed over"
    copy = _copy(log, search.found[0].since, search.found[-1].end, limits) if search.found else None
    return Finding(copy, at, reached - begin)


def _copy(log: Log, since: int, end: int, limits: Limits) -> CopyExtents:
    assert since < end, "an extent at least is copied"
    joined = [after - first for first, after in _joined(log.index, since, end, limits)]
    extents = [copied(log.index, extent) for extent in range(since, end)]
    assert sum(joined) == len(extents), "each extent is of one part"
    return CopyExtents(log.id, extents, joined)


class _Search:
    """Neighbouring small pieces gathered so far, until they are enough."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.run: list[Piece] = []
        self._bytes = 0
        self.found: list[Piece] = []

    def is_full(self, piece: Piece) -> bool:
        limit = min(self._limits.compact_extent_bytes_max, self._limits.object_bytes_max)
        return piece.bytes >= limit or piece.end - piece.since >= FULL_ROWS

    def take(self, piece: Piece) -> None:
        assert not self.found, "what was found is enough"
        assert not self.run or self.run[-1].end <= piece.since, "pieces come in order"
        run, limits = self.run, self._limits
        run.append(piece)
        self._bytes += piece.bytes
        while self._bytes > limits.object_bytes_max or piece.end - run[0].since > COPIED_MAX:
            self.found = self._worthwhile(run[:-1])
            if self.found:
                return
            self._bytes -= run.pop(0).bytes

    def close(self, *, at_end: bool = False) -> None:
        """Nothing can be added; `at_end`, not yet."""
        self.found = self._worthwhile(self.run)
        if not self.found and not at_end:
            self.run, self._bytes = [], 0

    def _worthwhile(self, run: list[Piece]) -> list[Piece]:
        """The last of these, without those that are larger than all others together: they wait
        until what follows has grown.
        """
        least = min(max(2, self._limits.compact_extents_min), COPIED_MAX)
        while len(run) >= least:
            total = sum(each.bytes for each in run)
            largest = max(range(len(run)), key=lambda turn: run[turn].bytes)
            assert total > 0, "an extent has a byte at least"
            if run[largest].bytes * 2 <= total:
                return run
            run = run[largest + 1 :]
        return []


def _pieces(index: Index, extent: int, settled: Position, before: Milliseconds) -> Iterator[Piece]:
    assert extent >= 0
    last = min(len(index), extent + SCANNED_MAX)
    while extent < last and index.end(extent) <= settled and index.at[extent] < before:
        since, size = extent, 0
        object, offset = index.object[extent], index.offset[extent]
        while (
            extent < len(index)
            and index.object[extent] == object
            and index.offset[extent] == offset + size
            and index.end(extent) <= settled
        ):
            size += index.length[extent]
            extent += 1
        assert since < extent, "a piece has an extent at least"
        yield Piece(since, extent, size)


def _joined(index: Index, since: int, end: int, limits: Limits) -> Iterator[tuple[int, int]]:
    """Which of them become one: without a record of the parent between, committed in one interval,
    and small together.
    """
    assert since < end, "an extent at least is joined"
    span = max(1, limits.compact_span_ms)
    first, size = since, 0
    for extent in range(since, end):
        length = index.length[extent]
        fits = (
            index.inherited_before(extent) == index.inherited_before(first)
            and index.at[extent] // span == index.at[first] // span
            and size + length <= limits.compact_extent_bytes_max
        )
        if not fits:
            yield first, extent
            first, size = extent, 0
        size += length
    yield first, end
