"""Brokers replaced, mended and let go: by examples, and by whatever Hypothesis does to a pool."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.harbour import BAD, NAMESPACE, POOL, Harbour

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


def spec_of(harbour: Harbour, name: str = "demo-0") -> dict[str, Any]:
    return harbour.kube.documents[Ref("Pod", NAMESPACE, name)]["spec"]


def state_of(harbour: Harbour) -> dict[str, str]:
    return {each.pod: each.state for each in harbour.status.brokers}


def test_the_least_loaded_goes_first() -> None:
    harbour = Harbour(replicas=3, max=3)
    harbour.settle()
    busy = harbour.busiest().ref.name
    harbour.edit(replicas=2)
    harbour.settle()
    assert busy in harbour.names()
    assert harbour.status.ready == 2


def test_nobody_goes_while_it_isnt_known_whether_another_was_drained() -> None:
    harbour = Harbour(replicas=3, max=3)
    harbour.settle()
    office, troubles = harbour.office, Troubles()
    harbour.kube.edit(POOL, replicas=2)
    edited = harbour.kube.get(POOL)
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


def test_a_drained_broker_serves_nothing_when_it_is_deleted(harbour: Harbour) -> None:
    busy = harbour.busiest().ref.name
    harbour.office.done.clear()
    harbour.edit(image="better")
    harbour.settle()
    done = harbour.done(DrainBroker, Delete)
    assert [type(each) for each in done] == [DrainBroker, Delete] * 2
    assert any(isinstance(each, DrainBroker) and each.broker.startswith(busy) for each in done)
    assert sum(seat.roots for seat in harbour.office.service.brokers()) == 1


def test_pods_of_an_older_spec_are_replaced_and_another_comes_first(harbour: Harbour) -> None:
    harbour.edit(image="better")
    assert harbour.condition("Progressing")[:2] == ("True", "Rolling")
    harbour.settle()
    kinds = [type(each) for each in harbour.done(Create, DrainBroker)]
    assert kinds == [Create, DrainBroker, Create, DrainBroker]
    assert {spec_of(harbour, name)["containers"][0]["image"] for name in harbour.names()} == {
        "better"
    }
    assert harbour.condition("Progressing")[:2] == ("False", "UpToDate")
    assert harbour.status.updated == 2


def test_where_there_is_room_none_is_made_first() -> None:
    harbour = Harbour(replicas=3, max=3)
    harbour.settle()
    harbour.office.done.clear()
    harbour.edit(image="better")
    harbour.settle()
    kinds = [type(each) for each in harbour.done(Create, DrainBroker)]
    assert kinds == [DrainBroker, Create] * 3


@pytest.mark.parametrize("policy", ["OnDelete", "Paused"])
def test_other_policies_leave_pods_alone_that_serve(harbour: Harbour, policy: str) -> None:
    harbour.edit(image="better", rollout={"policy": policy})
    harbour.settle()
    assert not harbour.done(DrainBroker, Delete, Create)
    assert harbour.status.updated == 0
    harbour.kube.delete(Ref("Pod", NAMESPACE, "demo-1"))
    harbour.settle()
    assert harbour.status.updated == 1


def test_a_bad_spec_breaks_one_more_and_no_others_and_can_be_mended(harbour: Harbour) -> None:
    before = {pod.uid for pod in harbour.pods()}
    harbour.edit(image=BAD)
    harbour.settle()
    assert before <= {pod.uid for pod in harbour.pods()}
    assert harbour.status.ready == 2
    assert len(harbour.names()) == 3
    assert harbour.condition("RolloutBlocked")[:2] == ("True", "PodsFailing")
    status, _, message = harbour.condition("Degraded")
    assert status == "True"
    assert "CrashLoopBackOff" in message
    harbour.office.done.clear()
    harbour.office.wait(START_UP_S)
    assert len(harbour.done(Create)) <= 1, "no more than one try in ten minutes"
    harbour.edit(image="better")
    harbour.settle()
    assert (harbour.status.ready, harbour.status.updated, len(harbour.names())) == (2, 2, 2)
    assert harbour.condition("RolloutBlocked")[0] == "False"
    assert harbour.condition("Degraded")[0] == "False"


def test_a_spec_that_was_bad_from_the_start_is_mended_at_once() -> None:
    harbour = Harbour(image=BAD)
    harbour.settle()
    assert harbour.status.ready == 0
    assert len(harbour.names()) <= 3
    harbour.office.service_away = "no broker answers"
    harbour.office.wait(11)
    harbour.edit(image="good")
    harbour.settle()
    assert {spec_of(harbour, name)["containers"][0]["image"] for name in harbour.names()} == {
        "good"
    }
    harbour.office.service_away = None
    harbour.settle()
    assert (harbour.status.ready, len(harbour.names())) == (2, 2)


def test_a_broker_that_fails_is_stood_in_for_and_goes_when_another_is_ready(
    harbour: Harbour,
) -> None:
    broken = harbour.pods()[0]
    harbour.frozen[broken.uid] = None
    harbour.crash(broken)
    harbour.settle()
    assert broken.uid not in {pod.uid for pod in harbour.pods() if not pod.deleting}
    assert harbour.status.ready == 2
    assert "demo-2" in harbour.names()


def test_one_that_fails_for_long_is_tried_anew_where_others_serve(harbour: Harbour) -> None:
    for _ in range(2):
        broken = next(pod for pod in harbour.pods() if pod.ref.name != "demo-1")
        broken = broken if broken.uid not in harbour.frozen else harbour.pod("demo-2")
        harbour.frozen[broken.uid] = None
        harbour.crash(broken)
        harbour.office.wait(11)
    assert len(harbour.names()) == 3
    assert harbour.status.ready == 1
    harbour.office.wait(START_UP_S)
    harbour.settle()
    assert harbour.status.ready == harbour.status.replicas == 2


def test_a_pod_that_ended_is_made_again_but_never_in_a_hurry(harbour: Harbour) -> None:
    harbour.kube.report(Ref("Pod", NAMESPACE, "demo-0"), {"phase": "Failed", "reason": "Evicted"})
    harbour.settle()
    assert harbour.status.ready == 2
    assert len(harbour.names()) == 2


def test_a_pod_without_a_node_is_told_of_and_kept(harbour: Harbour) -> None:
    for number in range(4):
        harbour.cordon(f"node-{number}", on=True)
    harbour.edit(replicas=2)
    harbour.settle()
    assert harbour.status.ready == 2
    assert state_of(harbour)["demo-2"] == "starting"
    harbour.office.wait(START_UP_S)
    assert state_of(harbour)["demo-2"] == "failing"
    assert len(harbour.names()) == 3
    for number in range(4):
        harbour.cordon(f"node-{number}", on=False)
    harbour.settle()
    assert (harbour.status.ready, len(harbour.names())) == (2, 2)


def test_a_broker_whose_pod_was_started_again_has_a_life_of_its_own(harbour: Harbour) -> None:
    old = harbour.pods()[0]
    harbour.kube.delete(old.ref, old.uid)
    harbour.settle()
    new = harbour.pod("demo-2")
    assert new.uid != old.uid
    forgotten = [each.broker for each in harbour.done(ForgetBroker)]
    assert forgotten == [f"demo-0.{old.uid}"]
    assert {each.pod for each in harbour.status.brokers} == {"demo-1", "demo-2"}


def test_one_that_is_stuck_on_a_dead_node_holds_up_nobody(harbour: Harbour) -> None:
    stuck = harbour.pods()[0]
    harbour.frozen[stuck.uid] = None
    harbour.lose(stuck)
    harbour.kube.delete(stuck.ref, stuck.uid)
    harbour.settle()
    harbour.edit(image="better")
    harbour.office.wait(120)
    harbour.settle()
    staying = [pod for pod in harbour.pods() if not pod.deleting]
    assert harbour.status.ready == len(staying) == 2
    assert harbour.status.updated == 2
    assert harbour.pod(stuck.ref.name).deleting


def test_an_administrators_drain_is_followed_by_another_pod(harbour: Harbour) -> None:
    pod = harbour.pods()[1]
    seat = harbour.seat(pod)
    assert seat is not None
    harbour.office.service.command(Drained(seat.name, seat.epoch))
    harbour.settle()
    assert pod.uid not in {each.uid for each in harbour.pods()}
    assert harbour.status.ready == 2


def test_nobody_is_drained_while_the_log_service_is_away(harbour: Harbour) -> None:
    harbour.office.service_away = "it doesn't answer"
    harbour.office.wait(11)
    harbour.edit(image="better")
    harbour.settle()
    assert harbour.condition("RolloutBlocked")[:2] == ("True", "WaitingForBrokers")
    assert harbour.condition("Ready")[:2] == ("False", "ServiceAway")
    assert harbour.status.updated <= 1
    assert not harbour.done(DrainBroker, Delete)
    harbour.office.service_away = None
    harbour.settle()
    assert harbour.status.updated == 2


def test_an_operator_that_ends_anywhere_in_a_roll_out_is_followed_by_one_that_ends_it(
    harbour: Harbour,
) -> None:
    judge = harbour.office.crash
    assert judge is not None
    left = [0]

    def crash(action: Any) -> bool:
        judge(action)
        left[0] -= 1
        return left[0] == 0

    harbour.office.crash = crash
    for image in range(12):
        left[0] = image + 1
        harbour.edit(image=f"image-{image}")
        harbour.settle()
        assert (harbour.status.ready, harbour.status.updated) == (2, 2)
        assert len(harbour.names()) == 2


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


def do(harbour: Harbour, op: str, number: int) -> None:
    pods = harbour.pods()
    pod = pods[number % len(pods)] if pods else None
    match op:
        case "step":
            harbour.step()
        case "crash" if pod and pod.spec.get("nodeName") and not pod.deleting:
            harbour.crash(pod)
        case "finish" if pod and not pod.deleting:
            harbour.kube.report(pod.ref, {"phase": "Failed", "reason": "Evicted"})
        case "lose" if pod:
            harbour.lose(pod)
        case "evict" if pod:
            harbour.evict(pod)
        case "cordon" | "uncordon":
            harbour.cordon(f"node-{number % 4}", on=op == "cordon")
        case "image":
            harbour.edit(image=f"image-{number}")
        case "bad image":
            harbour.edit(image=BAD)
        case "replicas":
            harbour.edit(replicas=2 + number % 3)
        case "no replicas":
            harbour.edit(replicas=None)
        case "kill" if pod:
            harbour.kube.delete(pod.ref, pod.uid)
        case "freeze" if pod:
            harbour.frozen[pod.uid] = None
        case "thaw":
            harbour.frozen.clear()
        case "away" | "back":
            harbour.office.service_away = "it doesn't answer" if op == "away" else None
        case "wait":
            harbour.office.wait(number * 100)
        case "restart":
            harbour.office.restart()
        case "log":
            harbour.office.service.command(CreateLog(f"log-{number}"))
        case "paused" | "resumed":
            harbour.kube.annotate(POOL, paused="true" if op == "paused" else "false")
        case _:
            pass
    harbour.office.settle()


@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 9)), max_size=30))
def test_whatever_happens_it_comes_to_rest_with_what_was_asked_for(
    ops: list[tuple[str, int]],
) -> None:
    harbour = Harbour(scaling={"logsPerBroker": 3})
    for op, number in ops:
        do(harbour, op, number)
    for op in ("back", "thaw", "resumed"):
        do(harbour, op, 0)
    for node in range(4):
        harbour.cordon(f"node-{node}", on=False)
    harbour.edit(image="last")
    harbour.settle()
    harbour.measure()
    harbour.office.wait(3_600)
    harbour.settle()
    status = harbour.status
    assert status.ready == status.updated == status.replicas == status.desired
    assert len(harbour.names()) == status.desired
    seats = [seat.name for seat in harbour.office.service.brokers()]
    assert sorted(seats) == sorted(f"{pod.ref.name}.{pod.uid}" for pod in harbour.pods())
    assert {each.type: each.status for each in status.conditions} == {
        "Ready": "True",
        "Progressing": "False",
        "Degraded": "False",
        "PoolExhausted": harbour.condition("PoolExhausted")[0],
        "RolloutBlocked": "False",
        "ServiceReachable": "True",
    }
    version = harbour.kube.version
    harbour.office.wait(7_200)
    assert harbour.kube.version == version
