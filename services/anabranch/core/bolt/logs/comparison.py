"""What one log has that another doesn't: the answer behind `diff`.

Records are compared by their origins, which are their identities. What a log trimmed can't be
compared: a record that the other log still has may have been there, and is told apart from those
that surely never were.
"""

from bisect import bisect_right
from operator import itemgetter

from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.logs.lineage import Lineage, lineage_of, locate, slices
from anabranch.core.bolt.protocol.queries import Comparison, Mark, Slice, first_difference
from anabranch.core.types import NEVER, Kind, LogId, Position

EXTENTS_MAX = 100_000
"""Extents of each log that one comparison looks at."""

Range = tuple[Position, Position]
Key = tuple[int, ...]


class _Side:
    """One of the two logs, up to where it was compared, and what is found out about it."""

    def __init__(self, forest: Forest, log: Log, at: Position, end: Position) -> None:
        self.forest = forest
        self.log = log
        # It may have been trimmed since the page before, also beyond where the first one ended.
        self.at = min(max(log.start, at), end)
        self.end = end
        self.slices: list[Slice] = []
        """Those that may differ from the other's, in order."""
        self.lacking: list[Range] = []
        """Records that aren't among the settled ones of the other log, and never were."""
        self.unknown: list[Range] = []
        """What the other log may have had, and trimmed."""

    def look(self, start: Position, end: Position, extents_max: int) -> Position:
        """Take the slices of these positions, at most so many; up to where they reach."""
        assert start >= 0, "positions begin at 0"
        self.slices = slices(self.forest, self.log, start, end, extents_max) if start < end else []
        return _end(self.slices[-1]) if self.slices else max(start, end)

    def within(self, position: Position, end: Position) -> Position:
        return min(max(position, self.at), end)


def compare(forest: Forest, a: Log, b: Log, after: Mark | None = None) -> Comparison:
    """Settled records only: where both are the same, then each log's ranges that the other lacks.

    In both logs records are in the order in which they were committed. So whatever comes after a
    record that both have isn't among what either trimmed; and both can be cut between the same two
    records, and be compared part by part.
    """
    if after is None:
        end_a, end_b = forest.settled(a)[0], forest.settled(b)[0]
        since = max(a.start, b.start)
        one, other = _Side(forest, a, a.start, end_a), _Side(forest, b, b.start, end_b)
        shared, met = _shared(one, other, since), False
    else:
        end_a, end_b, since, shared, met = (
            after.end_a,
            after.end_b,
            after.since,
            after.shared,
            after.met,
        )
        one, other = _Side(forest, a, after.a, end_a), _Side(forest, b, after.b, end_b)
    parts = _Parts(one, other)
    if shared > since and not met:
        # What lies before is in one log only, for both have the record at `since`.
        met = parts.compare(min(since, end_a), min(since, end_b), met=False) or met
        if parts.complete:
            one.at = one.within(shared, end_a)
            other.at = other.within(shared, end_b)
            met = True
    if parts.complete:
        met = parts.compare(end_a, end_b, met=met)
    more = parts.divisible and not parts.complete
    if after is None and parts.complete and shared > since:
        sides = one.lacking, other.lacking, one.unknown, other.unknown
        shared = first_difference(shared, end_a, end_b, *sides)
    return Comparison(
        shared=shared,
        only_a=one.lacking,
        only_b=other.lacking,
        complete=parts.complete,
        since=since,
        trimmed_a=one.unknown,
        trimmed_b=other.unknown,
        next=Mark(one.at, other.at, end_a, end_b, since, shared, met) if more else None,
    )


class _Parts:
    """Two logs, compared part by part until the extents of one answer are looked at."""

    def __init__(self, one: _Side, other: _Side) -> None:
        self._one = one
        self._other = other
        self._budget = EXTENTS_MAX
        mine, theirs = _above(one.log), _above(other.log)
        common = next((log for log in mine if log in theirs), None)
        self._mine = mine[: mine.index(common)] if common else mine
        self._theirs = theirs[: theirs.index(common)] if common else theirs
        self._related = common is not None
        # Copies that a severed fork took over may lie anywhere in the order of another's.
        self.divisible = not any(
            log.own_from < log.fork_point for log in (*self._mine, *self._theirs)
        )
        self.complete = True

    def compare(self, end_a: Position, end_b: Position, *, met: bool) -> bool:
        """Up to these positions, or as far as it goes: have both had a common record by then?"""
        one, other = self._one, self._other
        while (one.at < end_a or other.at < end_b) and self._budget > 0:
            upto_a, upto_b = self._cut(end_a, end_b)
            assert upto_a > one.at or upto_b > other.at, "a part has a record at least"
            self._budget -= len(one.slices) + len(other.slices)
            common = _sort_out(one, other, behind=met)
            _sort_out(other, one, behind=met)
            met |= common
            one.at, other.at = upto_a, upto_b
            if not self.divisible:
                break
        self.complete = one.at >= end_a and other.at >= end_b
        return met

    def _cut(self, end_a: Position, end_b: Position) -> tuple[Position, Position]:
        """Take the slices of the next part of each, which no common record leads out of."""
        one, other, most = self._one, self._other, max(1, self._budget)
        upto_a = one.look(one.at, end_a, most)
        if not self.divisible:
            return upto_a, other.look(other.at, end_b, most)
        until_b = end_b
        if upto_a < end_a and self._related:
            until_b = other.within(_across(upto_a, self._mine, self._theirs), end_b)
        upto_b = other.look(other.at, until_b, most)
        if upto_b < until_b and self._related:
            until_a = one.within(_across(upto_b, self._theirs, self._mine), upto_a)
            upto_a = one.look(one.at, until_a, most)
        return upto_a, upto_b


def _above(log: Log) -> list[Log]:
    """A log and its ancestors."""
    found = [log]
    while found[-1].parent is not None:
        found.append(found[-1].parent)
    return found


def _across(position: Position, mine: list[Log], theirs: list[Log]) -> Position:
    """A position of one log as one of the other's, by way of the ancestor that both have: the same
    common records lie before both.
    """
    for log in mine:
        # Lower only where nothing of the parent is needed any more, and so nothing is in common.
        position = max(0, position - log.index.count_before(position))
    for log in reversed(theirs):
        position = log.index.lifted(position)
    return position


def _shared(one: _Side, other: _Side, since: Position) -> Position:
    """Up to where both have the same record at each position from `since` on; `since` if nowhere.

    First by lineage, which passes over long histories at once; then record by record, for what a
    severed fork took over is the same and lies elsewhere.
    """
    forest, end = one.forest, min(one.end, other.end)
    if since >= end:
        return since
    mine = lineage_of(forest, one.log, one.end)
    theirs = lineage_of(forest, other.log, other.end)
    shared = _alike(mine, theirs, since, min(end, mine.upto, theirs.upto))
    one.look(shared, one.end, EXTENTS_MAX)
    other.look(shared, other.end, EXTENTS_MAX)
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


def _sort_out(mine: _Side, theirs: _Side, *, behind: bool) -> bool:
    """Find what the other log lacks: `behind` a record that both have? And at the end?"""
    held: dict[Key, list[Range]] = {}
    for piece in theirs.slices:
        for key, base in _keys(piece):
            held.setdefault(key, []).append((base, base + piece.count))
    inherited = _inherited(theirs.log)
    for piece in mine.slices:
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
    return behind


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
