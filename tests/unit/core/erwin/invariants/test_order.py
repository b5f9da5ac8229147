"""The one order of a log: what each fence may push, and what of it is final."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.erwin.invariants.erwin_scene import id_of, push, row

from anabranch.core.erwin.invariants.order import Order, spans
from anabranch.core.erwin.protocol.rows import Fence, Row


def order() -> tuple[Order, list[str]]:
    broken: list[str] = []
    return Order(lambda rule, _: broken.append(rule)), broken


def test_rows_may_come_out_of_order_and_again() -> None:
    made, broken = order()
    made.push(push(row(2, 2)))
    assert made.end == 0
    made.push(push(row(1, 0, 2)))
    made.push(push(row(1, 0, 2), row(2, 2)))
    assert made.end == 3
    assert broken == []


def test_a_position_has_one_row_within_a_fence() -> None:
    made, broken = order()
    made.push(push(row(1, 0), row(2, 1)))
    made.push(push(row(2, 1, shard=1)))
    assert broken == ["E7"]
    made, broken = order()
    made.push(push(row(2, 1)))
    made.push(push(row(3, 1)))
    assert broken == ["E7"]


def test_rows_of_a_push_are_consecutive() -> None:
    made, broken = order()
    made.push(push(row(1, 0), row(2, 2)))
    assert broken == ["E7"]


def test_a_new_fence_replaces_what_is_not_stable_and_nothing_else() -> None:
    made, broken = order()
    made.push(push(row(1, 0), row(2, 1)))
    made.settle(1)
    made.push(push(row(3, 1), view=2, base=1))
    assert made.rows == [row(1, 0), row(3, 1)]
    made.push(push(row(2, 1)))
    assert made.rows == [row(1, 0), row(3, 1)], "the old leader's push counts no more"
    assert broken == []
    made.push(push(row(4, 0), view=3, base=0))
    assert broken == ["E4"]


def test_a_fence_begins_where_it_began_and_not_behind_the_end() -> None:
    made, broken = order()
    made.push(push(row(1, 0, 2)))
    made.push(push(row(3, 2), view=2, base=2))
    made.push(push(row(4, 1), view=2, base=1))
    assert broken[0] == "E4"
    made, broken = order()
    made.push(push(row(1, 2), view=2, base=2))
    assert broken == ["E4"]
    made, broken = order()
    made.push(push(row(1, 0, 2)))
    made.push(push(row(3, 1), view=2, base=1))
    assert broken[0] == "E4", "within a row"


def test_a_lost_fence_that_no_shard_has_taken_replaced_nothing() -> None:
    old, new = row(2, 2), row(3, 2)
    for fence, kept in ((Fence(1, 1), old), (Fence(2, 1), new)):
        made, broken = order()
        made.push(push(row(1, 0, 2), old))
        made.push(push(new, view=2, base=2))
        made.lose(fence.number, 3)
        assert made.rows == [row(1, 0, 2), kept]
        made.push(push(row(4, 3), view=3, base=3))
        assert broken == []
        made.lose(fence.number, 5)
        assert broken == ["E4"]


def test_a_lost_fence_of_which_something_is_stable_was_taken_by_all_shards() -> None:
    made, broken = order()
    made.push(push(row(1, 0, 2), row(2, 2)))
    made.push(push(row(3, 2), view=2, base=2))
    made.settle(3)
    made.lose(Fence(1, 1).number, 3)
    assert made.rows == [row(1, 0, 2), row(3, 2)]
    assert broken == []


def test_a_view_that_nobody_started_cuts_nothing() -> None:
    """The one that goes on in its place may keep what shards still hold."""
    made, broken = order()
    made.push(push(row(1, 0, 2), row(2, 2)))
    made.lose(Fence(1, 1).number, 2)
    made.lose(Fence(1, 1).number, 3)
    assert made.rows == [row(1, 0, 2), row(2, 2)]
    made.lose(Fence(1, 1).number, 2)
    made.push(push(row(3, 2), view=2, base=2))
    made.lose(Fence(2, 1).number, 3)
    assert made.rows == [row(1, 0, 2), row(3, 2)], "a leader has put another row there"
    assert broken == []


def test_an_append_has_one_final_row() -> None:
    made, broken = order()
    made.push(push(row(1, 0), row(1, 1)))
    made.settle(1)
    assert broken == []
    made.settle(2)
    assert broken == ["E7"]


def test_what_nobody_pushed_is_not_stable() -> None:
    made, broken = order()
    made.push(push(row(1, 0, 2)))
    made.settle(3)
    made.settle(1)
    assert broken == ["E4", "E4"]


@given(st.lists(st.integers(1, 4), max_size=8), st.integers(0, 20), st.integers(0, 20))
def test_between_finds_the_rows_that_have_one_of_the_positions(
    counts: list[int], start: int, end: int
) -> None:
    made, _ = order()
    rows: list[Row] = []
    for number, count in enumerate(counts):
        rows.append(row(number, rows[-1].end if rows else 0, count))
        made.push(push(rows[-1]))
    wanted = set(range(start, end))
    having = [each for each in rows if wanted & set(range(each.first, each.end))]
    found = made.between(start, end)
    assert found == having
    positions = {position for each in rows for position in range(each.first, each.end)}
    assert spans(found, start, end) == len(wanted & positions)
    assert [each.id for each in made.rows] == [id_of(number) for number in range(len(counts))]
