"""Pools: how many brokers there are, and what is told of them."""

from tests.unit.operator.broker_pool import NAMESPACE, POOL, PoolHarness

from anabranch.core.bolt.protocol.commands import CreateLog, ForkLog
from anabranch.core.types import Kind, LogId
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import Announce, Create, Delete, DrainBroker
from anabranch_operator.plan.engine.events import Measured
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.pool.health import START_UP_MS

START_UP_S = START_UP_MS // 1_000


def test_a_pool_begins_with_as_many_as_it_must_have_and_comes_to_rest(harness: PoolHarness) -> None:
    assert harness.names() == ["demo-0", "demo-1"]
    status = harness.status
    assert (status.replicas, status.ready, status.desired, status.updated) == (2, 2, 2, 2)
    assert status.selector == "anabranch.dev/pool=demo,anabranch.dev/role=broker"
    assert harness.condition("Ready")[:2] == ("True", "PoolComplete")
    assert harness.condition("Progressing")[:2] == ("False", "UpToDate")
    version = harness.kube.version
    harness.office.wait(7_200)
    assert harness.kube.version == version
    assert not harness.office.done


def test_replicas_are_followed_up_at_once_and_down_one_at_a_time(harness: PoolHarness) -> None:
    harness.edit(replicas=4)
    assert harness.names() == ["demo-0", "demo-1", "demo-2", "demo-3"]
    harness.settle()
    assert harness.status.ready == 4
    harness.office.done.clear()
    harness.edit(replicas=2)
    harness.settle()
    drained = harness.done(DrainBroker)
    assert len(drained) == 2
    assert harness.names() == ["demo-0", "demo-1"]
    assert not [each for each in harness.office.service.brokers() if each.state != "ready"]


def test_the_load_asks_for_more_at_once(harness: PoolHarness) -> None:
    harness.edit(scaling={"logsPerBroker": 1})
    for name in ("a", "b", "c"):
        harness.office.service.command(CreateLog(name))
    harness.office.wait(11)
    harness.settle()
    assert harness.status.desired == 4
    assert harness.status.ready == 4


def test_bytes_ask_for_more_and_their_end_for_less_when_it_was_quiet() -> None:
    harness = PoolHarness(scaling={"appendBytesPerBroker": 1_000}, spare=0, min=1)
    harness.settle()
    assert harness.status.desired == 1
    harness.measure(demo_0=2_500.0)
    harness.settle()
    assert harness.status.desired == 3
    harness.measure(demo_0=900.0, demo_1=900.0, demo_2=100.0)
    harness.office.wait(301)
    harness.settle()
    assert harness.status.desired == 3, "a third more wouldn't fit on two"
    harness.measure(demo_0=300.0, demo_1=300.0, demo_2=100.0)
    harness.settle()
    assert harness.status.desired == 2
    harness.office.wait(200)
    assert harness.status.desired == 2, "it has just moved"
    harness.office.wait(150)
    harness.settle()
    assert harness.status.desired == 1


def test_a_pool_that_isnt_measured_isnt_made_smaller() -> None:
    harness = PoolHarness(scaling={"appendBytesPerBroker": 1_000}, spare=0, min=1)
    harness.measure(demo_0=2_500.0)
    harness.settle()
    assert harness.status.desired == 3
    for _ in range(3):
        harness.office.tell(Measured({}))
        harness.office.wait(1_000)
    assert harness.status.desired == 3


def test_forks_that_wait_are_brokers_that_are_needed(harness: PoolHarness) -> None:
    ref = Ref(names.FORK, NAMESPACE, "alone")
    meta = {"name": ref.name, "namespace": ref.namespace}
    spec = {"parent": {"name": "orders"}, "isolation": "Exclusive"}
    harness.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})
    said = {
        "type": "Ready",
        "status": "False",
        "reason": "NoSpareBroker",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    harness.edit(spare=2)
    harness.kube.report(ref, {"phase": "Pending", "conditions": [said]})
    harness.settle()
    assert (harness.status.waiting, harness.status.desired) == (1, 3)


def test_an_exclusive_fork_has_a_broker_and_the_spare_one_is_kept() -> None:
    harness = PoolHarness(min=2, max=6, spare=1)
    harness.settle()
    service = harness.office.service
    root = service.command(CreateLog("orders"))
    fork = ForkLog(LogId(root.id), Kind.SEVERED, "alone", exclusive=True)
    service.command(fork)
    harness.settle()
    assert harness.status.desired == 3
    assert harness.status.spare >= 1


def test_more_than_the_most_is_told_and_not_made(harness: PoolHarness) -> None:
    harness.edit(scaling={"logsPerBroker": 1})
    for number in range(9):
        harness.office.service.command(CreateLog(f"log-{number}"))
    harness.settle()
    assert harness.status.desired == 4
    status, reason, message = harness.condition("PoolExhausted")
    assert (status, reason) == ("True", "AtMaximum")
    assert "spec.max is 4" in message


def test_nothing_is_done_to_a_pool_that_is_paused(harness: PoolHarness) -> None:
    harness.kube.annotate(POOL, paused="true")
    harness.edit(image="better", replicas=4)
    harness.settle()
    assert not harness.done(Create, DrainBroker, Delete)
    assert harness.condition("Paused")[:2] == ("True", "Paused")
    harness.kube.annotate(POOL, paused="false")
    harness.settle()
    assert (harness.status.ready, harness.status.updated) == (4, 4)


def test_nothing_is_made_for_a_pool_that_is_deleted(harness: PoolHarness) -> None:
    harness.kube.documents[POOL]["metadata"]["finalizers"] = ["foregroundDeletion"]
    harness.kube.delete(POOL)
    harness.office.settle()
    harness.kube.delete(Ref("Pod", NAMESPACE, "demo-0"))
    harness.office.done.clear()
    harness.settle()
    assert harness.names() == ["demo-1"]
    assert not harness.office.done


def test_what_the_api_server_refuses_is_told_and_tried_again() -> None:
    quota = ["exceeded quota"]
    harness = PoolHarness(lambda ref, _: quota[0] if quota and ref.kind == "Pod" else None)
    harness.office.wait(11)
    status, reason, message = harness.condition("Ready")
    assert (status, reason) == ("False", "WriteFailed")
    assert "exceeded quota" in message
    quota.clear()
    harness.office.wait(300)
    harness.settle()
    assert harness.condition("Ready")[:2] == ("True", "PoolComplete")


def test_a_name_that_somebody_else_bears_is_passed_over(harness: PoolHarness) -> None:
    world = harness.office.operator.world
    foreign = Ref("Pod", NAMESPACE, "demo-2")
    meta = {"name": foreign.name, "namespace": NAMESPACE}
    harness.kube.apply(foreign, {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "node-0"}})
    harness.office.settle()
    seen = world.objects[foreign]
    world.lose(foreign, seen.uid)
    harness.frozen[seen.uid] = None
    harness.edit(replicas=3)
    harness.office.wait(11)
    harness.settle()
    assert [pod.ref.name for pod in harness.pods()] == ["demo-0", "demo-1", "demo-2", "demo-3"]
    assert harness.pod("demo-2") == seen
    assert harness.status.ready == 3


def test_events_are_few(harness: PoolHarness) -> None:
    harness.edit(image="better")
    harness.settle()
    events = [each.reason for each in harness.done(Announce)]
    assert events == ["Rolling", "UpToDate"]
