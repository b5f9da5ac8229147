"""What the plans of a SequencerSet and a ShardGroup make is taken by a real API server, under Pod
Security's strictest profile, and planned again it is left as it is, whatever words amounts are in.
"""

import time
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer

from anabranch_operator.api import names
from anabranch_operator.kube.resources import collection, place
from anabranch_operator.plan.engine.actions import (
    Action,
    Announce,
    Apply,
    ApplyStatus,
    Create,
    CreateRoot,
)
from anabranch_operator.plan.engine.objects import Ref, observe
from anabranch_operator.plan.engine.planners import PLANNERS
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import Surroundings, World
from anabranch_operator.plan.groups.named_pods import CLAIM
from anabranch_sim.kubernetes.cluster.objects import canonical

STRICT = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.mark.parametrize(
    ("size", "engine"),
    [
        *((size, "belfast") for size in ("1Gi", "1024Gi", "1.5Ti", "0.5Gi", "1000M")),
        ("1Gi", "erwin"),
    ],
)
def test_what_a_log_needs_is_taken_and_then_left_alone(
    resources: ApiServer, size: str, engine: str
) -> None:
    namespace = resources.namespace(engine, STRICT)
    world = World(Surroundings(namespace=namespace, release="demo"))
    common = {"image": "anabranch", "storage": {"volumeClaim": {"size": size}}, "engine": engine}
    specs = {names.SEQUENCERS: common, names.SHARDS: {**common, "sequencers": "orders"}}
    refs = [Ref(kind, namespace, "orders") for kind in specs]
    for ref in refs:
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": ref.kind,
            "metadata": {"name": ref.name, "namespace": namespace},
            "spec": specs[ref.kind],
        }
        world.observe(observe(resources.apply(place(ref), manifest, "tests")))
    for _ in range(3):
        for action in planned(world, refs):
            perform(resources, world, action)
    assert planned(world, refs) == []
    claims = list(world.of_kind(CLAIM))
    assert len(claims) == 7
    assert {each.spec["resources"]["requests"]["storage"] for each in claims} == {canonical(size)}


@pytest.mark.parametrize("engine", ["belfast", "erwin"])
def test_a_log_makes_its_parts_and_takes_back_what_its_template_no_longer_says(
    resources: ApiServer, engine: str
) -> None:
    namespace = resources.namespace(f"{engine}-log", STRICT)
    world = World(Surroundings(namespace=namespace, release="demo"))
    world.service.looked = True
    template = {"image": "anabranch", "storage": {"volumeClaim": {"size": "1Gi"}}}

    def declare(**shards: Any) -> None:
        spec = {
            "engine": engine,
            "deletionPolicy": "Delete",
            "sequencers": {"template": template},
            "shards": {"template": {**template, **shards}},
        }
        ref = Ref(names.LOG, namespace, "orders")
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": ref.kind,
            "metadata": {"name": ref.name, "namespace": namespace},
            "spec": spec,
        }
        world.observe(observe(resources.apply(place(ref), manifest, "tests")))

    log = Ref(names.LOG, namespace, "orders")
    group = Ref(names.SHARDS, namespace, "orders")
    declare(priorityClassName="high", nodeSelector={"disk": "fast"})
    for _ in range(3):  # sequencers come to be owned by the shards once those are there
        for action in planned(world, [log]):
            perform(resources, world, action)
    assert planned(world, [log]) == []
    assert world.shards[group].spec.priority_class_name == "high"
    assert world.shards[group].spec.engine == engine
    declare(nodeSelector={"disk": "slow"})
    for action in planned(world, [log]):
        perform(resources, world, action)
    assert planned(world, [log]) == []
    spec = world.shards[group].spec
    assert (spec.priority_class_name, spec.node_selector) == (None, {"disk": "slow"})


def planned(world: World, refs: list[Ref]) -> list[Action]:
    now = time.time_ns()
    return [
        action
        for ref in refs
        for action in PLANNERS[ref.kind](world, ref, now, Troubles()).actions
        if not isinstance(action, Announce | ApplyStatus | CreateRoot)
    ]


def perform(server: ApiServer, world: World, action: Action) -> None:
    """As the operator does."""
    match action:
        case Apply(ref=ref, manifest=manifest):
            made = server.apply(place(ref), manifest, names.FIELD_MANAGER, force=True)
        case Create(ref=ref, manifest=manifest):
            made = server.ask("POST", collection(ref.kind, ref.namespace), manifest)
        case _:
            raise AssertionError(action)
    world.observe(observe(made))
