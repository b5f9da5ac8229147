"""Whoever is concerned by a change is planned again, and nobody is forgotten."""

import pytest
from tests.unit.operator.declared import NAMESPACE, ORDERS, WHAT_IF, declare, fork, log, office

from anabranch_operator.api import names
from anabranch_operator.plan.engine.dependencies import (
    CERTIFICATES,
    MEMBERS,
    broker_name,
    everybody,
    installation,
    interested,
    ref_of,
    served_by,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_sim.kubernetes.sandbox import Sandbox

POOL = Ref(names.POOL, NAMESPACE, "demo")


@pytest.fixture
def made() -> Sandbox:
    """A log, a fork of it, and a fork of that."""
    sandbox = office()
    log(sandbox)
    fork(sandbox)
    fork(sandbox, Ref(names.FORK, NAMESPACE, "deeper"), parent={"name": "what-if", "kind": "Fork"})
    return sandbox


def object_of(made: Sandbox, ref: Ref) -> Observed:
    found = made.kube.get(ref)
    assert found is not None
    return found


def concerned(made: Sandbox, object: Observed) -> set[Ref]:
    return set(interested(made.operator.world, object))


def test_a_logs_change_concerns_it_and_its_forks(made: Sandbox) -> None:
    found = concerned(made, object_of(made, ORDERS))
    assert {ORDERS, WHAT_IF} <= found
    assert Ref(names.FORK, NAMESPACE, "deeper") not in found


def test_a_forks_change_concerns_its_parent_and_its_forks(made: Sandbox) -> None:
    found = concerned(made, object_of(made, WHAT_IF))
    assert {ORDERS, WHAT_IF, Ref(names.FORK, NAMESPACE, "deeper")} <= found


def test_a_brokers_pod_concerns_its_pool_and_the_logs_that_it_serves(made: Sandbox) -> None:
    pod = object_of(made, Ref("Pod", NAMESPACE, "demo-0"))
    found = concerned(made, pod)
    assert {POOL, ORDERS, WHAT_IF} <= found
    assert set(served_by(made.operator.world, pod)) == found - {POOL}


@pytest.mark.parametrize(
    ("labels", "concerned_by_it"),
    [
        ({names.ROLE: names.METADATA}, {Ref(MEMBERS, "", "")}),
        (
            {names.ROLE: names.SEQUENCER, names.SEQUENCERS_LABEL: "q"},
            {Ref(names.SEQUENCERS, NAMESPACE, "q")},
        ),
        ({names.ROLE: names.SHARD, names.SHARDS_LABEL: "s"}, {Ref(names.SHARDS, NAMESPACE, "s")}),
        ({names.ROLE: names.GATE, names.FORK_LABEL: "f"}, {Ref(names.FORK, NAMESPACE, "f")}),
        ({names.ROLE: names.GATEWAY}, set[Ref]()),
        ({}, set[Ref]()),
    ],
)
def test_a_pod_concerns_whoever_its_labels_name(
    made: Sandbox, labels: dict[str, str], concerned_by_it: set[Ref]
) -> None:
    ref = Ref("Pod", NAMESPACE, "another")
    declare(made, ref, labels=labels)
    found = concerned(made, object_of(made, ref))
    own = {each._replace(namespace="", name="") if each.kind == MEMBERS else each for each in found}
    assert own == concerned_by_it


def test_a_volume_concerns_the_group_that_its_labels_name(made: Sandbox) -> None:
    ref = Ref("PersistentVolumeClaim", NAMESPACE, "data-0")
    volume = {"requests": {"storage": "1Gi"}}
    declare(made, ref, labels={names.SHARDS_LABEL: "s"}, resources=volume)
    assert concerned(made, object_of(made, ref)) == {Ref(names.SHARDS, NAMESPACE, "s")}


def test_a_namespace_concerns_everything_that_is_declared_in_it(made: Sandbox) -> None:
    for name, expected in ((NAMESPACE, {ORDERS, WHAT_IF}), ("elsewhere", set[Ref]())):
        ref = Ref("Namespace", "", name)
        found = concerned(made, Observed(ref=ref, uid="u", version=1))
        assert expected <= found
        assert bool(found) == bool(expected)


def test_a_node_concerns_pools_and_members(made: Sandbox) -> None:
    declare(made, POOL, image="good", min=1, max=2, spare=0)
    made.settle()
    world = made.operator.world
    node = Observed(ref=Ref("Node", "", "node-0"), uid="u", version=1)
    assert concerned(made, node) == {POOL, installation(world, MEMBERS)}


@pytest.mark.parametrize("kind", ["Secret", "ValidatingWebhookConfiguration", "ConfigMap"])
def test_what_holds_certificates_concerns_those_of_the_installation(
    made: Sandbox, kind: str
) -> None:
    some = Observed(ref=Ref(kind, NAMESPACE, "some"), uid="u", version=1)
    assert concerned(made, some) == {installation(made.operator.world, CERTIFICATES)}


def test_a_child_concerns_its_owner_and_a_stranger_nobody(made: Sandbox) -> None:
    uid = object_of(made, WHAT_IF).uid
    ref = Ref("Service", NAMESPACE, "some")
    for owners, expected in (((uid,), {WHAT_IF}), (("nobody",), set[Ref]()), ((), set[Ref]())):
        service = Observed(ref=ref, uid="u", version=1, owners=owners)
        assert concerned(made, service) == expected


def test_everybody_is_everything_that_is_declared_and_the_installation(made: Sandbox) -> None:
    world = made.operator.world
    found = set(everybody(world))
    assert {ORDERS, WHAT_IF, Ref(names.FORK, NAMESPACE, "deeper")} <= found
    assert {installation(world, CERTIFICATES), installation(world, MEMBERS)} <= found


def test_owners_and_brokers_are_found_by_name() -> None:
    assert ref_of(names.owner("demo", names.LOG, "orders", "u")) == ORDERS
    assert ref_of("somebody") is None
    pod = Observed(ref=Ref("Pod", "demo", "demo-0"), uid="abc", version=1)
    assert broker_name(pod) == "demo-0.abc"
