"""What a shard's pods are made of, where they are met, and what stands around a group's pods."""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.api.shards import OF_THE_GROUP, ShardGroupSpec
from anabranch_operator.plan.engine.objects import Document
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.groups import quota, sequencer_pod
from anabranch_operator.plan.groups.named_pods import data, mounted
from anabranch_operator.plan.manifests import pod_parts

_KAFKA_DIR = f"{names.RUN_DIR}/kafka"
KAFKA_FILE = f"{_KAFKA_DIR}/kafka.toml"
"""Where a shard's process finds how Kafka is reached, if a Secret says it."""


def subdomain(group: str) -> str:
    """The headless Service that gives pods their names; the disruption budget is called so too."""
    return f"{group}-shards"


def labels(group: str) -> dict[str, str]:
    """By which a group's pods are found."""
    return {names.SHARDS_LABEL: group, names.ROLE: names.SHARD}


def shard_name(group: str, number: int) -> str:
    return f"{group}-{number}"


def number_of(group: str, shard: str) -> int | None:
    """None if it is no shard of the group."""
    stem, _, number = shard.rpartition("-")
    return int(number) if stem == group and number.isdecimal() else None


def pod_names(group: Shards, number: int) -> tuple[str, ...]:
    shard = shard_name(group.ref.name, number)
    return tuple(f"{shard}-{copy}" for copy in range(group.spec.copies))


def node(group: Shards, pod: str) -> str:
    """Where a replica is dialed, which is its name to all others."""
    return f"{pod}.{subdomain(group.ref.name)}.{group.ref.namespace}.svc:{names.SHARD_PORT}"


def template(spec: ShardGroupSpec) -> str:
    return pod_parts.template(replace(spec, storage=mounted(spec.storage)), OF_THE_GROUP)


def headless(group: Shards) -> Document:
    name = group.ref.name
    return pod_parts.headless(group.object, subdomain(name), labels(name), names.SHARD_PORT)


def budget(group: Shards, pods: int) -> Document:
    """One at a time, of all shards."""
    name, least = group.ref.name, max(0, pods - 1)
    return pod_parts.budget(group.object, subdomain(name), labels(name), least)


def pod(group: Shards, log: Sequencers, number: int, name: str, engine: dict[str, str]) -> Document:
    """`engine`: settings of the log's engine."""
    spec, shard = group.spec, shard_name(group.ref.name, number)
    settings = {
        **sequencer_pod.common(
            spec.engine, spec, name, sequencer_pod.cluster(log), node(group, name)
        ),
        "SHARD": shard,
        "REPLICAS": ",".join(node(group, each) for each in pod_names(group, number)),
        "SEQUENCERS": ",".join(sequencer_pod.nodes(log)),
        **engine,
        "DURABILITY": spec.durability.value,
    }
    if spec.black_box is None:  # otherwise the note is beside the one that names the box
        settings |= sequencer_pod.note(spec.engine, spec.durability)
    body = pod_parts.Body(
        owner=group.object,
        name=name,
        subdomain=subdomain(group.ref.name),
        role=names.SHARD,
        labels={**labels(group.ref.name), names.SHARD_LABEL: shard},
        apart={names.SHARD_LABEL: shard},
        template=template(spec),
        ports=(names.SHARD_PORT, names.SHARD_PROBE_PORT),
        settings=settings,
        volumes=list(_volumes(spec, log, name)),
        group=spec.storage.group,
    )
    return pod_parts.pod(spec, body)


def _volumes(spec: ShardGroupSpec, log: Sequencers, name: str) -> Iterator[pod_parts.Mounted]:
    yield data(spec.storage, name)
    if spec.engine is GroupEngineName.BELFAST:
        yield quota.mounted(log.ref.name)
    if spec.black_box is not None and spec.black_box.access_secret:
        yield pod_parts.secret("kafka", spec.black_box.access_secret, _KAFKA_DIR)
