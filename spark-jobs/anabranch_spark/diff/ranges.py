"""Which positions of two logs are compared, and which of them have to be read."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

Range = tuple[int, int]
UNSURE_MAX = 50
"""Ranges that a condition of Spark's names."""


class Difference(Protocol):
    """What the service says of two logs: ranges are in order and without overlaps."""

    @property
    def shared(self) -> int: ...
    @property
    def since(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def only_a(self) -> Sequence[Range]: ...
    @property
    def only_b(self) -> Sequence[Range]: ...
    @property
    def trimmed_a(self) -> Sequence[Range]: ...
    @property
    def trimmed_b(self) -> Sequence[Range]: ...


class Extent(NamedTuple):
    """The positions of a log that are compared."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return max(0, self.end - self.start)


class Reads(NamedTuple):
    """The ranges to read. On each side the positions of `head` come before those of `middle`, and
    those before `tail`.
    """

    head_a: Range
    head_b: Range
    middle: Range
    """Both logs have the same records there."""
    tail_a: Range
    tail_b: Range
    unsure_a: Sequence[Range] = ()
    """Where the other log may have had the records, and trimmed them."""
    unsure_b: Sequence[Range] = ()

    @property
    def records(self) -> int:
        """How many are read at most."""
        return total((self.head_a, self.head_b, self.middle, self.tail_a, self.tail_b))

    @property
    def alike(self) -> bool:
        """Neither log has a position of its own, so no key can differ."""
        return total((self.head_a, self.head_b, self.tail_a, self.tail_b)) == 0


def cut_alike(found: Difference, a: Extent, b: Extent) -> tuple[Extent, Extent]:
    """End both logs before the first common record that only one of them has within its extent.

    The ends were asked for one after the other, before the comparison: what came into a parent in
    between is in its fork too, and would else look like the fork's own.
    """
    if not found.complete:
        return a, b
    common_a = _without(a, found.only_a, found.trimmed_a)
    common_b = _without(b, found.only_b, found.trimmed_b)
    count = min(total(common_a), total(common_b))
    return (
        a._replace(end=_nth(common_a, count, a.end)),
        b._replace(end=_nth(common_b, count, b.end)),
    )


def reads(found: Difference, a: Extent, b: Extent) -> Reads:
    """What both share at the same positions is read once."""
    shared = min(found.shared, a.end, b.end)
    since = max(found.since, a.start, b.start)
    unsure = _few(found.trimmed_a), _few(found.trimmed_b)
    if shared <= since:
        nothing = (0, 0)
        return Reads(nothing, nothing, nothing, (a.start, a.end), (b.start, b.end), *unsure)
    return Reads(
        head_a=(a.start, since),
        head_b=(b.start, since),
        middle=(since, shared),
        tail_a=(shared, a.end),
        tail_b=(shared, b.end),
        unsure_a=unsure[0],
        unsure_b=unsure[1],
    )


def total(ranges: Sequence[Range]) -> int:
    return sum(end - first for first, end in ranges)


def _few(ranges: Sequence[Range]) -> list[Range]:
    """The same ranges, or one that holds them all: less is claimed to be certain then."""
    if len(ranges) <= UNSURE_MAX:
        return [*ranges]
    return [(ranges[0][0], ranges[-1][1])]


def _without(extent: Extent, *excluded: Sequence[Range]) -> list[Range]:
    """What is left of an extent without these ranges."""
    cuts = sorted(each for ranges in excluded for each in ranges)
    edges = [(extent.start, extent.start), *cuts, (extent.end, extent.end)]
    left = [
        (max(extent.start, before[1]), min(extent.end, after[0]))
        for before, after in pairwise(edges)
    ]
    return [each for each in left if each[0] < each[1]]


def _nth(ranges: Sequence[Range], ordinal: int, otherwise: int) -> int:
    """The position that so many others of these ranges come before."""
    for first, end in ranges:
        if ordinal < end - first:
            return first + ordinal
        ordinal -= end - first
    return otherwise
