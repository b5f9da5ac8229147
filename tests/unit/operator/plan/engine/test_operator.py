"""The machine: what it does before it knows everything, and what it does with what fails."""

from itertools import pairwise

import pytest
from msgspec.structs import replace
from tests.unit.operator.declared import PLANNERS as LOG_PLANNERS
from tests.unit.operator.declared import WHAT_IF, conditions, declare, fork, log, office

from anabranch.core.errors.refused import Refused
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.types import MS, LogId
from anabranch_operator.api import names
from anabranch_operator.plan.engine import actions
from anabranch_operator.plan.engine.actions import Apply, ApplyStatus, Plan
from anabranch_operator.plan.engine.dependencies import CERTIFICATES
from anabranch_operator.plan.engine.events import (
    Answered,
    Deposed,
    Do,
    Effect,
    Elected,
    Gone,
    Listed,
    Look,
    Refusal,
    Seen,
    Unseen,
    Viewed,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.planners import PLANNERS
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import RESOURCES, Surroundings, World
from anabranch_operator.plan.log.forks import plan_fork
from anabranch_sim.kubernetes.sandbox import BEGIN

MANIFEST = {"kind": "Secret", "metadata": {"name": "x", "namespace": "demo"}}
WANTED = Plan((Apply(ref=Ref("Secret", "demo", "x"), manifest=MANIFEST),))
AROUND = Surroundings(namespace="demo", release="demo")


def began(plan: Plan = WANTED) -> Operator:
    """An operator that was told of everything, and that plans the whole installation so."""
    planners = {**PLANNERS, CERTIFICATES: lambda *_: plan}
    operator = Operator(AROUND, planners, RESOURCES)
    for kind in RESOURCES:
        operator.step(BEGIN, Listed(kind))
    return operator


def wanted(effects: tuple[object, ...]) -> list[object]:
    return [effect.action for effect in effects if isinstance(effect, Do)]


def woken_at(effects: tuple[Effect, ...], before: int = 0) -> int:
    """What the timer is set to; `before` if it stays as it was."""
    set_to = (each.at for each in effects if isinstance(each, SetTimer) and each.key == "wake")
    return max(set_to, default=before)


def test_nothing_is_done_while_another_leads() -> None:
    operator = began()
    found = Observed(ref=WHAT_IF, uid="u", version=1, body={"spec": {"parent": {"name": "o"}}})
    assert wanted(operator.step(BEGIN, Seen(found))) == []
    effects = operator.step(BEGIN, Elected(1))
    assert wanted(effects) == list(WANTED.actions)
    assert operator.step(BEGIN, Deposed()) == ()
    assert wanted(operator.step(BEGIN, Viewed((), ()))) == []


def test_certificates_dont_wait_for_a_service_that_waits_for_them() -> None:
    operator = began()
    effects = operator.step(BEGIN, Elected(1))
    assert wanted(effects) == list(WANTED.actions)
    assert any(isinstance(effect, Look) for effect in effects)


def test_logs_wait_for_a_first_look_and_no_longer() -> None:
    operator = began(Plan())
    operator.step(BEGIN, Elected(1))
    found = Observed(ref=WHAT_IF, uid="u", version=1, body={"spec": {"parent": {"name": "o"}}})
    assert wanted(operator.step(BEGIN, Seen(found))) == []
    assert wanted(operator.step(BEGIN, Unseen("nobody answers"))) != []


def test_no_more_is_on_its_way_than_there_is_room_for() -> None:
    room = replace(AROUND, in_flight_max=4)
    operator = Operator(room, {**PLANNERS, CERTIFICATES: lambda *_: Plan()}, RESOURCES)
    for kind in RESOURCES:
        operator.step(BEGIN, Listed(kind))
    operator.step(BEGIN, Elected(1))
    effects = list(operator.step(BEGIN, Viewed((), ())))
    for number in range(20):
        ref = Ref(names.LOG, "demo", f"l{number}")
        effects += operator.step(BEGIN, Seen(Observed(ref=ref, uid=ref.name, version=1)))
    on_their_way = [each for each in effects if isinstance(each, Do)]
    assert len(on_their_way) == 4
    assert operator.counters.queued == 16
    away = Refusal("away", "no answer")
    effects = list(operator.step(BEGIN, Answered(on_their_way[0].number, away)))
    assert len([each for each in effects if isinstance(each, Do)]) == 1


def test_what_was_done_in_vain_waits_longer_each_time() -> None:
    operator = began()
    unchanged = Observed(ref=Ref("Secret", "demo", "x"), uid="u", version=1)
    effects, at, asked = operator.step(BEGIN, Elected(1)), BEGIN, list[int]()
    timer = BEGIN
    while at < BEGIN + 3_600 * 10**9:
        numbers = [effect.number for effect in effects if isinstance(effect, Do)]
        timer = woken_at(effects, timer)
        asked += [at] * len(numbers)
        if numbers:
            effects = operator.step(at, Answered(numbers[0], unchanged))
        else:
            at = max(at, timer)
            effects = operator.step(at, TimerFired("wake"))
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses[0] == 10**9
    assert max(pauses) == 300 * 10**9
    assert len(asked) < 30


def test_an_object_that_cant_be_planned_holds_up_no_other() -> None:
    odd = Ref(names.FORK, "demo", "odd")

    def failing(world: World, ref: Ref, now: int, troubles: Troubles) -> Plan:
        assert ref != odd, "nobody thought of this"
        return plan_fork(world, ref, now, troubles)

    tended = office(planners={**LOG_PLANNERS, names.FORK: failing})
    log(tended)
    fork(tended, odd)
    assert conditions(fork(tended))["Ready"] == ("True", "Serving")
    (told,) = (note for note in tended.notes if note.result == "failed")
    assert told.ref == odd
    assert told.message.startswith("planning it failed: AssertionError: nobody thought of this")
    steps = tended.operator.counters.plans
    tended.wait(1_000)
    assert tended.operator.counters.plans - steps < 30


@pytest.mark.parametrize("kind", [names.LOG, names.FORK])
@pytest.mark.parametrize("adopt", [True, False])
def test_a_name_that_another_declares_is_asked_for_ever_more_rarely(kind: str, adopt: bool) -> None:
    tended = office()
    log(tended)
    fork(tended)
    other = Ref(kind, WHAT_IF.namespace, "other")
    if kind == names.LOG:
        declare(tended, other, logName="orders", adopt=adopt)
    else:
        declare(tended, other, parent={"name": "orders"}, forkName="what-if", adopt=adopt)
    tended.settle()
    tended.done.clear()
    tended.wait(3_600)
    kinds = (actions.CreateRoot, actions.MakeFork, actions.Adopt, actions.Describe)
    assert 0 < sum(isinstance(each, kinds) for each in tended.done) < 60


def test_what_is_refused_is_tried_again_as_late_as_was_asked_for() -> None:
    operator = began()
    (do,) = (each for each in operator.step(BEGIN, Elected(1)) if isinstance(each, Do))
    refusal = Refusal("too-many-requests", "slow down", retry_after_ms=7_000)
    effects = operator.step(BEGIN, Answered(do.number, refusal))
    assert woken_at(effects) == BEGIN + 7 * 10**9


def test_what_was_refused_and_may_be_shown_later_only_is_waited_for() -> None:
    status = ApplyStatus(ref=WHAT_IF, uid="u", status={"tail": 1}, cosmetic=True)
    operator = began(Plan((status,)))
    (do,) = (each for each in operator.step(BEGIN, Elected(1)) if isinstance(each, Do))
    operator.step(BEGIN, Answered(do.number, Refusal("away", "no answer")))
    assert operator.step(BEGIN + 10**9, TimerFired("wake"))[-1] == SetTimer(
        "wake", BEGIN + AROUND.cosmetic_ms * MS
    )


def test_a_time_that_has_come_doesnt_come_again_and_again() -> None:
    operator = began(Plan(WANTED.actions, BEGIN))
    (do,) = (each for each in operator.step(BEGIN, Elected(1)) if isinstance(each, Do))
    effects = operator.step(BEGIN, Answered(do.number, Refusal("away", "", retry_after_ms=9_000)))
    assert effects[-1] == SetTimer("wake", BEGIN + 9_000 * MS)


def test_an_answer_from_before_is_still_a_sight_but_nothing_more() -> None:
    operator = began(Plan())
    operator.step(BEGIN, Elected(1))
    found = Observed(ref=WHAT_IF, uid="u", version=7, body={"spec": {"parent": {"name": "o"}}})
    operator.step(BEGIN, Answered(99, found))
    assert operator.world.objects[WHAT_IF].version == 7


def test_what_has_ended_isnt_brought_back_by_an_answer_that_comes_late() -> None:
    operator = began()
    found = Observed(ref=Ref("Pod", "demo", "demo-0"), uid="u", version=1)
    operator.step(BEGIN, Seen(found))
    operator.step(BEGIN, Gone(found.ref, "u"))
    operator.step(BEGIN, Gone(found.ref, "never seen"))
    for uid in ("u", "never seen"):
        operator.step(BEGIN, Answered(1, replace(found, uid=uid, version=2)))
    assert operator.world.objects == {}


def test_the_older_of_two_sights_is_not_believed() -> None:
    operator = began(Plan())
    new = Observed(ref=WHAT_IF, uid="u", version=7, body={"spec": {"parent": {"name": "new"}}})
    old = Observed(ref=WHAT_IF, uid="u", version=6, body={"spec": {"parent": {"name": "old"}}})
    operator.step(BEGIN, Seen(new))
    operator.step(BEGIN, Seen(old))
    assert operator.world.forks[WHAT_IF].spec.parent.name == "new"


def test_a_look_that_began_before_a_fork_was_made_doesnt_unmake_it() -> None:
    tended = office()
    log(tended)
    before = Viewed(tended.service.owned(), tended.service.brokers())
    tended.operator.step(tended.now, TimerFired("look"))
    made = fork(tended)
    tended.tell(before)
    assert tended.operator.world.service.of(made.owner) is not None
    asked = [each for each in tended.done if isinstance(each, actions.MakeFork)]
    assert len(asked) == 1


def test_a_changed_spec_is_tried_at_once() -> None:
    tended = office()
    log(tended)
    tended.kube._check = lambda ref, _: "not today" if ref.kind == "Service" else None
    fork(tended)
    tended.wait(120)
    tended.kube._check = None
    tended.kube.edit(WHAT_IF, quota={"appendBytesPerSecond": 5})
    tended.settle()
    assert conditions(tended.operator.world.forks[WHAT_IF])["Ready"] == ("True", "Serving")


def test_a_fate_is_told_by_the_service_and_not_by_its_silence() -> None:
    tended = office()
    log(tended)
    made = fork(tended)
    id = made.status.log_id
    assert id is not None
    tended.tell(Viewed((), tended.service.brokers()))
    assert tended.operator.world.forks[WHAT_IF].status.phase == "Ready"
    tended.service.ask(actions.Squash(log=LogId(id)), 9)
    tended.wait(10)
    assert tended.operator.world.forks[WHAT_IF].status.phase == "Squashed"
    assert isinstance(tended.service.describe(LogId(id)), Refused)
