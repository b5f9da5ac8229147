"""Slices that don't cover a range exactly once are found, and none that do."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import PlannedSlice
from anabranch_spark.audit.coverage import coverage_faults

Piece = Callable[..., PlannedSlice]


@pytest.mark.parametrize(
    ("ranges", "positions"),
    [
        ([(0, 4), (4, 10)], []),
        ([(0, 4), (5, 10)], [4]),
        ([(0, 4), (3, 10)], [3]),
        ([(1, 10)], [0]),
        ([(0, 9)], [9]),
        ([(0, 11)], [10]),
        ([], [0]),
        ([(0, 4), (4, 4), (4, 10)], [4]),
        ([(4, 10), (0, 4)], [0, 0]),
    ],
)
def test_each_gap_overlap_and_excess_is_named_by_its_position(
    piece: Piece, ranges: list[tuple[int, int]], positions: list[int]
) -> None:
    slices = [piece(first, end - first) for first, end in ranges]
    assert [each.position for each in coverage_faults(0, 10, slices, "orders")] == positions


@given(
    st.integers(0, 5),
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8)), max_size=8),
)
def test_a_range_is_covered_once_in_order_or_there_are_faults(
    piece: Piece, start: int, length: int, drawn: list[tuple[int, int]]
) -> None:
    slices = [piece(first, count) for first, count in drawn]
    end = start + length
    read = [position for first, count in drawn for position in range(first, first + count)]
    assert (coverage_faults(start, end, slices) == []) is (read == [*range(start, end)])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.data())
def test_a_slice_that_is_lost_doubled_or_swapped_is_noticed(
    piece: Piece, counts: list[int], data: st.DataObject
) -> None:
    slices = [piece(sum(counts[:turn]), count) for turn, count in enumerate(counts)]
    assert coverage_faults(0, sum(counts), slices) == []
    turn = data.draw(st.integers(0, len(slices) - 1))
    assert coverage_faults(0, sum(counts), slices[:turn] + slices[turn + 1 :])
    assert coverage_faults(0, sum(counts), slices[: turn + 1] + slices[turn:])
    other = data.draw(st.integers(0, len(slices) - 1))
    moved = [*slices]
    moved[turn], moved[other] = moved[other], moved[turn]
    assert bool(coverage_faults(0, sum(counts), moved)) is (turn != other)
    assert Counter(map(id, moved)) == Counter(map(id, slices))
