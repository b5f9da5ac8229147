"""What one log has that another doesn't: the answer behind `diff`."""

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter

from anabranch.core.bolt.forest import Forest, Log
from anabranch.core.bolt.lineage import Lineage, lineage_of, slices
from anabranch.core.bolt.queries import Comparison, Slice
from anabranch.core.types import ObjectId, Position

EXTENTS_MAX = 100_000
"""Extents of each log that one comparison looks at."""

Range = tuple[Position, Position]


def compare(forest: Forest, a: Log, b: Log) -> Comparison:
    """Settled records only: the shared prefix, then each log's ranges that the other lacks."""
    end_a, end_b = forest.settled(a)[0], forest.settled(b)[0]
    shared = _shared_prefix(
        lineage_of(forest, a, end_a), lineage_of(forest, b, end_b), min(end_a, end_b)
    )
    pieces_a, whole_a = _pieces(forest, a, max(shared, a.start), end_a)
    pieces_b, whole_b = _pieces(forest, b, max(shared, b.start), end_b)
    return Comparison(
        shared=shared,
        only_a=_without(pieces_a, pieces_b),
        only_b=_without(pieces_b, pieces_a),
        complete=whole_a and whole_b,
    )


def _shared_prefix(a: Lineage, b: Lineage, end: Position) -> Position:
    """How far both lineages name the same holder and shift, position by position."""
    position = max(a.start, b.start)
    end = min(end, a.upto, b.upto)
    at_a, at_b = _segment(a, position), _segment(b, position)
    while position < end and at_a < len(a.starts) and at_b < len(b.starts):
        if a.owners[at_a] is not b.owners[at_b] or a.shifts[at_a] != b.shifts[at_b]:
            return position
        ends_a, ends_b = _end(a, at_a), _end(b, at_b)
        position = min(ends_a, ends_b)
        at_a += ends_a == position
        at_b += ends_b == position
    return min(position, end)


def _segment(lineage: Lineage, position: Position) -> int:
    at = 0
    while at + 1 < len(lineage.starts) and lineage.starts[at + 1] <= position:
        at += 1
    return at


def _end(lineage: Lineage, segment: int) -> Position:
    return lineage.starts[segment + 1] if segment + 1 < len(lineage.starts) else lineage.upto


def _pieces(forest: Forest, log: Log, start: Position, end: Position) -> tuple[list[Slice], bool]:
    pieces = slices(forest, log, start, end, EXTENTS_MAX) if start < end else []
    return pieces, not pieces or pieces[-1].first + pieces[-1].count >= end


def _without(pieces: list[Slice], others: list[Slice]) -> list[Range]:
    """Ranges of the pieces' records whose bytes none of the others holds; neighbours joined."""
    held: dict[tuple[ObjectId, int], list[Range]] = {}
    for other in others:
        part = (other.skip, other.skip + other.count)
        held.setdefault((other.object, other.offset), []).append(part)
    ranges: list[Range] = []
    for piece in pieces:
        base = piece.first - piece.skip
        for start, end in _gaps(piece, held.get((piece.object, piece.offset), [])):
            first, last = base + start, base + end
            if ranges and ranges[-1][1] == first:
                ranges[-1] = (ranges[-1][0], last)
            else:
                ranges.append((first, last))
    return ranges


def _gaps(piece: Slice, held: list[Range]) -> Iterator[Range]:
    """Which of a piece's records, counted in their extent, lie in none of these ranges."""
    start, end = piece.skip, piece.skip + piece.count
    for turn in range(bisect_right(held, start, key=itemgetter(1)), len(held)):
        first, last = held[turn]
        if first >= end:
            break
        if start < first:
            yield start, first
        start = last
    if start < end:
        yield start, end
