"""What the plans of SequencerSets, ShardGroups and their Logs make is taken by a real API server,
under Pod Security's strictest profile, and planned again it is left as it is, whatever words
amounts are in.
"""

import time
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer

from anabranch_operator.api import names
from anabranch_operator.kube.resources import collection, place
from anabranch_operator.plan.engine.actions import (
    Action,
    Adopt,
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
from anabranch_sim.kubernetes.cluster.service import LogService

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


def test_a_lazy_log_makes_its_sequencers_and_their_pods_when_it_has_its_front(
    resources: ApiServer,
) -> None:
    namespace = resources.namespace("lazy", STRICT)
    world = World(Surroundings(namespace=namespace, release="demo"))
    world.service.looked = True
    template = {"image": "anabranch", "storage": {"volumeClaim": {"size": "1Gi"}}}
    log, group = (Ref(kind, namespace, "orders") for kind in (names.LOG, names.SEQUENCERS))
    manifest = {
        "apiVersion": names.API_VERSION,
        "kind": log.kind,
        "metadata": {"name": log.name, "namespace": namespace},
        "spec": {
            "appends": "Lazy",
            "deletionPolicy": "Delete",
            "sequencers": {"template": template},
        },
    }
    world.observe(observe(resources.apply(place(log), manifest, "tests")))
    for _ in range(3):
        for action in planned(world, [log, group]):
            perform(resources, world, action)
    assert planned(world, [log, group]) == []
    assert list(world.of_kind(CLAIM)) == []
    service = LogService()
    making = PLANNERS[log.kind](world, log, time.time_ns(), Troubles()).actions
    (make,) = (each for each in making if isinstance(each, CreateRoot))
    world.service.learn(service.ask(make, 1))
    for _ in range(4):
        for action in planned(world, [log, group]):
            if isinstance(action, Adopt):
                world.service.learn(service.ask(action, 1))
            else:
                perform(resources, world, action)
    assert planned(world, [log, group]) == []
    pods = [each for each in world.of_kind("Pod") if each.labels.get(names.ROLE)]
    assert len(pods) == 3
    (found,) = service.owned()
    assert world.objects[group].labels[names.LOG_ID] == str(found.id)


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
