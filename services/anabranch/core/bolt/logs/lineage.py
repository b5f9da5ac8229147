"""Where an inherited record's entry is: the hierarchical look-up, and the same flattened
(AgileLog, 5.4, 5.5.1).

`descend` is the paper's recursion, one ordered search a level. `Lineage` keeps its result as
segments of positions that one ancestor holds with one shift, so that a fork five hundred deep
costs one search more than a root (spec D10). What a segment says of a position stays true until
the family is reshaped.
"""

from bisect import bisect_left, bisect_right

from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.protocol.queries import Slice
from anabranch.core.types import NEVER, Milliseconds, ObjectId, Position

Segment = tuple[Position, Log, int]
"""(first position in the log asked about, the log that holds it, shift): it is there at position
- shift.
"""


def descend(log: Log, position: Position) -> tuple[Log, Position, int]:
    """The log in whose index this position's record is, its position there, and how far that
    stays so.

    A severed fork may end an ancestor's extent early, so the last is cut at what any level put
    next.
    """
    assert position >= 0, "positions begin at 0"
    reach = NEVER
    while True:
        index = log.index
        extent = index.at_or_before(position)
        if extent >= 0 and position < index.end(extent):
            return log, position, min(reach, index.end(extent) - position)
        if extent + 1 < len(index):
            reach = min(reach, index.first[extent + 1] - position)
        position -= index.before(extent + 1)
        assert log.parent is not None, "every position below the tail has an entry (B3)"
        log = log.parent


def segments(log: Log, start: Position, end: Position) -> list[Segment]:
    """Positions `start` to `end` as segments, level by level, without recursion."""
    return _flatten(log, start, end, NEVER)[0]


def _flatten(
    log: Log, start: Position, end: Position, runs_max: int
) -> tuple[list[Segment], Position]:
    """Segments from `start` up to `end`, or to where they are too many for one turn; and where."""
    assert start >= 0, "positions begin at 0"
    assert runs_max > 0, "one run at least has to be found, or nobody gets on"
    found: list[Segment] = []
    pieces = [(start, end, 0)] if start < end else []
    while pieces:
        above: list[tuple[Position, Position, int]] = []
        runs_max += len(found)
        for first, last, shift in pieces:
            reached = _split(log, first, min(last, end), shift, found, above, runs_max)
            if reached < last:
                end = min(end, reached)
                break
        runs_max -= len(found)
        pieces = above
        assert log.parent is not None or not pieces, (
            "every position below the tail has an entry (B3)"
        )
        log = log.parent or log
    found.sort(key=lambda segment: segment[0])
    return found, end


def _split(
    log: Log,
    first: Position,
    last: Position,
    shift: int,
    found: list[Segment],
    above: list[tuple[Position, Position, int]],
    runs_max: int,
) -> Position:
    """Divide a range of positions into what lies `shift` lower in this log and what in its parent,
    until the runs are too many; up to where it came.
    """
    assert shift >= 0, "an ancestor's position is no higher than its heir's"
    index = log.index
    position, end = first - shift, last - shift
    extent = index.at_or_before(position)
    if extent < 0 or index.end(extent) <= position:
        extent += 1
    while position < end and len(found) + len(above) < runs_max:
        own = index.first[extent] if extent < len(index) else end
        if position < own:
            gap_end = min(own, end)
            above.append((position + shift, gap_end + shift, shift + index.before(extent)))
            position = gap_end
        else:
            found.append((position + shift, log, shift))
            after = index.run_end(extent)
            position = index.end(after - 1)
            extent = after
    return position + shift


class Lineage:
    """The flattened look-up of one log, for positions from `start` up to `upto`."""

    __slots__ = ("generation", "owners", "reshaped", "shifts", "start", "starts", "upto")

    def __init__(self, forest: Forest, log: Log) -> None:
        self.start = log.start
        self.upto = log.start
        self.reshaped = log.family.reshaped
        self.generation = forest.lineage_generation(log)
        self.starts: list[Position] = []
        self.owners: list[Log] = []
        self.shifts: list[int] = []

    def extend(self, log: Log, tail: Position, segments_max: int) -> None:
        """Cover what was appended since, as far as segments are left: what is too finely
        interleaved isn't worth it. What is found at once is bounded by them too.
        """
        assert segments_max > 0, "a lineage without segments finds nothing"
        if len(self.starts) >= segments_max:
            return
        found, reached = _flatten(log, self.upto, tail, segments_max)
        for first, owner, shift in found:
            if first >= reached:
                break
            if self.owners and self.owners[-1] is owner and self.shifts[-1] == shift:
                continue
            if len(self.starts) >= segments_max:
                reached = first
                break
            self.starts.append(first)
            self.owners.append(owner)
            self.shifts.append(shift)
        self.upto = min(reached, tail)


def lineage_of(forest: Forest, log: Log, upto: Position) -> Lineage:
    """The log's lineage, covering positions below `upto` as far as it may."""
    lineage = log.lineage
    if (
        not isinstance(lineage, Lineage)
        or lineage.reshaped != log.family.reshaped
        or lineage.upto < log.start  # trimmed past what was covered: nothing there to extend
    ):
        lineage = log.lineage = Lineage(forest, log)
    if lineage.upto < upto:
        lineage.extend(log, forest.tail(log), forest.limits.lineage_segments_max)
    return lineage


def locate(forest: Forest, log: Log, position: Position) -> tuple[Log, Position]:
    """The log that holds this position's record, and its position there."""
    lineage = lineage_of(forest, log, position + 1)
    if not lineage.start <= position < lineage.upto:
        return descend(log, position)[:2]
    segment = bisect_right(lineage.starts, position) - 1
    return lineage.owners[segment], position - lineage.shifts[segment]


def slices(
    forest: Forest,
    log: Log,
    start: Position,
    end: Position,
    extents_max: int,
    records_max: int = NEVER,
    bytes_max: int = NEVER,
) -> list[Slice]:
    """The extents that hold positions from `start` to `end`, at least one, until a budget is
    spent.
    """
    assert start >= 0, "positions begin at 0"
    found: list[Slice] = []
    end = min(end, start + records_max)
    lineage = lineage_of(forest, log, end)
    position, budget = start, bytes_max
    while position < end and len(found) < extents_max and (budget > 0 or not found):
        if lineage.start <= position < lineage.upto:
            segment = bisect_right(lineage.starts, position) - 1
            owner, there = lineage.owners[segment], position - lineage.shifts[segment]
            following = segment + 1
            stop = lineage.starts[following] if following < len(lineage.starts) else lineage.upto
        else:
            owner, there, reach = descend(log, position)
            stop = position + reach
        extent = owner.index.at_or_before(there)
        piece = _slice(owner, extent, there, position, min(stop, end))
        found.append(piece)
        position += piece.count
        # Of a long extent only a part may be asked for, and many more parts of it next.
        budget -= max(1, piece.length * piece.count // owner.index.count(extent))
    return found


def _slice(owner: Log, extent: int, there: Position, position: Position, stop: Position) -> Slice:
    index = owner.index
    assert extent >= 0, "every position below the tail has an entry (B3)"
    origin, origin_first, other = index.origins.at(there)
    end = index.end(extent) if other is None else min(index.end(extent), other)
    count = min(end - there, stop - position)
    assert count > 0, "every position below the tail has an entry (B3)"
    return Slice(
        first=position,
        count=count,
        object=ObjectId(index.object[extent]),
        offset=index.offset[extent],
        length=index.length[extent],
        skip=there - index.first[extent] + index.skip(extent),
        origin=origin or owner.id,
        origin_first=origin_first,
    )


def position_at(forest: Forest, log: Log, at: Milliseconds, end: Position) -> Position:
    """The first position below `end` that was committed at or after a time; `end` if there is
    none.

    Positions of a log, inherited ones included, are in order of commit.
    """
    assert 0 <= log.start <= end, "what can be read lies below the end"

    def committed_at(position: Position) -> Milliseconds:
        owner, there = locate(forest, log, position)
        return owner.index.at[owner.index.at_or_before(there)]

    return bisect_left(range(end), at, log.start, key=committed_at)
