"""The set sum of a range of a log, from what the indexes of the log and its ancestors keep.

What a fork inherits of one ancestor comes in order and without a gap. So a range of the fork is one
stretch of positions in each log of its lineage, of which all own extents count, wherever records of
its descendants lie between: two look-ups a level give the extents, and nothing is walked.

A sum is of whole extents. An extent that the range cuts isn't summed, nor one whose sum nobody
knows; the answer names all such ranges. Where compaction has joined what lay on both sides of a
position, a range that begins or ends there cuts the joined extent.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.logs.index import Index
from anabranch.core.bolt.logs.lineage import descend
from anabranch.core.bolt.protocol.set_sums import SetSum
from anabranch.core.errors import BadRequest, OutOfRange
from anabranch.core.records.set_sum import column_sum, combined
from anabranch.core.types import Position

EXTENTS_MAX = 100_000
"""Extents whose sums make up one answer."""
RANGES_MAX = 1_000
"""Ranges without a sum that one answer names."""

Range = tuple[Position, Position]

_UNKNOWN_BYTES = 4
_UNKNOWNS = re.compile(rb"\0{%d,}" % _UNKNOWN_BYTES)


def range_sum(forest: Forest, log: Log, start: Position | None, end: Position | None) -> SetSum:
    """Of settled records from `start` up to `end`, or to where the answer is full."""
    settled, _ = forest.settled(log)
    start = log.start if start is None else start
    end = settled if end is None else end
    for asked in (start, end):
        if not log.start <= asked <= settled:
            raise OutOfRange(log.name, asked, log.start, settled)
    if end < start:
        raise BadRequest("a set sum", f"its range ends at {end}, before it begins at {start}")
    end = _within_budget(log, start, end)
    while True:
        looked = _Look(log, start, end)
        if looked.reach == end:
            return SetSum(start, end, looked.total, looked.summed, looked.unsummed, settled)
        assert start < looked.reach < end, "an answer names a range at least"
        end = looked.reach


def stretches(log: Log, start: Position, end: Position) -> Iterator[tuple[Log, Position, Position]]:
    """The log and those of its ancestors that have records in this range, each with the positions
    of its own that the range passes on to it.
    """
    level: Log | None = log
    while start < end:
        assert level is not None, "every position below the tail has an entry (B3)"
        yield level, start, end
        start -= level.index.count_before(start)
        end -= level.index.count_before(end)
        level = level.parent


class _Look:
    """One pass over a lineage, from the oldest ancestor down to the log."""

    def __init__(self, log: Log, start: Position, end: Position) -> None:
        assert start <= end
        self.summed = 0
        self.unsummed: list[Range] = []
        self.reach = end
        """Up to where all ranges without a sum are named."""
        totals: list[int] = []
        for level, first, last in reversed([*stretches(log, start, end)]):
            index = level.index
            lifted = [each for cut in self.unsummed for each in _lifted(index, *cut)]
            totals.append(self._own(index, first, last, lifted))
            if self.reach < end:
                self.reach = index.lifted(self.reach - 1) + 1
            self.unsummed = _merged(lifted)
            if len(self.unsummed) > RANGES_MAX:
                del self.unsummed[RANGES_MAX:]
                self.reach = self.unsummed[-1][1]
        self.total = combined(totals)

    def _own(self, index: Index, start: Position, end: Position, unsummed: list[Range]) -> int:
        """The sum of the extents of one log's own between these positions; what isn't summed is
        added to the ranges.
        """
        since, upto = _extents(index, start, end)
        if since < upto and index.first[since] < start:
            unsummed.append((start, min(end, index.end(since))))
            since += 1
        if since < upto and index.end(upto - 1) > end:
            upto -= 1
            unsummed.append((index.first[upto], end))
        if since >= upto:
            return 0
        assert start <= index.first[since], "no extent that the range cuts is summed"
        assert index.end(upto - 1) <= end, "no extent that the range cuts is summed"
        column = index.sum[since:upto]
        self.summed += index.before(upto) - index.before(since)
        for match in _UNKNOWNS.finditer(column.tobytes()):
            extent = since - -match.start() // _UNKNOWN_BYTES
            after = since + match.end() // _UNKNOWN_BYTES
            self.summed -= index.before(max(extent, after)) - index.before(extent)
            while extent < after:
                together = min(after, index.run_end(extent))
                unsummed.append((index.first[extent], index.end(together - 1)))
                extent = together
        return column_sum(column)


def _within_budget(log: Log, start: Position, end: Position) -> Position:
    """The end of an answer that sums up no more extents than it may; if it can be had, where no
    extent is cut.
    """

    def counted(last: Position) -> int:
        found = 0
        for level, first, after in stretches(log, start, last):
            since, upto = _extents(level.index, first, after)
            found += max(0, upto - since)
        return found

    if counted(end) <= EXTENTS_MAX:
        return end
    last = start + bisect_right(range(start + 1, end), EXTENTS_MAX, key=counted)
    assert start < last, "one position is of one extent"
    _, _, reach = descend(log, last - 1)
    return min(end, last - 1 + reach)


def _extents(index: Index, start: Position, end: Position) -> tuple[int, int]:
    """From which of its extents up to which one a log has records at these positions."""
    assert start < end, "a position at least"
    since = index.at_or_before(start)
    if since < 0 or index.end(since) <= start:
        since += 1
    return since, bisect_left(index.first, end)


def _lifted(index: Index, start: Position, end: Position) -> Iterator[Range]:
    """Where a log has its parent's records of these positions: its own may lie between."""
    assert start < end, "a range has a position at least"
    while start < end:
        extent = index.inherited_upto(start)
        above = index.before(extent)
        stop = min(end, index.inherited_before(extent)) if extent < len(index) else end
        yield start + above, stop + above
        start = stop


def _merged(ranges: list[Range]) -> list[Range]:
    """In order; neighbours become one."""
    found: list[Range] = []
    for first, end in sorted(ranges):
        assert first < end, "a range has a position at least"
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return found
