"""Brokers replaced, mended and let go: by examples, and by whatever Hypothesis does to a pool."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.broker_pool import BAD, NAMESPACE, POOL, PoolHarness

from anabranch.core.bolt.protocol.commands import CreateLog
from anabranch.core.bolt.protocol.commands import DrainBroker as Drained
from anabranch.core.errors import DeadlineExceeded
from anabranch_operator.plan.engine.actions import Create, Delete, DrainBroker, ForgetBroker
from anabranch_operator.plan.engine.events import Refusal
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.pool.health import START_UP_MS
from anabranch_operator.plan.pool.pools import plan_pool

START_UP_S = START_UP_MS // 1_000


def spec_of(harness: PoolHarness, name: str = "demo-0") -> dict[str, Any]:
    return harness.kube.documents[Ref("Pod", NAMESPACE, name)]["spec"]


def state_of(harness: PoolHarness) -> dict[str, str]:
    return {each.pod: each.state for each in harness.status.brokers}


def test_the_least_loaded_goes_first() -> None:
    harness = PoolHarness(replicas=3, max=3)
    harness.settle()
    busy = harness.busiest().ref.name
    harness.edit(replicas=2)
    harness.settle()
    assert busy in harness.names()
    assert harness.status.ready == 2


def test_nobody_goes_while_it_isnt_known_whether_another_was_drained() -> None:
    harness = PoolHarness(replicas=3, max=3)
    harness.settle()
    office, troubles = harness.office, Troubles()
    harness.kube.edit(POOL, replicas=2)
    edited = harness.kube.get(POOL)
    assert edited is not None
    office.operator.world.observe(edited)

    def drains() -> list[str]:
        plan = plan_pool(office.operator.world, POOL, office.now, troubles)
        return [each.broker for each in plan.actions if isinstance(each, DrainBroker)]

    (going,) = drains()
    other = next(each for each in office.service.brokers() if each.name != going)
    lost = Refusal(DeadlineExceeded.code, "it may or may not have happened")
    troubles.note(DrainBroker(broker=other.name, epoch=other.epoch), lost, office.now)
    assert drains() == []
    troubles.clear()
    assert drains() == [going]


def test_a_drained_broker_serves_nothing_when_it_is_deleted(harness: PoolHarness) -> None:
    busy = harness.busiest().ref.name
    harness.office.done.clear()
    harness.edit(image="better")
    harness.settle()
    done = harness.done(DrainBroker, Delete)
    assert [type(each) for each in done] == [DrainBroker, Delete] * 2
    assert any(isinstance(each, DrainBroker) and each.broker.startswith(busy) for each in done)
    assert sum(seat.roots for seat in harness.office.service.brokers()) == 1


def test_pods_of_an_older_spec_are_replaced_and_another_comes_first(harness: PoolHarness) -> None:
    harness.edit(image="better")
    assert harness.condition("Progressing")[:2] == ("True", "Rolling")
    harness.settle()
    kinds = [type(each) for each in harness.done(Create, DrainBroker)]
    assert kinds == [Create, DrainBroker, Create, DrainBroker]
    assert {spec_of(harness, name)["containers"][0]["image"] for name in harness.names()} == {
        "better"
    }
    assert harness.condition("Progressing")[:2] == ("False", "UpToDate")
    assert harness.status.updated == 2


def test_where_there_is_room_none_is_made_first() -> None:
    harness = PoolHarness(replicas=3, max=3)
    harness.settle()
    harness.office.done.clear()
    harness.edit(image="better")
    harness.settle()
    kinds = [type(each) for each in harness.done(Create, DrainBroker)]
    assert kinds == [DrainBroker, Create] * 3


@pytest.mark.parametrize("policy", ["OnDelete", "Paused"])
def test_other_policies_leave_pods_alone_that_serve(harness: PoolHarness, policy: str) -> None:
    harness.edit(image="better", rollout={"policy": policy})
    harness.settle()
    assert not harness.done(DrainBroker, Delete, Create)
    assert harness.status.updated == 0
    harness.kube.delete(Ref("Pod", NAMESPACE, "demo-1"))
    harness.settle()
    assert harness.status.updated == 1


def test_a_bad_spec_breaks_one_more_and_no_others_and_can_be_mended(harness: PoolHarness) -> None:
    before = {pod.uid for pod in harness.pods()}
    harness.edit(image=BAD)
    harness.settle()
    assert before <= {pod.uid for pod in harness.pods()}
    assert harness.status.ready == 2
    assert len(harness.names()) == 3
    assert harness.condition("RolloutBlocked")[:2] == ("True", "PodsFailing")
    status, _, message = harness.condition("Degraded")
    assert status == "True"
    assert "CrashLoopBackOff" in message
    harness.office.done.clear()
    harness.office.wait(START_UP_S)
    assert len(harness.done(Create)) <= 1, "no more than one try in ten minutes"
    harness.edit(image="better")
    harness.settle()
    assert (harness.status.ready, harness.status.updated, len(harness.names())) == (2, 2, 2)
    assert harness.condition("RolloutBlocked")[0] == "False"
    assert harness.condition("Degraded")[0] == "False"


def test_a_spec_that_was_bad_from_the_start_is_mended_at_once() -> None:
    harness = PoolHarness(image=BAD)
    harness.settle()
    assert harness.status.ready == 0
    assert len(harness.names()) <= 3
    harness.office.service_away = "no broker answers"
    harness.office.wait(11)
    harness.edit(image="good")
    harness.settle()
    assert {spec_of(harness, name)["containers"][0]["image"] for name in harness.names()} == {
        "good"
    }
    harness.office.service_away = None
    harness.settle()
    assert (harness.status.ready, len(harness.names())) == (2, 2)


def test_a_broker_that_fails_is_stood_in_for_and_goes_when_another_is_ready(
    harness: PoolHarness,
) -> None:
    broken = harness.pods()[0]
    harness.frozen[broken.uid] = None
    harness.crash(broken)
    harness.settle()
    assert broken.uid not in {pod.uid for pod in harness.pods() if not pod.deleting}
    assert harness.status.ready == 2
    assert "demo-2" in harness.names()


def test_one_that_fails_for_long_is_tried_anew_where_others_serve(harness: PoolHarness) -> None:
    for _ in range(2):
        broken = next(pod for pod in harness.pods() if pod.ref.name != "demo-1")
        broken = broken if broken.uid not in harness.frozen else harness.pod("demo-2")
        harness.frozen[broken.uid] = None
        harness.crash(broken)
        harness.office.wait(11)
    assert len(harness.names()) == 3
    assert harness.status.ready == 1
    harness.office.wait(START_UP_S)
    harness.settle()
    assert harness.status.ready == harness.status.replicas == 2


def test_a_pod_that_ended_is_made_again_but_never_in_a_hurry(harness: PoolHarness) -> None:
    harness.kube.report(Ref("Pod", NAMESPACE, "demo-0"), {"phase": "Failed", "reason": "Evicted"})
    harness.settle()
    assert harness.status.ready == 2
    assert len(harness.names()) == 2


def test_a_pod_without_a_node_is_told_of_and_kept(harness: PoolHarness) -> None:
    for number in range(4):
        harness.cordon(f"node-{number}", on=True)
    harness.edit(replicas=2)
    harness.settle()
    assert harness.status.ready == 2
    assert state_of(harness)["demo-2"] == "starting"
    harness.office.wait(START_UP_S)
    assert state_of(harness)["demo-2"] == "failing"
    assert len(harness.names()) == 3
    for number in range(4):
        harness.cordon(f"node-{number}", on=False)
    harness.settle()
    assert (harness.status.ready, len(harness.names())) == (2, 2)


def test_a_broker_whose_pod_was_started_again_has_a_life_of_its_own(harness: PoolHarness) -> None:
    old = harness.pods()[0]
    harness.kube.delete(old.ref, old.uid)
    harness.settle()
    new = harness.pod("demo-2")
    assert new.uid != old.uid
    forgotten = [each.broker for each in harness.done(ForgetBroker)]
    assert forgotten == [f"demo-0.{old.uid}"]
    assert {each.pod for each in harness.status.brokers} == {"demo-1", "demo-2"}


def test_one_that_is_stuck_on_a_dead_node_holds_up_nobody(harness: PoolHarness) -> None:
    stuck = harness.pods()[0]
    harness.frozen[stuck.uid] = None
    harness.lose(stuck)
    harness.kube.delete(stuck.ref, stuck.uid)
    harness.settle()
    harness.edit(image="better")
    harness.office.wait(120)
    harness.settle()
    staying = [pod for pod in harness.pods() if not pod.deleting]
    assert harness.status.ready == len(staying) == 2
    assert harness.status.updated == 2
    assert harness.pod(stuck.ref.name).deleting


def test_an_administrators_drain_is_followed_by_another_pod(harness: PoolHarness) -> None:
    pod = harness.pods()[1]
    seat = harness.seat(pod)
    assert seat is not None
    harness.office.service.command(Drained(seat.name, seat.epoch))
    harness.settle()
    assert pod.uid not in {each.uid for each in harness.pods()}
    assert harness.status.ready == 2


def test_nobody_is_drained_while_the_log_service_is_away(harness: PoolHarness) -> None:
    harness.office.service_away = "it doesn't answer"
    harness.office.wait(11)
    harness.edit(image="better")
    harness.settle()
    assert harness.condition("RolloutBlocked")[:2] == ("True", "WaitingForBrokers")
    assert harness.condition("Ready")[:2] == ("False", "ServiceAway")
    assert harness.status.updated <= 1
    assert not harness.done(DrainBroker, Delete)
    harness.office.service_away = None
    harness.settle()
    assert harness.status.updated == 2


def test_an_operator_that_ends_anywhere_in_a_roll_out_is_followed_by_one_that_ends_it(
    harness: PoolHarness,
) -> None:
    judge = harness.office.crash
    assert judge is not None
    left = [0]

    def crash(action: Any) -> bool:
        judge(action)
        left[0] -= 1
        return left[0] == 0

    harness.office.crash = crash
    for image in range(12):
        left[0] = image + 1
        harness.edit(image=f"image-{image}")
        harness.settle()
        assert (harness.status.ready, harness.status.updated) == (2, 2)
        assert len(harness.names()) == 2


OPS = (
    "step",
    "step",
    "step",
    "crash",
    "finish",
    "lose",
    "evict",
    "cordon",
    "uncordon",
    "image",
    "bad image",
    "replicas",
    "no replicas",
    "kill",
    "freeze",
    "thaw",
    "away",
    "back",
    "wait",
    "restart",
    "log",
    "paused",
    "resumed",
)


def do(harness: PoolHarness, op: str, number: int) -> None:
    pods = harness.pods()
    pod = pods[number % len(pods)] if pods else None
    match op:
        case "step":
            harness.step()
        case "crash" if pod and pod.spec.get("nodeName") and not pod.deleting:
            harness.crash(pod)
        case "finish" if pod and not pod.deleting:
            harness.kube.report(pod.ref, {"phase": "Failed", "reason": "Evicted"})
        case "lose" if pod:
            harness.lose(pod)
        case "evict" if pod:
            harness.evict(pod)
        case "cordon" | "uncordon":
            harness.cordon(f"node-{number % 4}", on=op == "cordon")
        case "image":
            harness.edit(image=f"image-{number}")
        case "bad image":
            harness.edit(image=BAD)
        case "replicas":
            harness.edit(replicas=2 + number % 3)
        case "no replicas":
            harness.edit(replicas=None)
        case "kill" if pod:
            harness.kube.delete(pod.ref, pod.uid)
        case "freeze" if pod:
            harness.frozen[pod.uid] = None
        case "thaw":
            harness.frozen.clear()
        case "away" | "back":
            harness.office.service_away = "it doesn't answer" if op == "away" else None
        case "wait":
            harness.office.wait(number * 100)
        case "restart":
            harness.office.restart()
        case "log":
            harness.office.service.command(CreateLog(f"log-{number}"))
        case "paused" | "resumed":
            harness.kube.annotate(POOL, paused="true" if op == "paused" else "false")
        case _:
            pass
    harness.office.settle()


@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 9)), max_size=30))
def test_whatever_happens_it_comes_to_rest_with_what_was_asked_for(
    ops: list[tuple[str, int]],
) -> None:
    harness = PoolHarness(scaling={"logsPerBroker": 3})
    for op, number in ops:
        do(harness, op, number)
    for op in ("back", "thaw", "resumed"):
        do(harness, op, 0)
    for node in range(4):
        harness.cordon(f"node-{node}", on=False)
    harness.edit(image="last")
    harness.settle()
    harness.measure()
    harness.office.wait(3_600)
    harness.settle()
    status = harness.status
    assert status.ready == status.updated == status.replicas == status.desired
    assert len(harness.names()) == status.desired
    seats = [seat.name for seat in harness.office.service.brokers()]
    assert sorted(seats) == sorted(f"{pod.ref.name}.{pod.uid}" for pod in harness.pods())
    assert {each.type: each.status for each in status.conditions} == {
        "Ready": "True",
        "Progressing": "False",
        "Degraded": "False",
        "PoolExhausted": harness.condition("PoolExhausted")[0],
        "RolloutBlocked": "False",
        "ServiceReachable": "True",
    }
    version = harness.kube.version
    harness.office.wait(7_200)
    assert harness.kube.version == version
