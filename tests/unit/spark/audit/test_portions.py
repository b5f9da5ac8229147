"""Bytes are read once each, whatever slices name them."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from anabranch import PlannedSlice
from anabranch_spark.audit.portions import covers, portions

Piece = Callable[..., PlannedSlice]

ranges = st.lists(st.integers(0, 60), unique=True, max_size=10).map(
    lambda marks: [*zip(sorted(marks)[::2], sorted(marks)[1::2], strict=False)]
)


@given(ranges, st.integers(0, 60))
def test_a_position_is_covered_if_a_range_holds_it(
    drawn: list[tuple[int, int]], position: int
) -> None:
    held = any(first <= position < end for first, end in drawn)
    assert covers(drawn, position) is held


def test_slices_of_the_same_bytes_are_one_portion(piece: Piece) -> None:
    slices = [
        piece(0, 3, object=1),
        piece(3, 1, object=2),
        piece(4, 2, object=1, skip=3),
        piece(6, 5, object=1, offset=100),
    ]
    found = portions(slices, [])
    assert [[each.first for each in portion.slices] for portion in found] == [[0, 4], [3], [6]]
    assert [portion.position for portion in found] == [0, 3, 6]


@given(ranges, st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_a_portion_knows_which_of_its_positions_are_not_summed(
    piece: Piece, drawn: list[tuple[int, int]], counts: list[int]
) -> None:
    slices = [
        piece(sum(counts[:turn]), count, object=turn % 3) for turn, count in enumerate(counts)
    ]
    for portion in portions(slices, drawn):
        mine = [at for each in portion.slices for at in range(each.first, each.first + each.count)]
        expected = [at for at in mine if any(first <= at < end for first, end in drawn)]
        assert [at for at in mine if covers(portion.unsummed, at)] == expected
