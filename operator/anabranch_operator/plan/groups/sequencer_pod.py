"""What a sequencer's pod is made of, where it is met, and what stands around a group's pods."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.common import Durability, GroupEngineName
from anabranch_operator.api.pods import PodsSpec
from anabranch_operator.api.sequencers import OF_THE_SET, SequencerSetSpec
from anabranch_operator.plan.engine.objects import Document, Ref
from anabranch_operator.plan.engine.world import Sequencers
from anabranch_operator.plan.groups.named_pods import DATA_DIR, data, mounted
from anabranch_operator.plan.manifests import pod_parts

_ETCD_DIR = f"{names.RUN_DIR}/etcd"


def subdomain(group: str) -> str:
    """The headless Service that gives pods their names; the disruption budget is called so too."""
    return f"{group}-sequencers"


def labels(group: str) -> dict[str, str]:
    """By which a group's pods are found."""
    return {names.SEQUENCERS_LABEL: group, names.ROLE: names.SEQUENCER}


def pod_names(group: Sequencers) -> tuple[str, ...]:
    return tuple(f"{group.ref.name}-sequencer-{each}" for each in range(group.spec.members))


def log_id(group: Sequencers) -> int | None:
    """The log whose lazy appends it takes; None: there is none yet, or it is of another engine."""
    told = group.object.labels.get(names.LOG_ID, "")
    return int(told) if told.isdecimal() else None


def cluster(group: Sequencers) -> str:
    """What the log is called where its processes meet, and by its clients; and in etcd, where two
    namespaces may have sets of one name.
    """
    return cluster_of(group.ref)


def cluster_of(ref: Ref) -> str:
    """By its SequencerSet, or by a Log that is called like that."""
    return f"{ref.namespace}.{ref.name}"


def node(group: Sequencers, pod: str) -> str:
    """Where a sequencer is dialed, which is its name to all others."""
    home = subdomain(group.ref.name)
    return f"{pod}.{home}.{group.ref.namespace}.svc:{names.SEQUENCER_PORT}"


def nodes(group: Sequencers) -> tuple[str, ...]:
    return tuple(node(group, each) for each in pod_names(group))


def endpoint(group: Sequencers) -> str | None:
    """The URL that clients take; None: they open the log by its name in the log service alone."""
    return url(group) if is_belfast(group) else None


def is_belfast(group: Sequencers) -> bool:
    return group.spec.engine is GroupEngineName.BELFAST


def url(group: Sequencers) -> str:
    """Where the log is reached; who may come in is a matter of a token that isn't told here."""
    # A lazy front's sequencers are asked as an Erwin log's are.
    engine = GroupEngineName.BELFAST if is_belfast(group) else GroupEngineName.ERWIN
    scheme = f"{engine}{'s' if group.spec.tls_secret else ''}"
    return f"{scheme}://{','.join(nodes(group))}/{cluster(group)}"


def template(spec: SequencerSetSpec) -> str:
    return pod_parts.template(replace(spec, storage=mounted(spec.storage)), OF_THE_SET)


def headless(group: Sequencers) -> Document:
    name = group.ref.name
    return pod_parts.headless(group.object, subdomain(name), labels(name), names.SEQUENCER_PORT)


def budget(group: Sequencers) -> Document:
    """One at a time; one that is alone may go."""
    name, least = group.ref.name, group.spec.members - 1
    return pod_parts.budget(group.object, subdomain(name), labels(name), least)


def pod(
    group: Sequencers,
    name: str,
    engine: dict[str, str],
    volumes: Iterable[pod_parts.Mounted] = (),
) -> Document:
    """`engine`: settings of the log's engine; `volumes`: what it has beside the others."""
    spec, found = group.spec, labels(group.ref.name)
    settings = {
        **common(spec.engine, spec, name, cluster(group), node(group, name)),
        **note(spec.engine, spec.durability),
        "MEMBERS": ",".join(nodes(group)),
        **engine,
    }
    body = pod_parts.Body(
        owner=group.object,
        name=name,
        subdomain=subdomain(group.ref.name),
        role=names.SEQUENCER,
        labels=found,
        apart=found,
        template=template(spec),
        ports=(names.SEQUENCER_PORT, names.SEQUENCER_PROBE_PORT),
        settings=settings,
        volumes=[*_volumes(group, name), *volumes],
        group=spec.storage.group,
    )
    return pod_parts.pod(spec, body)


def _volumes(group: Sequencers, name: str) -> Iterator[pod_parts.Mounted]:
    spec = group.spec
    yield data(spec.storage, name)
    if spec.etcd_tls_secret:
        yield pod_parts.secret("etcd", spec.etcd_tls_secret, _ETCD_DIR)


def common(
    engine: GroupEngineName, spec: PodsSpec, pod: str, cluster: str, address: str
) -> dict[str, str]:
    """What sequencers and shards are both told."""
    settings = {
        "NAME": pod,
        "CLUSTER": cluster,
        "HOST": "0.0.0.0",  # noqa: S104 - of the pod alone
        "ADDRESS": address,
        "DATA": f"{DATA_DIR}/{engine}",
    }
    if spec.tls_secret:
        for part, file in (("CERT", "tls.crt"), ("KEY", "tls.key"), ("CA", "ca.crt")):
            settings[f"TLS_{part}"] = f"{pod_parts.TLS_DIR}/{file}"
    return settings


def note(engine: GroupEngineName, durability: Durability) -> dict[str, str]:
    """Have a process note how far its journal went, so that it refuses one that lost its end.

    A journal that isn't synced may lose its end when the node fails, as its owner accepts.
    """
    if durability is Durability.MEMORY:
        return {}
    return {"REACHED_FILE": f"{DATA_DIR}/{engine}.reached"}
