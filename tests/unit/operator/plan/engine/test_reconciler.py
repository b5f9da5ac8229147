"""Objects are planned one by one; the outcomes of actions decide when that happens again."""

from collections.abc import Callable

from anabranch.core.machine import SetTimer
from anabranch.core.types import MS
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import Action, Apply, Plan
from anabranch_operator.plan.engine.events import Do, Effect, Note, Refusal
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.plan_queue import WAKE
from anabranch_operator.plan.engine.reconciler import Reconciler
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import Surroundings, World

A, B = Ref(names.POOL, "demo", "a"), Ref(names.POOL, "demo", "b")
ACTION = Apply(ref=Ref("Service", "demo", "a"), manifest={})
SECOND = 1_000 * MS


def reconciler(plan: Callable[[Ref], Plan], in_flight_max: int = 64) -> Reconciler:
    """Of two pools that were seen, and a log service that was looked at."""
    around = Surroundings(
        namespace="demo", release="demo", in_flight_max=in_flight_max, resync_ms=300_000
    )
    world = World(around)
    world.service.looked = True
    for ref in (A, B):
        world.observe(Observed(ref=ref, uid=ref.name, version=1, body={"spec": {"image": "x"}}))

    def planner(world: World, ref: Ref, now: int, troubles: Troubles) -> Plan:
        del world, now, troubles
        return plan(ref)

    return Reconciler(world, {names.POOL: planner})


def run(machine: Reconciler, now: int = 0) -> list[Effect]:
    return list(machine.run(now))


def actions(effects: list[Effect]) -> list[Action]:
    return [each.action for each in effects if isinstance(each, Do)]


def test_an_object_without_anything_to_do_is_steady_until_the_next_resync() -> None:
    machine = reconciler(lambda _: Plan())
    machine.wake([A], 0)
    assert run(machine) == [Note(1, A, "steady"), SetTimer(WAKE, 300 * SECOND)]
    assert machine.counters.steady == 1


def test_an_object_isnt_planned_again_before_its_actions_are_answered() -> None:
    machine = reconciler(lambda _: Plan((ACTION,)))
    machine.wake([A], 0)
    effects = run(machine)
    assert actions(effects) == [ACTION]
    machine.wake([A], 0)
    assert actions(run(machine)) == []
    (do,) = (each for each in effects if isinstance(each, Do))
    flight = machine.finish(do.number)
    assert flight is not None
    machine.fail(flight, Refusal("invalid", "no"), 0)
    machine.wake([A], 0)
    assert actions(run(machine)) == [], "it was refused a moment ago"
    machine.wake([A], 1 * SECOND)
    assert actions(run(machine, 1 * SECOND)) == [ACTION]


def test_others_wait_in_the_queue_while_there_is_no_room_for_actions() -> None:
    machine = reconciler(lambda _: Plan((ACTION,)), in_flight_max=1)
    machine.wake([A, B], 7)
    assert [each.ref for each in run(machine, 7) if isinstance(each, Do)] == [A]
    assert (machine.counters.queued, machine.counters.oldest_queued_at) == (1, 7)


def test_a_plan_that_raises_is_told_and_holds_up_no_other() -> None:
    def plan(ref: Ref) -> Plan:
        assert ref != A, "nobody thought of this"
        return Plan((ACTION,))

    machine = reconciler(plan)
    machine.wake([A, B], 0)
    effects = run(machine)
    failed = [each for each in effects if isinstance(each, Note) and each.result == "failed"]
    assert [each.ref for each in failed] == [A]
    assert actions(effects) == [ACTION]


def test_an_object_that_is_gone_is_forgotten_and_never_planned() -> None:
    machine = reconciler(lambda _: Plan((ACTION,)))
    machine.wake([A, Ref(names.POOL, "demo", "nobody")], 0)
    machine.forget(A)
    assert actions(run(machine)) == []


def test_a_deposed_leaders_answers_find_nothing() -> None:
    machine = reconciler(lambda _: Plan((ACTION,)))
    machine.wake([A], 0)
    (do,) = (each for each in run(machine) if isinstance(each, Do))
    machine.stop()
    assert machine.finish(do.number) is None
