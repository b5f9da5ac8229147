"""Partitions of a scan: its slices in order, cut by bytes."""

from collections.abc import Iterable, Iterator, Sequence

from anabranch import PlannedSlice


def cut(
    slices: Sequence[PlannedSlice], *, bytes_max: int, parts_min: int = 1
) -> list[Sequence[PlannedSlice]]:
    """Each part has at most `bytes_max` bytes, or one slice. There are `parts_min` parts at least,
    unless there are fewer slices: a slice is never cut.
    """
    assert bytes_max > 0
    assert parts_min > 0
    total = sum(each.length for each in slices)
    goal = min(bytes_max, -(-total // parts_min))
    parts: list[Sequence[PlannedSlice]] = []
    first = size = 0
    for nth, each in enumerate(slices):
        # From here on every slice is a part of its own if fewer would be too few.
        short = len(slices) - nth <= parts_min - len(parts) - 1
        if nth > first and (size + each.length > goal or short):
            parts.append(slices[first:nth])
            first, size = nth, 0
        size += each.length
    if slices:
        parts.append(slices[first:])
    return parts


def groups(
    slices: Iterable[PlannedSlice], *, slices_max: int, bytes_max: int
) -> Iterator[list[PlannedSlice]]:
    """Slices that are signed together, in order: at most so many, and of so many bytes unless it is
    one.
    """
    assert slices_max > 0
    group: list[PlannedSlice] = []
    size = 0
    for each in slices:
        if group and (len(group) == slices_max or size + each.length > bytes_max):
            yield group
            group, size = [], 0
        group.append(each)
        size += each.length
    if group:
        yield group
