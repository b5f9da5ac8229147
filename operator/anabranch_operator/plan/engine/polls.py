"""Whose figures the operator needs now."""

from collections.abc import Iterator

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Observed
from anabranch_operator.plan.engine.world import World


class Target(Struct, frozen=True):
    """A pod that is asked what it counts."""

    uid: str
    host: str
    port: int


def targets(world: World) -> tuple[Target, ...]:
    """Brokers of pools that grow with what is appended; shards, for what their speculation is
    worth; members, for whether etcd is full and, while one is to be replaced, for who leads.
    """
    found: list[Target] = []
    for pod in world.of_kind("Pod"):
        role = pod.labels.get(names.ROLE)
        if role == names.BROKER and _scales(world, pod):
            found += _target(pod, names.PROBE_PORT)
        if role == names.SHARD:
            found += _target(pod, names.SHARD_PROBE_PORT)
        if role == names.METADATA and pod.ref.namespace == world.surroundings.namespace:
            found += _target(pod, names.METADATA_PROBE_PORT)
    return tuple(found)


def _target(pod: Observed, port: int) -> Iterator[Target]:
    host = pod.status.get("podIP")
    if host and not pod.deleting:
        yield Target(pod.uid, host, port)


def _scales(world: World, pod: Observed) -> bool:
    pool = pod.labels.get(names.POOL_LABEL)
    return any(
        each.spec.replicas is None and each.spec.min < each.spec.max
        for each in world.pools.values()
        if (each.ref.namespace, each.ref.name) == (pod.ref.namespace, pool)
    )
