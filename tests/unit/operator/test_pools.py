"""Pools: made, scaled, replaced, healed; by examples, and by whatever Hypothesis does to one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.harbour import BAD, NAMESPACE, POOL, Harbour

from anabranch.core.bolt.commands import CreateLog, ForkLog
from anabranch.core.bolt.commands import DrainBroker as Drained
from anabranch.core.types import Kind, LogId
from anabranch_operator.api import names
from anabranch_operator.api.pool import PoolSpec
from anabranch_operator.plan.actions import Announce, Create, Delete, DrainBroker, ForgetBroker
from anabranch_operator.plan.events import Measured
from anabranch_operator.plan.health import START_UP_MS
from anabranch_operator.plan.objects import Ref
from anabranch_operator.plan.pods import template
from anabranch_operator.plan.quantities import whole

START_UP_S = START_UP_MS // 1_000


@pytest.fixture
def harbour() -> Harbour:
    made = Harbour()
    made.settle()
    made.office.done.clear()
    return made


def spec_of(harbour: Harbour, name: str = "demo-0") -> dict[str, Any]:
    return harbour.kube.documents[Ref("Pod", NAMESPACE, name)]["spec"]


def busiest(harbour: Harbour) -> str:
    """The pod that serves the root."""
    seat = next(each for each in harbour.office.service.brokers() if each.roots)
    return seat.name.partition(".")[0]


def state_of(harbour: Harbour) -> dict[str, str]:
    return {each.pod: each.state for each in harbour.status.brokers}


def test_a_pool_begins_with_as_many_as_it_must_have_and_comes_to_rest(harbour: Harbour) -> None:
    assert harbour.names() == ["demo-0", "demo-1"]
    status = harbour.status
    assert (status.replicas, status.ready, status.desired, status.updated) == (2, 2, 2, 2)
    assert status.selector == "anabranch.dev/pool=demo,anabranch.dev/role=broker"
    assert harbour.condition("Ready")[:2] == ("True", "PoolComplete")
    assert harbour.condition("Progressing")[:2] == ("False", "UpToDate")
    version = harbour.kube.version
    harbour.office.wait(7_200)
    assert harbour.kube.version == version
    assert not harbour.office.done


def test_a_broker_is_named_after_its_life_and_met_by_its_pods_name(harbour: Harbour) -> None:
    spec = spec_of(harbour)
    env = {each["name"]: each for each in spec["containers"][0]["env"]}
    assert env["ANABRANCH_NAME"]["value"] == "$(POD_NAME).$(POD_UID)"
    assert env["POD_UID"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"
    assert env["ANABRANCH_ADVERTISE"]["value"] == "$(POD_NAME).demo-brokers.demo.svc:7420"
    assert (spec["hostname"], spec["subdomain"]) == ("demo-0", "demo-brokers")
    grace = spec["terminationGracePeriodSeconds"] * 1_000
    assert int(env["ANABRANCH_DRAIN_MS"]["value"]) < grace


def test_certificates_accounts_settings_and_a_cache_come_as_the_spec_says() -> None:
    harbour = Harbour(
        tlsSecret="demo-broker-tls",
        peerTlsSecret="demo-peer-tls",
        serviceAccountName="demo-broker",
        config={"configMap": "demo-settings", "secrets": ["demo-s3"]},
        diskCache={"size": "10Gi"},
        topology={"hosts": "Required", "zones": False},
        podLabels={"team": "a"},
        podAnnotations={"checksum/settings": "1"},
    )
    document = harbour.kube.documents[Ref("Pod", NAMESPACE, "demo-0")]
    spec, container = document["spec"], document["spec"]["containers"][0]
    values = {each["name"]: each.get("value") for each in container["env"]}
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert values["ANABRANCH_PEER_TLS_CA"] == "/var/run/anabranch/peer/ca.crt"
    assert values["ANABRANCH_TLS_CERT"] == "/var/run/anabranch/tls/tls.crt"
    assert values["ANABRANCH_DISK_CACHE"] in mounts
    assert int(values["ANABRANCH_DISK_CACHE_BYTES"] or 0) < 10 * 1024**3
    assert {each["name"] for each in spec["volumes"]} == set(mounts.values())
    assert spec["serviceAccountName"] == "demo-broker"
    assert spec["automountServiceAccountToken"] is False
    assert [next(iter(each.values()))["name"] for each in container["envFrom"]] == [
        "demo-settings",
        "demo-s3",
    ]
    assert "requiredDuringSchedulingIgnoredDuringExecution" in spec["affinity"]["podAntiAffinity"]
    assert "topologySpreadConstraints" not in spec
    assert document["metadata"]["labels"]["team"] == "a"
    assert document["metadata"]["annotations"] == {"checksum/settings": "1"}


def test_pods_pass_pod_securitys_restricted_profile(harbour: Harbour) -> None:
    spec = spec_of(harbour)
    container = spec["containers"][0]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    allowed = {"emptyDir", "secret", "projected", "configMap"}
    assert all(set(each) & allowed for each in spec["volumes"])


def test_a_template_is_what_people_declare_of_pods_and_nothing_else() -> None:
    plain = PoolSpec(image="a")
    assert template(plain) == template(PoolSpec(image="a", min=3, max=9, spare=0, replicas=4))
    assert template(plain) == template(PoolSpec(image="a", drain_seconds=60))
    changed = [
        PoolSpec(image="b"),
        PoolSpec(image="a", drain_seconds=61),
        PoolSpec(image="a", pod_annotations={"checksum/settings": "2"}),
        PoolSpec(image="a", resources={"requests": {"cpu": "1"}}),
    ]
    assert len({template(each) for each in (plain, *changed)}) == 1 + len(changed)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("10Gi", 10 * 1024**3), ("1.5k", 1_500), ("2e3", 2_000), ("500m", 0), ("7", 7), ("x", None)],
)
def test_amounts_are_numbers(text: str, amount: int | None) -> None:
    assert whole(text) == amount


def test_replicas_are_followed_up_at_once_and_down_one_at_a_time(harbour: Harbour) -> None:
    harbour.edit(replicas=4)
    assert harbour.names() == ["demo-0", "demo-1", "demo-2", "demo-3"]
    harbour.settle()
    assert harbour.status.ready == 4
    harbour.office.done.clear()
    harbour.edit(replicas=2)
    harbour.settle()
    drained = harbour.done(DrainBroker)
    assert len(drained) == 2
    assert harbour.names() == ["demo-0", "demo-1"]
    assert not [each for each in harbour.office.service.brokers() if each.state != "ready"]


def test_the_least_loaded_goes_first() -> None:
    harbour = Harbour(replicas=3, max=3)
    harbour.settle()
    harbour.office.service.command(CreateLog("orders"))
    harbour.office.wait(11)
    busy = busiest(harbour)
    harbour.edit(replicas=2)
    harbour.settle()
    assert busy in harbour.names()
    assert harbour.status.ready == 2


def test_a_drained_broker_serves_nothing_when_it_is_deleted(harbour: Harbour) -> None:
    harbour.office.service.command(CreateLog("orders"))
    harbour.settle()
    busy = busiest(harbour)
    harbour.office.done.clear()
    harbour.edit(image="better")
    harbour.settle()
    done = harbour.done(DrainBroker, Delete)
    assert [type(each) for each in done] == [DrainBroker, Delete] * 2
    assert any(isinstance(each, DrainBroker) and each.broker.startswith(busy) for each in done)
    assert sum(seat.roots for seat in harbour.office.service.brokers()) == 1


def test_the_load_asks_for_more_at_once(harbour: Harbour) -> None:
    harbour.edit(scaling={"logsPerBroker": 1})
    for name in ("a", "b", "c"):
        harbour.office.service.command(CreateLog(name))
    harbour.office.wait(11)
    harbour.settle()
    assert harbour.status.desired == 4
    assert harbour.status.ready == 4


def test_bytes_ask_for_more_and_their_end_for_less_when_it_was_quiet() -> None:
    harbour = Harbour(scaling={"appendBytesPerBroker": 1_000}, spare=0, min=1)
    harbour.settle()
    assert harbour.status.desired == 1
    harbour.measure(demo_0=2_500.0)
    harbour.settle()
    assert harbour.status.desired == 3
    harbour.measure(demo_0=900.0, demo_1=900.0, demo_2=100.0)
    harbour.office.wait(301)
    harbour.settle()
    assert harbour.status.desired == 3, "a third more wouldn't fit on two"
    harbour.measure(demo_0=300.0, demo_1=300.0, demo_2=100.0)
    harbour.settle()
    assert harbour.status.desired == 2
    harbour.office.wait(200)
    assert harbour.status.desired == 2, "it has just moved"
    harbour.office.wait(150)
    harbour.settle()
    assert harbour.status.desired == 1


def test_a_pool_that_isnt_measured_isnt_made_smaller() -> None:
    harbour = Harbour(scaling={"appendBytesPerBroker": 1_000}, spare=0, min=1)
    harbour.measure(demo_0=2_500.0)
    harbour.settle()
    assert harbour.status.desired == 3
    for _ in range(3):
        harbour.office.tell(Measured({}))
        harbour.office.wait(1_000)
    assert harbour.status.desired == 3


def test_forks_that_wait_are_brokers_that_are_needed(harbour: Harbour) -> None:
    ref = Ref(names.FORK, NAMESPACE, "alone")
    meta = {"name": ref.name, "namespace": ref.namespace}
    spec = {"parent": {"name": "orders"}, "isolation": "Exclusive"}
    harbour.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})
    said = {
        "type": "Ready",
        "status": "False",
        "reason": "NoSpareBroker",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    harbour.edit(spare=2)
    harbour.kube.report(ref, {"phase": "Pending", "conditions": [said]})
    harbour.settle()
    assert (harbour.status.waiting, harbour.status.desired) == (1, 3)


def test_an_exclusive_fork_has_a_broker_and_the_spare_one_is_kept() -> None:
    harbour = Harbour(min=2, max=6, spare=1)
    harbour.settle()
    service = harbour.office.service
    root = service.command(CreateLog("orders"))
    fork = ForkLog(LogId(root.id), Kind.SEVERED, "alone", exclusive=True)
    service.command(fork)
    harbour.settle()
    assert harbour.status.desired == 3
    assert harbour.status.spare >= 1


def test_more_than_the_most_is_told_and_not_made(harbour: Harbour) -> None:
    harbour.edit(scaling={"logsPerBroker": 1})
    for number in range(9):
        harbour.office.service.command(CreateLog(f"log-{number}"))
    harbour.settle()
    assert harbour.status.desired == 4
    status, reason, message = harbour.condition("PoolExhausted")
    assert (status, reason) == ("True", "AtMaximum")
    assert "spec.max is 4" in message


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


def test_nothing_is_done_to_a_pool_that_is_paused(harbour: Harbour) -> None:
    harbour.kube.annotate(POOL, paused="true")
    harbour.edit(image="better", replicas=4)
    harbour.settle()
    assert not harbour.done(Create, DrainBroker, Delete)
    assert harbour.condition("Paused")[:2] == ("True", "Paused")
    harbour.kube.annotate(POOL, paused="false")
    harbour.settle()
    assert (harbour.status.ready, harbour.status.updated) == (4, 4)


def test_nothing_is_made_for_a_pool_that_is_deleted(harbour: Harbour) -> None:
    harbour.kube.documents[POOL]["metadata"]["finalizers"] = ["foregroundDeletion"]
    harbour.kube.delete(POOL)
    harbour.office.settle()
    harbour.kube.delete(Ref("Pod", NAMESPACE, "demo-0"))
    harbour.office.done.clear()
    harbour.settle()
    assert harbour.names() == ["demo-1"]
    assert not harbour.office.done


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


def test_what_the_api_server_refuses_is_told_and_tried_again() -> None:
    quota = ["exceeded quota"]
    harbour = Harbour(lambda ref, _: quota[0] if quota and ref.kind == "Pod" else None)
    harbour.office.wait(11)
    status, reason, message = harbour.condition("Ready")
    assert (status, reason) == ("False", "WriteFailed")
    assert "exceeded quota" in message
    quota.clear()
    harbour.office.wait(300)
    harbour.settle()
    assert harbour.condition("Ready")[:2] == ("True", "PoolComplete")


def test_a_name_that_somebody_else_bears_is_passed_over(harbour: Harbour) -> None:
    world = harbour.office.operator.world
    foreign = Ref("Pod", NAMESPACE, "demo-2")
    meta = {"name": foreign.name, "namespace": NAMESPACE}
    harbour.kube.apply(foreign, {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "node-0"}})
    harbour.office.settle()
    seen = world.objects[foreign]
    world.lose(foreign, seen.uid)
    harbour.frozen[seen.uid] = None
    harbour.edit(replicas=3)
    harbour.office.wait(11)
    harbour.settle()
    assert [pod.ref.name for pod in harbour.pods()] == ["demo-0", "demo-1", "demo-2", "demo-3"]
    assert harbour.pod("demo-2") == seen
    assert harbour.status.ready == 3


def test_events_are_few(harbour: Harbour) -> None:
    harbour.edit(image="better")
    harbour.settle()
    events = [each.reason for each in harbour.done(Announce)]
    assert events == ["Rolling", "UpToDate"]


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
