"""What clients were told, held against the log: each rule is broken once."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.erwin.invariants.erwin_scene import MEMBERS, Scene, batch_of, id_of, row, view

from anabranch.core.erwin.invariants.account import Account, AppendCall, Outcome, TailCall


def call(number: int, invoked: int, returned: int = 0, count: int = 1) -> AppendCall:
    outcome = Outcome.ACKNOWLEDGED if returned else Outcome.OPEN
    return AppendCall(
        id=id_of(number),
        count=count,
        batch=batch_of(number, count),
        invoked=invoked,
        returned=returned,
        view=1 if returned else 0,
        outcome=outcome,
    )


def judged(scene: Scene, *calls: AppendCall, tails: tuple[TailCall, ...] = ()) -> list[str]:
    account = Account(list(calls), list(tails))
    return [each.partition(":")[0] for each in account.judge(scene.witness)]


def settled(*numbers: int) -> Scene:
    """These appends are final, in this order."""
    scene = Scene()
    scene.settle(*(row(number, at) for at, number in enumerate(numbers)))
    return scene


def test_an_account_that_fits_the_log_breaks_nothing() -> None:
    scene = settled(1, 2)
    second = call(2, 12, 13)
    second.receipt = 1
    tails = (TailCall(11, 1), TailCall(14, 2))
    assert judged(scene, call(1, 10, 11), second, call(3, 14), tails=tails) == []


def test_e1_what_was_acknowledged_is_in_the_log() -> None:
    assert judged(settled(1), call(1, 10, 11), call(2, 12, 13)) == ["E1"]


def test_e1_but_for_what_went_with_a_view_that_was_given_up() -> None:
    scene = settled(1)
    for member in MEMBERS:
        scene.witness.on_loss(member)
    scene.configure(view(2, base=1), lost=((1, 5),))
    assert judged(scene, call(2, 12, 13), tails=(TailCall(14, 0),)) == []
    later = call(3, 14, 15)
    later.view = 2
    assert judged(scene, later) == ["E1"]


def test_e7_an_append_has_its_records_and_one_receipt() -> None:
    scene = settled(1)
    assert judged(scene, call(1, 10, 11, count=2)) == ["E7"]
    wrong = call(1, 10, 11)
    wrong.receipt = 1
    assert judged(scene, wrong) == ["E7"]
    unbound = call(2, 10)
    unbound.receipt = 0
    assert judged(scene, unbound) == ["E7"]
    scene.witness.reads.contents[id_of(1)] = batch_of(2)
    assert judged(scene, call(1, 10, 11)) == ["E7"]


def test_e9_no_acknowledged_append_is_a_no_op_and_no_refused_one_is_there() -> None:
    scene = settled(1)
    scene.witness.reads.contents[id_of(1)] = b""
    assert judged(scene, call(1, 10)) == []
    assert judged(scene, call(1, 10, 11)) == ["E9"]
    refused = call(1, 10)
    refused.outcome = Outcome.REFUSED
    assert judged(scene, refused) == []
    scene.witness.reads.contents[id_of(1)] = refused.batch
    assert judged(scene, refused) == ["E9"]


def test_e10_a_tail_counts_what_was_acknowledged_before() -> None:
    scene = settled(1, 2)
    calls = call(1, 10, 11), call(2, 12, 15)
    assert judged(scene, *calls, tails=(TailCall(14, 1),)) == []
    assert judged(scene, *calls, tails=(TailCall(14, 0),)) == ["E10"]
    assert judged(scene, *calls, tails=(TailCall(16, 1),)) == ["E10"]


@given(st.permutations(range(1, 6)), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9))))
def test_e2_is_broken_exactly_where_two_appends_are_the_wrong_way_round(
    order: list[int], times: list[tuple[int, int]]
) -> None:
    scene = settled(*order)
    # Stamps differ from one another; a duration of 0 means that no answer came.
    calls = [
        call(number, 100 * invoked + number, 100 * (invoked + long) + number if long else 0)
        for number, (invoked, long) in zip(range(1, 6), times, strict=False)
    ]
    at = {each.id: order.index(each.id.producer) for each in calls}
    late = {
        b.id for a in calls for b in calls if 0 < a.returned < b.invoked and at[b.id] < at[a.id]
    }
    account = Account(calls, [])
    told = [each for each in account.judge(scene.witness) if each.startswith("E2")]
    assert len(told) == len(late)
