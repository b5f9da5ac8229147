"""Which objects must be planned again after something was seen."""

from collections.abc import Iterator

from anabranch_operator.api import names
from anabranch_operator.api.conditions import Reason
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import RESOURCES, Fork, World, parent_of

CERTIFICATES, MEMBERS = "Certificates", "Members"
"""Names under which the needs of the whole installation are planned, beside its resources."""


def installation(world: World, kind: str) -> Ref:
    """The reference under which something of the whole installation is planned."""
    return Ref(kind, world.surroundings.namespace, world.surroundings.release)


def installations(world: World) -> Iterator[Ref]:
    """Everything that is planned for the installation as a whole."""
    for kind in (CERTIFICATES, MEMBERS):
        yield installation(world, kind)


def of_kinds(world: World, *kinds: str) -> Iterator[Ref]:
    for kind in kinds:
        yield from (each.ref for each in world.of_kind(kind))


def everybody(world: World) -> Iterator[Ref]:
    """Everything that is planned."""
    yield from of_kinds(world, *RESOURCES)
    yield from world.orphans()
    yield from installations(world)


def interested(world: World, object: Observed) -> Iterator[Ref]:
    """The objects to plan again after this one was created, changed or deleted."""
    ref = object.ref
    match ref.kind:
        case names.LOG | names.FORK:
            yield ref
            yield from (heir.ref for heir in world.heirs(ref))
            fork = world.forks.get(ref)
            if fork is not None:
                yield parent_of(fork)
                if waits_for_broker(fork):
                    yield from world.pools
            if not _knows_whom_to_trust(world, ref.namespace):
                yield installation(world, CERTIFICATES)
        case names.POOL:
            yield ref
            yield installation(world, CERTIFICATES)
        case names.SEQUENCERS:
            yield ref
            yield from (each.ref for each in world.shards_of(ref))
            yield from world.logs_served_by(ref)
            # Of a front that has ended, the Log names the set no more.
            yield Ref(names.LOG, ref.namespace, object.labels.get(names.MADE_FOR, ""))
            yield installation(world, CERTIFICATES)
        case names.SHARDS:
            yield ref
            yield from world.logs_served_by(ref)
            yield installation(world, CERTIFICATES)
        case "Pod":
            yield from _of_pod(world, object)
        case "PersistentVolumeClaim":
            yield from _of_groups(object)
        case "Namespace":
            for kind in RESOURCES:
                yield from (each.ref for each in world.of_kind(kind) if _lies_in(each, ref))
        case "Node":
            yield from world.pools
            yield installation(world, MEMBERS)
        case "StatefulSet":
            yield installation(world, MEMBERS)
        case "ConfigMap":
            yield installation(world, CERTIFICATES)
            for owner in _owners(world, object):
                yield from world.logs_served_by(owner)
        case "Secret" | "ValidatingWebhookConfiguration":
            yield installation(world, CERTIFICATES)
        case _:
            yield from _owners(world, object)


def _knows_whom_to_trust(world: World, namespace: str) -> bool:
    """Is the authority's certificate published there? Also true before the first inspection, which
    publishes it everywhere.
    """
    known = world.certificates
    return known is None or any(place.namespace == namespace for place in known.places)


def served_by(world: World, pod: Observed) -> Iterator[Ref]:
    """Logs and forks whose broker runs in this pod."""
    broker = broker_name(pod)
    for log in world.service.logs.values():
        if log.broker == broker and log.owner:
            ref = ref_of(log.owner)
            if ref is not None:
                yield ref


def waits_for_broker(fork: Fork) -> bool:
    """Was the fork refused because no broker is idle?"""
    return any(each.reason == Reason.NO_SPARE_BROKER for each in fork.status.conditions)


def broker_name(pod: Observed) -> str:
    """The name of a pod's broker. It holds the pod's UID, so that a broker is never mistaken for an
    earlier one.
    """
    return f"{pod.ref.name}.{pod.uid}"


def ref_of(owner: str) -> Ref | None:
    """The resource that declares a log, from the owner that the log service keeps."""
    found = names.declares(owner)
    return None if found is None else Ref(found.kind, found.namespace, found.name)


def _of_pod(world: World, pod: Observed) -> Iterator[Ref]:
    match pod.labels.get(names.ROLE):
        case names.BROKER:
            pool = pod.labels.get(names.POOL_LABEL, "")
            yield Ref(names.POOL, pod.ref.namespace, pool)
            yield from served_by(world, pod)
        case names.METADATA:
            yield installation(world, MEMBERS)
        case names.SEQUENCER | names.SHARD:
            yield from _of_groups(pod)
        case names.GATE:
            fork = pod.labels.get(names.FORK_LABEL, "")
            yield Ref(names.FORK, pod.ref.namespace, fork)
        case _:
            pass  # a gateway's, or somebody else's: no plan looks at it


def _of_groups(object: Observed) -> Iterator[Ref]:
    """Volumes may outlive their owners, so their labels say whose they are."""
    for label, kind in (
        (names.SEQUENCERS_LABEL, names.SEQUENCERS),
        (names.SHARDS_LABEL, names.SHARDS),
    ):
        name = object.labels.get(label)
        if name is not None:
            yield Ref(kind, object.ref.namespace, name)


def _owners(world: World, object: Observed) -> Iterator[Ref]:
    for uid in object.owners:
        owner = world.by_uid(uid)
        if owner is not None:
            yield owner.ref


def _lies_in(object: Observed, namespace: Ref) -> bool:
    return object.ref.namespace == namespace.name
