"""A wave is cut into tasks, each portion for one of them."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from anabranch import Plan, PlannedSlice
from anabranch.core.bolt.protocol.scans import PlanId
from anabranch.core.types import LogId
from anabranch_spark.audit.location import Weighed
from anabranch_spark.audit.portions import Portion
from anabranch_spark.audit.report import Damage
from anabranch_spark.audit.shares import (
    Answer,
    Found,
    Piece,
    Share,
    packed,
    share_out,
    unpacked_answer,
    unpacked_share,
)
from anabranch_spark.audit.tally import of_damage

PLAN = Plan(PlanId(1), LogId(1), "orders", 0, 9, 0, 9, 0, 1, "")
Slice = Callable[..., PlannedSlice]


@given(st.lists(st.lists(st.integers(1, 50), max_size=6), max_size=6), st.integers(1, 120))
def test_each_portion_is_in_one_task_in_order_and_tasks_are_small(
    piece: Slice, sizes: list[list[int]], bytes_max: int
) -> None:
    pieces = [
        Piece(
            number,
            PLAN,
            [Portion([piece(at, 1, length=size)], []) for at, size in enumerate(mine)],
        )
        for number, mine in enumerate(sizes)
    ]
    shares = [*share_out(pieces, bytes_max=bytes_max, bytes_min=1, shares_min=3)]
    found = [(each.log, portion) for share in shares for each in share for portion in each.portions]
    assert found == [(each.log, portion) for each in pieces for portion in each.portions]
    for share in shares:
        lengths = [portion.place.length for each in share for portion in each.portions]
        assert lengths
        assert sum(lengths) <= bytes_max or len(lengths) == 1


def test_a_wave_without_bytes_is_no_task() -> None:
    assert [*share_out([Piece(0, PLAN, [])])] == []
    assert [*share_out([])] == []


def test_messages_survive_their_journey(piece: Slice) -> None:
    share = Share("anabranch://a", "c", [Piece(3, PLAN, [Portion([piece(0, 2)], [(0, 1)])])])
    assert unpacked_share(packed(share)) == share
    damage = Damage("footer", 3, "o", 0, 1, "why")
    answer = Answer([Found(3, of_damage([damage]), [Weighed(0, 5, 2)])])
    assert unpacked_answer(packed(answer)) == answer
