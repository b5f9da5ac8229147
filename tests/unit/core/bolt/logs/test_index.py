"""The index of one log against a list of its extents (AgileLog, 5.4, 5.5.1)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.logs.index import DROPPED_PARTS, LONG, Index, interleave
from anabranch.core.types import ObjectId

EXTENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=12)
"""Records of the parent before an extent, and its own."""


def built(extents: list[tuple[int, int]]) -> tuple[Index, list[int | None]]:
    """An index, and for each position below its end the extent it is in, None if inherited."""
    index, holders = Index(), list[int | None]()
    for number, (inherited, count) in enumerate(extents):
        holders += [None] * inherited
        index.append(len(holders), count, ObjectId(number), 0, 10, number)
        holders += [number] * count
    return index, holders


@given(EXTENTS)
def test_positions_are_found_and_counted(extents: list[tuple[int, int]]) -> None:
    index, holders = built(extents)
    for position, holder in enumerate(holders):
        found = index.at_or_before(position)
        inside = found >= 0 and position < index.end(found)
        assert (found if inside else None) == holder
        own = [each for each in holders[:position] if each is not None]
        assert index.count_before(position) == len(own)
    assert index.records == sum(count for _, count in extents)
    assert index.counts() == [count for _, count in extents]


@given(EXTENTS)
def test_a_run_ends_where_the_parent_has_a_record(extents: list[tuple[int, int]]) -> None:
    index, _ = built(extents)
    for extent in range(len(extents)):
        following = range(extent + 1, len(extents))
        parted = [each for each in following if extents[each][0]]
        assert index.run_end(extent) == (parted[0] if parted else len(extents))


@given(EXTENTS, st.integers(0, 60))
def test_what_is_dropped_still_counts(extents: list[tuple[int, int]], below: int) -> None:
    index, holders = built(extents)
    whole, _ = built(extents)
    gone, lengths = index.drop_below(below)
    ends = [len(holders) - holders[::-1].index(number) for number in range(len(extents))]
    assert [*gone] == [number for number, end in enumerate(ends) if end <= below]
    assert [*lengths] == [*whole.length[: len(gone)]]
    for position in range(below, len(holders) + 1):
        assert index.count_before(position) == whole.count_before(position)
    assert index.records == whole.records


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=20), st.integers(0, 5))
def test_spec_7_two_logs_are_interleaved_as_they_were_appended(
    appends: list[tuple[bool, int]], fork_point: int
) -> None:
    """To the fork or to its parent, in one order: the merged index is that order."""
    parent, child, expected = Index(), Index(), Index()
    parent_tail = child_tail = fork_point
    for turn, (to_child, count) in enumerate(appends):
        target = child if to_child else parent
        first = child_tail if to_child else parent_tail
        target.append(first, count, ObjectId(turn), turn, 10, turn)
        expected.append(child_tail, count, ObjectId(turn), turn, 10, turn)
        child_tail += count
        parent_tail += 0 if to_child else count
    merged = interleave(parent, child)
    for column in ("first", "upto", "object", "offset", "length", "at"):
        assert getattr(merged, column) == getattr(expected, column), column


def test_a_long_log_is_not_moved_for_every_extent_that_is_trimmed() -> None:
    index, _ = built([(0, 1)] * (2 * LONG))
    moved = 0
    for below in range(1, 2 * LONG + 1):
        before = len(index)
        gone, _ = index.drop_below(below)
        moved += len(index) if gone else 0
        assert len(index) == before - len(gone)
        assert index.records == 2 * LONG
    assert not len(index)
    assert moved <= 2 * LONG * (DROPPED_PARTS + LONG // 2)
