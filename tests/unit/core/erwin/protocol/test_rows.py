"""Rows and fences."""

from anabranch.core.erwin.protocol.rows import Fence, Row, end_of
from anabranch.core.sequencing.protocol.ids import AppendId


def _row(first: int, count: int) -> Row:
    return Row(first, count, 0, AppendId(1, 0, first))


def test_consecutive_rows_end_where_the_last_one_does() -> None:
    assert end_of([_row(7, 3), _row(10, 2)], 7) == 12
    assert end_of([], 7) == 7


def test_a_later_view_fences_whatever_was_started_in_an_earlier_one() -> None:
    fences = [Fence(view, start) for view in (1, 2, 30) for start in (0, 1, (1 << 20) - 1)]
    assert [fence.number for fence in fences] == sorted({fence.number for fence in fences})
    assert fences == sorted(fences)


def test_a_fence_is_read_back_from_its_number() -> None:
    for fence in (Fence(0, 0), Fence(1, 3), Fence(30, (1 << 20) - 1)):
        assert Fence.of(fence.number) == fence
