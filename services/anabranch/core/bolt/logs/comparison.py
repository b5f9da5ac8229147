"""What one log has that another doesn't: the answer behind `diff`.

Records are compared by their origins, which are their identities. What a log trimmed can't be
compared: a record that the other log still has may have been there, and is told apart from those
that surely never were.
"""

from bisect import bisect_right
from operator import itemgetter

from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.logs.lineage import Lineage, lineage_of, locate, slices
from anabranch.core.bolt.protocol.queries import Comparison, Slice
from anabranch.core.types import NEVER, Kind, LogId, Position

EXTENTS_MAX = 100_000
"""Extents of each log that one comparison looks at."""

Range = tuple[Position, Position]
Key = tuple[int, ...]


class _Side:
    """One of the two logs, and what is found out about it."""

    def __init__(self, forest: Forest, log: Log) -> None:
        self.forest = forest
        self.log = log
        self.end = forest.settled(log)[0]
        self.slices: list[Slice] = []
        """Those that may differ from the other's, in order."""
        self.complete = True
        self.lacking: list[Range] = []
        """Records that aren't among the settled ones of the other log, and never were."""
        self.unknown: list[Range] = []
        """What the other log may have had, and trimmed."""

    def look(self, start: Position, end: Position) -> list[Slice]:
        """The slices of these positions, as far as the budget goes."""
        assert start >= 0, "positions begin at 0"
        if start >= end:
            return []
        found = slices(self.forest, self.log, start, end, EXTENTS_MAX - len(self.slices))
        self.complete &= bool(found) and _end(found[-1]) >= end
        return found


def compare(forest: Forest, a: Log, b: Log) -> Comparison:
    """Settled records only: where both are the same, then each log's ranges that the other lacks.

    In both logs records are in the order in which they were committed. So whatever comes after a
    record that both have isn't among what either trimmed.
    """
    one, other = _Side(forest, a), _Side(forest, b)
    since = max(a.start, b.start)
    shared = _shared(one, other, since)
    for side in (one, other):
        side.slices = [*side.look(side.log.start, min(since, side.end)), *side.slices]
    _sort_out(one, other, since if shared > since else NEVER)
    _sort_out(other, one, since if shared > since else NEVER)
    return Comparison(
        shared=shared,
        only_a=one.lacking,
        only_b=other.lacking,
        complete=one.complete and other.complete,
        since=since,
        trimmed_a=one.unknown,
        trimmed_b=other.unknown,
    )


def _shared(one: _Side, other: _Side, since: Position) -> Position:
    """Up to where both have the same record at each position from `since` on; `since` if nowhere.

    First by lineage, which passes over long histories at once; then record by record, for what a
    severed fork took over is the same and lies elsewhere.
    """
    forest, end = one.forest, min(one.end, other.end)
    shared = since
    if since < end:
        mine = lineage_of(forest, one.log, one.end)
        theirs = lineage_of(forest, other.log, other.end)
        shared = _alike(mine, theirs, since, min(end, mine.upto, theirs.upto))
    one.slices, other.slices = one.look(shared, one.end), other.look(shared, other.end)
    return _walk(one.slices, other.slices, shared) if shared < end else shared


def _alike(a: Lineage, b: Lineage, since: Position, end: Position) -> Position:
    """How far both lineages name the same holder and shift, position by position."""
    assert since >= end or (a.owners and b.owners), "a lineage names a holder of all that it covers"
    position = since
    at_a, at_b = bisect_right(a.starts, position) - 1, bisect_right(b.starts, position) - 1
    while position < end:
        if a.owners[at_a] is not b.owners[at_b] or a.shifts[at_a] != b.shifts[at_b]:
            return position
        end_a, end_b = _segment_end(a, at_a), _segment_end(b, at_b)
        position = min(end_a, end_b)
        at_a += end_a == position
        at_b += end_b == position
    return max(since, min(position, end))


def _segment_end(lineage: Lineage, segment: int) -> Position:
    assert 0 <= segment < len(lineage.starts), "no such segment"
    return lineage.starts[segment + 1] if segment + 1 < len(lineage.starts) else lineage.upto


def _walk(mine: list[Slice], theirs: list[Slice], position: Position) -> Position:
    """How far from this position on, where both begin, they have the same records."""
    turn = other = 0
    while turn < len(mine) and other < len(theirs):
        a, b = mine[turn], theirs[other]
        if not {*_names(a, position)} & {*_names(b, position)}:
            return position
        end_a, end_b = _end(a), _end(b)
        position = min(end_a, end_b)
        turn += end_a == position
        other += end_b == position
    return position


def _names(piece: Slice, position: Position) -> list[Key]:
    """What tells a record from all others: its origin, and where its bytes are. By its bytes alone
    is known what moved before origins were kept.
    """
    assert piece.first <= position < _end(piece), "another slice holds it"
    return [(*key, base + position - piece.first) for key, base in _keys(piece)]


def _keys(piece: Slice) -> list[tuple[Key, int]]:
    return [((piece.origin,), piece.origin_first), ((piece.object, piece.offset), piece.skip)]


def _end(piece: Slice) -> Position:
    return piece.first + piece.count


def _sort_out(mine: _Side, theirs: _Side, both_from: Position) -> None:
    """Find what the other log lacks; from `both_from` on there is a record that both have."""
    held: dict[Key, list[Range]] = {}
    for piece in theirs.slices:
        for key, base in _keys(piece):
            held.setdefault(key, []).append((base, base + piece.count))
    behind = False
    inherited = _inherited(theirs.log)
    for piece in mine.slices:
        behind |= piece.first >= both_from
        assert piece.count > 0, "a slice has a record at least"
        position, end = piece.first, _end(piece)
        for since, until in [*_common(piece, held), (end, end)]:
            if position < since:
                had = position if behind else _may_have_had(theirs.log, inherited, mine, piece)
                had = min(max(position, had), since)
                _add(mine.unknown, position, had)
                _add(mine.lacking, had, since)
            behind |= since < until
            position = max(position, until)


def _common(piece: Slice, held: dict[Key, list[Range]]) -> list[Range]:
    """Which positions of this piece hold records that the other log has too."""
    found: list[Range] = []
    for key, base in _keys(piece):
        ranges, shift = held.get(key, []), piece.first - base
        for turn in range(bisect_right(ranges, base, key=itemgetter(1)), len(ranges)):
            since, until = ranges[turn]
            if since >= base + piece.count:
                break
            found.append((max(since, base) + shift, min(until, base + piece.count) + shift))
    found.sort()
    return found


def _add(ranges: list[Range], first: Position, end: Position) -> None:
    """Neighbours become one."""
    if first < end and ranges and ranges[-1][1] == first:
        ranges[-1] = (ranges[-1][0], end)
    elif first < end:
        ranges.append((first, end))


def _may_have_had(
    log: Log, inherited: dict[LogId, Position], mine: _Side, piece: Slice
) -> Position:
    """Up to which position of a piece the log may have had its records, and trimmed them."""
    if not log.start or log.family is not mine.log.family:
        return piece.first
    holder, there = locate(mine.forest, mine.log, piece.first)
    limit = inherited.get(holder.id)
    if limit is not None:
        return piece.first + limit - there
    # Whatever inherited from a log that is alive still descends from it: a record that never moved
    # wasn't in any other. One that moved may have been in logs that are gone.
    moved = piece.origin != holder.id or piece.origin_first < holder.fork_point
    return _end(piece) if moved else piece.first


def _inherited(log: Log) -> dict[LogId, Position]:
    """For the log and each of its ancestors: below which of its positions it was inherited.

    A severed fork that took records over may have got them from anywhere.
    """
    found: dict[LogId, Position] = {log.id: NEVER}
    limit: Position = NEVER
    known = True
    while log.parent is not None:
        if log.kind is Kind.SEVERED:
            known &= log.own_from == log.fork_point
            limit = min(limit, log.own_from)
        elif log.fork_point < limit < NEVER:
            # What was trimmed of its own index can't be counted.
            known &= not log.index.forgotten
            limit -= log.index.count_before(limit)
        log = log.parent
        found[log.id] = limit if known else NEVER
    return found
