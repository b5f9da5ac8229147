"""What a pool's plan makes is taken by a real API server, under Pod Security's strictest profile,
and planned again it is left as it is, defaults and all.
"""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer, Refused

from anabranch_operator.api import names
from anabranch_operator.kube.resources import collection, place
from anabranch_operator.plan.engine.actions import Action, Announce, Apply, ApplyStatus, Create
from anabranch_operator.plan.engine.objects import Document, Ref, observe
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import Surroundings, World
from anabranch_operator.plan.pool.pools import plan_pool

STRICT = {"pod-security.kubernetes.io/enforce": "restricted"}
PLAIN: Mapping[str, Any] = {"image": "anabranch", "replicas": 2}
FULL: Mapping[str, Any] = {
    "image": "anabranch",
    "replicas": 3,
    "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}},
    "config": {"configMap": "settings", "secrets": ["s3", "token"]},
    "tlsSecret": "demo-broker-tls",
    "peerTlsSecret": "demo-peer-tls",
    "serviceAccountName": "demo-broker",
    "imagePullSecrets": ["registry"],
    "topology": {"zones": True, "hosts": "Required"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "brokers", "operator": "Exists", "effect": "NoSchedule"}],
    "podLabels": {"team": "logs"},
    "podAnnotations": {"checksum/settings": "1"},
    "diskCache": {"size": "10Gi"},
}


@pytest.mark.parametrize("spec", [PLAIN, FULL], ids=["plain", "full"])
def test_what_a_pool_needs_is_taken_and_then_left_alone(
    resources: ApiServer, spec: Mapping[str, Any]
) -> None:
    namespace = resources.namespace("pool", STRICT)
    resources.service_account(namespace, "demo-broker")
    now = time.time_ns()
    world = World(Surroundings(namespace=namespace, release="demo"))
    ref = Ref(names.POOL, namespace, "demo")
    manifest = {
        "apiVersion": names.API_VERSION,
        "kind": names.POOL,
        "metadata": {"name": ref.name, "namespace": namespace},
        "spec": dict(spec),
    }
    world.observe(observe(resources.apply(place(ref), manifest, "tests")))
    done: list[Action] = []
    for _ in range(5):
        actions = plan_pool(world, ref, now, Troubles()).actions
        for action in actions:
            perform(resources, world, action)
        done += actions
    pods = [each for each in done if isinstance(each, Create)]
    assert len(pods) == spec["replicas"]
    assert plan_pool(world, ref, now, Troubles()).actions == ()
    with pytest.raises(Refused, match="already exists"):
        perform(resources, world, pods[0])


def perform(server: ApiServer, world: World, action: Action) -> None:
    """As the operator does."""
    match action:
        case Apply(ref=ref, manifest=manifest):
            made = server.apply(place(ref), manifest, names.FIELD_MANAGER, force=True)
        case Create(ref=ref, manifest=manifest):
            made = server.ask("POST", collection(ref.kind, ref.namespace), manifest)
        case ApplyStatus(ref=ref, uid=uid, status=status):
            meta = {"name": ref.name, "namespace": ref.namespace, "uid": uid}
            told: Document = {
                "apiVersion": names.API_VERSION,
                "kind": ref.kind,
                "metadata": meta,
                "status": status,
            }
            made = server.apply(place(ref, "status"), told, names.STATUS_MANAGER, force=True)
        case Announce():
            return
        case _:
            raise AssertionError(action)
    world.observe(observe(made))
