"""Scan plans as the state machine keeps them (decision 75)."""

from msgspec.structs import replace

from anabranch.core.bolt.logs.scan_plans import ENDED_REMEMBERED
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    Entry,
    Outcome,
    RaiseFormat,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.protocol.scans import (
    AS_FAR,
    PAGE_SLICES_MAX,
    SCANS_FORMAT,
    BeginPlan,
    EndPlan,
    EraseGarbage,
    FindPlan,
    Plan,
    PlanId,
    ReadPlan,
    RenewPlan,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.scans import plans
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import LogId, ObjectId

ORDERS = LogId(1)
BEGIN = BeginPlan(PlanId(1), b"s" * 16, ORDERS, 9, AS_FAR, AS_FAR, False, "")


def made(known: int = SCANS_FORMAT) -> State:
    state = State("test", Limits())
    for command in (RaiseFormat(known), CreateLog("orders")):
        apply(state, command)
    return state


def apply(state: State, command: Command) -> Outcome:
    return state.apply(Entry(2, b"", command))


def code(outcome: object) -> str:
    assert isinstance(outcome, Refused), outcome
    return outcome.code


def test_nothing_is_planned_or_measured_before_every_member_can() -> None:
    state = made(SCANS_FORMAT - 1)
    for command in (BEGIN, EraseGarbage()):
        assert code(apply(state, command)) == "unavailable"
    references = state.replica.references
    references.created(ObjectId(5), 0, 2, 100)
    assert not references.sizes
    apply(state, RaiseFormat(SCANS_FORMAT))
    references.created(ObjectId(6), 0, 2, 100)
    assert references.held(0, 9) == (2, 100)


def test_an_id_is_one_plan_and_names_no_other_after_that() -> None:
    state = made()
    assert isinstance(apply(state, BEGIN), Plan)
    assert code(apply(state, BEGIN)) == "bad-request"
    apply(state, EndPlan(ORDERS, BEGIN.plan))
    assert code(apply(state, BEGIN)) == "bad-request"
    assert code(apply(state, replace(BEGIN, plan=PlanId(0)))) == "bad-request"
    assert code(apply(state, replace(BEGIN, plan=PlanId(2), secret=b"short"))) == "bad-request"


def test_why_a_plan_has_ended_is_known_for_a_while_and_survives_a_snapshot() -> None:
    state = made()
    for number in range(1, ENDED_REMEMBERED + 2):
        apply(state, replace(BEGIN, plan=PlanId(number)))
        apply(state, EndPlan(ORDERS, PlanId(number)))
    state.replica = snapshot.load(snapshot.save(state.replica), Limits())
    for number, reason in ((ENDED_REMEMBERED + 1, "by request"), (1, "isn't known")):
        refused = apply(state, RenewPlan(ORDERS, PlanId(number), 9))
        assert isinstance(refused, Refused)
        assert reason in refused.message


def test_the_secret_is_for_brokers_that_know_the_plans_log() -> None:
    state = made()
    apply(state, BEGIN)
    found = state.answer(FindPlan(ORDERS, BEGIN.plan))
    assert getattr(found, "secret", b"") == BEGIN.secret
    assert code(state.answer(FindPlan(LogId(2), BEGIN.plan))) == "plan-ended"


def test_a_page_is_bounded_however_much_of_it_is_asked_for() -> None:
    """A request of some bytes mustn't hold up the leader for longer than other questions do."""
    state = made()
    apply(state, RegisterBroker("b"))
    for number in range(PAGE_SLICES_MAX + 1):
        row = Row(ORDERS, 0, [Batch(100, 1)])
        apply(state, CommitObject("b", object_id(1, number), [row]))
    apply(state, BEGIN)
    page = plans.read(state.replica, ReadPlan(ORDERS, BEGIN.plan, 0, 1 << 30))
    assert len(page.slices) == page.next == PAGE_SLICES_MAX <= 5_000
