"""The bytes that an audit reads, each once, and the tasks that read them.

A fork's records may lie between two parts of one extent of its parent: then a plan names the same
bytes in several slices. They are read once here, and so no batch is summed twice.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from anabranch import PlannedSlice

Range = tuple[int, int]


class Portion(msgspec.Struct, frozen=True, array_like=True):
    """Bytes of one object, and all slices of the plan that mean records in them."""

    slices: list[PlannedSlice]
    unsummed: list[Range]
    """Ranges of positions in them whose batches the service keeps no sum of."""

    @property
    def place(self) -> PlannedSlice:
        """The slice to fetch: all slices of a portion name the same bytes."""
        return self.slices[0]

    @property
    def position(self) -> int:
        return self.slices[0].first


def portions(slices: Iterable[PlannedSlice], unsummed: Sequence[Range]) -> list[Portion]:
    """In the order of their first slices; `unsummed` is in order and without overlaps."""
    found: dict[tuple[int, int, int], list[PlannedSlice]] = {}
    for each in slices:
        found.setdefault((each.object, each.offset, each.length), []).append(each)
    return [Portion(mine, [*_within(mine, unsummed)]) for mine in found.values()]


def shares(all_portions: Sequence[Portion], bytes_max: int) -> Iterator[list[Portion]]:
    """Cut into tasks of at most so many bytes, or of one portion."""
    share: list[Portion] = []
    size = 0
    for each in all_portions:
        if share and size + each.place.length > bytes_max:
            yield share
            share, size = [], 0
        share.append(each)
        size += each.place.length
    if share:
        yield share


def covers(ranges: Sequence[Range], position: int) -> bool:
    """Is the position in one of these ranges, which are in order and without overlaps?"""
    after = bisect_left(ranges, (position + 1, position + 1))
    return after > 0 and ranges[after - 1][0] <= position < ranges[after - 1][1]


def _within(slices: Sequence[PlannedSlice], ranges: Sequence[Range]) -> Iterator[Range]:
    for each in slices:
        first, end = each.first, each.first + each.count
        turn = bisect_left(ranges, first, key=lambda pair: pair[1] - 1)
        while turn < len(ranges) and ranges[turn][0] < end:
            yield max(first, ranges[turn][0]), min(end, ranges[turn][1])
            turn += 1
