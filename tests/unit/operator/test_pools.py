"""Pools: how many brokers there are, and what is told of them."""

from tests.unit.operator.harbour import NAMESPACE, POOL, Harbour

from anabranch.core.bolt.protocol.commands import CreateLog, ForkLog
from anabranch.core.types import Kind, LogId
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import Announce, Create, Delete, DrainBroker
from anabranch_operator.plan.engine.events import Measured
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.pool.health import START_UP_MS

START_UP_S = START_UP_MS // 1_000


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
