"""The queue of objects to plan, and the times at which objects are planned again."""

from anabranch.core.machine import SetTimer
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.plan_queue import WAKE, PlanQueue, Wakeups

A, B = Ref("Log", "demo", "a"), Ref("Log", "demo", "b")


def test_objects_are_planned_in_the_order_in_which_they_were_woken() -> None:
    queue = PlanQueue()
    queue.push(A, 1)
    queue.push(B, 2)
    assert queue.oldest_at == 1
    assert [queue.pop(), queue.pop()] == [A, B]
    assert queue.oldest_at is None


def test_an_object_woken_twice_is_planned_once_and_keeps_its_place() -> None:
    queue = PlanQueue()
    queue.push(A, 1)
    queue.push(B, 2)
    queue.push(A, 3)
    assert len(queue) == 2
    assert queue.pop() == A
    queue.push(A, 4)
    assert [queue.pop(), queue.pop()] == [B, A]


def test_the_timer_is_set_for_the_earliest_time_and_once() -> None:
    wakeups = Wakeups()
    wakeups.set(A, 20)
    assert list(wakeups.timer()) == [SetTimer(WAKE, 20)]
    assert list(wakeups.timer()) == []
    wakeups.set(B, 10)
    assert list(wakeups.timer()) == [SetTimer(WAKE, 10)]


def test_only_objects_whose_time_has_come_are_due() -> None:
    wakeups = Wakeups()
    wakeups.set(A, 10)
    wakeups.set(B, 20)
    assert list(wakeups.due(10)) == [A]
    assert list(wakeups.timer()) == [SetTimer(WAKE, 20)]
    assert list(wakeups.due(20)) == [B]
    assert list(wakeups.timer()) == []


def test_a_later_time_replaces_an_earlier_one() -> None:
    wakeups = Wakeups()
    wakeups.set(A, 10)
    wakeups.set(A, 30)
    assert list(wakeups.due(10)) == []
    assert list(wakeups.due(30)) == [A]


def test_a_forgotten_object_is_never_due() -> None:
    wakeups = Wakeups()
    wakeups.set(A, 10)
    wakeups.forget(A)
    assert list(wakeups.due(10)) == []
