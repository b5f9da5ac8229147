"""How one log or fork is reached: a Service, and an EndpointSlice that follows its broker.

The Service has no selector: which pod serves the log is the log service's to say, and it may change
at any time.
"""

from typing import Any, TypeVar

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import Description
from anabranch_operator.api.fork import ForkSpec, ForkStatus
from anabranch_operator.api.log import LogSpec, LogStatus
from anabranch_operator.plan.engine.actions import Action, Apply, Delete
from anabranch_operator.plan.engine.objects import Document, Observed, Ref, contains
from anabranch_operator.plan.engine.world import Resource, Surroundings, World

PORT_NAME = "anabranch"
SLICE_MANAGER = names.FIELD_MANAGER
_SERVICE = "Service"
_OFTEN_MADE_BY_PEOPLE = (_SERVICE, names.SEQUENCERS, names.SHARDS)
_UID_CHARS = 36

AnyLog = Resource[LogSpec, LogStatus] | Resource[ForkSpec, ForkStatus]
R = TypeVar("R", bound=AnyLog)


class Face(Struct, frozen=True):
    """What clients meet, and what is still to be done for it."""

    endpoint: str
    pod: Observed | None
    """Who serves it, if that is known."""
    address: str | None
    """The pod's, if it is ready to be met."""
    actions: tuple[Action, ...]


def face(world: World, resource: AnyLog, log: Description) -> Face:
    """The Service and its slice, as they should be now."""
    pod = serving_pod(world, log)
    address = _address(pod)
    service = _service(resource)
    slice_ = _slice(resource, pod, address)
    return Face(
        endpoint(world.surroundings, resource.ref),
        pod,
        address,
        (*missing(world, service), *missing(world, slice_)),
    )


def faceless(world: World, resource: AnyLog) -> tuple[Action, ...]:
    """Take away how a log was reached that is no more."""
    found = (
        child
        for kind in ("Service", "EndpointSlice")
        for child in world.children(resource.object.uid, kind)
        if not child.deleting
    )
    return tuple(Delete(ref=child.ref, uid=child.uid) for child in found)


def missing(world: World, manifest: Document) -> tuple[Action, ...]:
    """The action that makes an object of ours so, if it isn't already."""
    meta = manifest["metadata"]
    ref = Ref(manifest["kind"], meta["namespace"], meta["name"])
    known = world.objects.get(ref)
    if known is not None:
        have = {**known.body, "metadata": {"labels": known.labels, "owners": known.owners}}
        owners = [each["uid"] for each in meta["ownerReferences"]]
        want: dict[str, Any] = {
            key: value
            for key, value in manifest.items()
            if key not in {"apiVersion", "kind", "metadata"}
        }
        want["metadata"] = {"labels": meta["labels"], "owners": owners}
        if contains(have, want):
            return ()
    # People have objects of these kinds with such names; of the other kinds they hardly do.
    anew = known is None and ref.kind in _OFTEN_MADE_BY_PEOPLE
    return (Apply(ref=ref, manifest=manifest, anew=anew),)


def endpoint(surroundings: Surroundings, ref: Ref) -> str:
    return _url(surroundings, names.service_name(ref.kind, ref.name), ref.namespace)


def entrance(surroundings: Surroundings) -> str:
    """Of all logs: any broker, which says who serves which."""
    return _url(surroundings, surroundings.release, surroundings.namespace)


def _url(surroundings: Surroundings, service: str, namespace: str) -> str:
    scheme = "anabranchs" if surroundings.tls else "anabranch"
    return f"{scheme}://{service}.{namespace}.svc:{names.CLIENT_PORT}"


def serving_pod(world: World, log: Description) -> Observed | None:
    """The very pod that the broker lives in, and no other of its name."""
    uid = log.broker[-_UID_CHARS:]
    pod = world.by_uid(uid) if len(log.broker) > _UID_CHARS else None
    return pod if pod is not None and log.broker == f"{pod.ref.name}.{uid}" else None


def is_ready(pod: Observed) -> bool:
    conditions = pod.status.get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def owner_reference(object: Observed) -> Document:
    return {
        "apiVersion": names.API_VERSION,
        "kind": object.ref.kind,
        "name": object.ref.name,
        "uid": object.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata(owner: Observed, name: str, labels: Document) -> Document:
    """Of a child: whose it is, and that it is ours."""
    return {
        "name": name,
        "namespace": owner.ref.namespace,
        "labels": {names.MANAGED_BY: names.FIELD_MANAGER, **labels},
        "ownerReferences": [owner_reference(owner)],
    }


def _address(pod: Observed | None) -> str | None:
    if pod is None or pod.deleting or not is_ready(pod):
        return None
    return pod.status.get("podIP")


def _service(resource: AnyLog) -> Document:
    ref = resource.ref
    port = {
        "name": PORT_NAME,
        "port": names.CLIENT_PORT,
        "protocol": "TCP",
        "targetPort": names.CLIENT_PORT,
    }
    return {
        "apiVersion": "v1",
        "kind": _SERVICE,
        "metadata": metadata(resource.object, names.service_name(ref.kind, ref.name), {}),
        "spec": {"type": "ClusterIP", "ports": [port]},
    }


def _slice(resource: AnyLog, pod: Observed | None, address: str | None) -> Document:
    ref = resource.ref
    name = names.service_name(ref.kind, ref.name)
    labels = {
        "kubernetes.io/service-name": name,
        "endpointslice.kubernetes.io/managed-by": SLICE_MANAGER,
    }
    endpoints: list[Document] = []
    if pod is not None and address is not None:
        target = {
            "kind": "Pod",
            "namespace": pod.ref.namespace,
            "name": pod.ref.name,
            "uid": pod.uid,
        }
        ready = {"ready": True, "serving": True, "terminating": False}
        endpoints = [{"addresses": [address], "conditions": ready, "targetRef": target}]
    six = address is not None and ":" in address
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata(resource.object, f"{name}-6" if six else name, labels),
        "addressType": "IPv6" if six else "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": PORT_NAME, "port": names.CLIENT_PORT, "protocol": "TCP"}],
    }
