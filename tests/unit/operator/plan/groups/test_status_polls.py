"""What Belfast logs say of themselves: what comes late, or from who was deposed, isn't believed."""

from typing import Any

from msgspec.structs import replace
from tests.unit.operator.belfast_log import GROUP, LOG, BelfastHarness

from anabranch_operator.api import names
from anabranch_operator.plan.engine.events import Visited
from anabranch_operator.plan.engine.world import World
from anabranch_operator.plan.groups.report import Standing
from anabranch_operator.plan.groups.status_polls import Visits, current, moved, told, trouble


def world(**sequencers: Any) -> World:
    harness = BelfastHarness(**sequencers)
    harness.settle()
    return harness.office.operator.world


def answer(known: World, **fields: Any) -> Visited:
    status = told(known, LOG)
    assert status is not None
    return Visited(LOG, known.sequencers[LOG].object.uid, replace(status, **fields))


def standing(known: World, name: str) -> Standing:
    status = told(known, LOG)
    assert status is not None
    return next(each.standing for each in status.shards if each.name == name)


def test_an_answer_from_before_a_shard_was_moved_is_not_taken() -> None:
    known = world()
    visits = Visits(known)
    (asked,) = visits.due()
    late = answer(known)
    moved(known, LOG, "orders-1", (Standing.SEATED,), Standing.LEAVING)
    assert list(visits.take(late)) == []
    assert standing(known, "orders-1") is Standing.LEAVING
    assert list(visits.due()) == [asked]
    assert list(visits.take(late)) == [LOG, GROUP]
    assert standing(known, "orders-1") is Standing.SEATED


def test_an_answer_is_of_the_time_when_it_was_asked_for() -> None:
    """And whoever waits for a later one is planned when that comes, though it says the same."""
    known = world()
    visits = Visits(known)
    tuple(visits.due())
    (pod, _) = (each for each in known.of_kind("Pod") if each.ref.name.startswith("orders-0"))
    assert pod.labels[names.SHARD_LABEL] == "orders-0"
    known.lose(pod.ref, pod.uid)
    tuple(visits.take(answer(known)))
    assert not current(known, LOG)
    tuple(visits.due())
    assert list(visits.take(answer(known))) == [LOG, GROUP]
    assert current(known, LOG)


def test_who_was_deposed_tells_nothing() -> None:
    known = world()
    visits = Visits(known)
    found = answer(known)
    assert found.report is not None
    for term, index, believed in ((3, 7, True), (2, 9, False), (3, 6, False), (3, 7, True)):
        tuple(visits.due())
        status = replace(found.report, age=(term, index))
        tuple(visits.take(replace(found, report=status)))
        assert (told(known, LOG) == status) is believed
        assert bool(trouble(known, LOG)) is not believed


def test_one_that_is_alone_may_begin_anew() -> None:
    known = world(members=1, storage={"ephemeral": True})
    visits = Visits(known)
    for term in (3, 1):
        tuple(visits.due())
        tuple(visits.take(answer(known, age=(term, 0))))
        status = told(known, LOG)
        assert status is not None
        assert status.age == (term, 0)


def test_while_pods_of_an_earlier_set_answer_nobody_is_asked() -> None:
    """They would tell of its log, at terms that the new one has yet to come to."""
    known = world()
    visits = Visits(known)
    made = known.sequencers[LOG]
    known.sequencers[LOG] = replace(made, object=replace(made.object, uid="made-anew"))
    pods = [each for each in known.of_kind("Pod") if "sequencer" in each.ref.name]
    for pod in pods:
        assert list(visits.due()) == []
        known.lose(pod.ref, pod.uid)
    assert [each.uid for each in visits.due()] == ["made-anew"]
