"""Actions in flight, and actions that succeed without effect."""

from anabranch_operator.plan.engine.actions import Apply, Delete
from anabranch_operator.plan.engine.object_state import Flight, InFlight, ObjectState
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import NO_EFFECT, key_of
from anabranch_operator.plan.engine.world import Surroundings, World

POOL, POD = Ref("BrokerPool", "demo", "demo"), Ref("Pod", "demo", "demo-0")
DELETE = Delete(ref=POD, uid="u")
APPLY = Apply(ref=POD, manifest={"kind": "Pod"})


def world() -> World:
    return World(Surroundings(namespace="demo", release="demo"))


def test_an_answer_finds_its_action_once() -> None:
    flying = InFlight(world())
    number = flying.start(POOL, APPLY)
    assert len(flying) == 1
    assert flying.finish(number) == Flight(POOL, APPLY)
    assert flying.finish(number) is None


def test_an_answer_to_a_deposed_leader_finds_nothing_of_the_next_one() -> None:
    flying = InFlight(world())
    number = flying.start(POOL, APPLY)
    flying.clear()
    assert flying.start(POOL, APPLY) != number
    assert flying.finish(number) is None


def test_a_pod_counts_as_going_while_its_deletion_is_in_flight() -> None:
    known = world()
    flying = InFlight(known)
    number = flying.start(POOL, DELETE)
    assert known.goes("u")
    flying.finish(number)
    assert not known.goes("u")


def test_an_action_that_changed_nothing_backs_off_when_it_is_wanted_again() -> None:
    state = ObjectState()
    state.done[key_of(APPLY)] = (APPLY, 7)
    assert state.unrepeated((APPLY, DELETE), lambda _: 7, 0) == (DELETE,)
    (trouble,) = state.troubles
    assert trouble.refusal.code == NO_EFFECT


def test_an_action_is_wanted_again_rightly_once_the_object_has_changed() -> None:
    state = ObjectState()
    state.done[key_of(APPLY)] = (APPLY, 7)
    assert state.unrepeated((APPLY,), lambda _: 8, 0) == (APPLY,)
    assert not state.troubles
