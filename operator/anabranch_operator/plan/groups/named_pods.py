"""Pods with names of their own, as Belfast's are: each name is a post, and a pod mans it.

Another pod of a name finds the volume of the one before it, so that it is the same sequencer or
replica to all others. Nobody is taken from a post by force: while Kubernetes can't tell whether a
pod still runs, there mustn't be a second one of its name.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import MS, Nanoseconds
from anabranch_operator.api.storage import OnDelete, Storage
from anabranch_operator.plan.engine.actions import Action, Apply, Create, Delete
from anabranch_operator.plan.engine.objects import Document, Observed, Ref
from anabranch_operator.plan.engine.world import World
from anabranch_operator.plan.log.services import metadata, missing
from anabranch_operator.plan.manifests.pod_parts import Mounted
from anabranch_operator.plan.manifests.quantities import whole
from anabranch_operator.plan.pool.health import Health, health

DATA_DIR = "/var/lib/anabranch"
CLAIM = "PersistentVolumeClaim"

ENDED_MS = 10_000
"""A pod that ended isn't replaced sooner after it was made: the next may end as well."""


class Post(Struct, frozen=True, kw_only=True):
    name: str
    pod: Observed | None
    taken: bool
    """A pod of this name is there that isn't the owner's: of a deleted resource of the same name,
    until the garbage collector has come to it.
    """
    health: Health | None
    outdated: bool
    evicted: bool
    """Somebody wants it off its node."""
    going: bool
    """It was said that it may go, or that is being done."""

    @property
    def empty(self) -> bool:
        """No pod of this name is there, whoever owns it: nothing uses its volume or can serve."""
        return self.pod is None and not self.taken

    @property
    def manned(self) -> bool:
        return self.pod is not None and not self.pod.deleting

    @property
    def ready(self) -> bool:
        return self.manned and self.health is not None and self.health.ready

    @property
    def failing(self) -> str:
        return self.health.failing if self.manned and self.health is not None else ""

    @property
    def tries(self) -> bool:
        """It has a node, and nothing is told of it but that it isn't ready, for however long."""
        if not self.manned or self.health is None or not self.health.placed:
            return False
        return self.health.overdue or not self.health.failing

    @property
    def node(self) -> str | None:
        return None if self.pod is None else self.pod.spec.get("nodeName")

    @property
    def leave(self) -> Delete:
        assert self.pod is not None
        return Delete(ref=self.pod.ref, uid=self.pod.uid)


def posts(
    world: World, owner: Observed, wanted: Iterable[str], template: str, now: Nanoseconds
) -> tuple[Post, ...]:
    """Whoever bears a name and isn't the owner's doesn't man a post of its."""
    pods = {pod.ref.name: pod for pod in world.children(owner.uid, "Pod")}
    return tuple(
        _post(world, Ref("Pod", owner.ref.namespace, name), pods.get(name), template, now)
        for name in wanted
    )


def _post(world: World, ref: Ref, pod: Observed | None, template: str, now: Nanoseconds) -> Post:
    return Post(
        name=ref.name,
        pod=pod,
        taken=pod is None and ref in world.objects,
        health=None if pod is None else health(pod, now),
        outdated=pod is not None and pod.labels.get(names.TEMPLATE) != template,
        evicted=pod is not None and pod.uid in world.evicting,
        going=pod is not None and world.goes(pod.uid),
    )


def man(
    world: World, namespace: str, found: Sequence[Post], make: Callable[[str], Document]
) -> Iterator[Create]:
    """Pods for the posts that nobody mans; not while the volume of the last one is going."""
    for each in found:
        claim = world.objects.get(claim_of(namespace, each.name))
        if each.pod is None and not (claim is not None and claim.deleting):
            yield Create(ref=Ref("Pod", namespace, each.name), manifest=make(each.name))


def relieve(found: Sequence[Post], now: Nanoseconds) -> Iterator[Delete]:
    """Those that do nothing where they are, and that another would do better than."""
    for each in found:
        if each.pod is None or each.health is None or each.pod.deleting:
            continue
        over = each.health.ended and _replaced_at(each.pod) <= now
        unplaced = each.outdated and not each.health.ready and not each.health.placed
        if over or unplaced or (each.failing and each.outdated):
            yield each.leave


def wakes(found: Sequence[Post]) -> Iterator[Nanoseconds]:
    """When something changes by time alone."""
    for each in found:
        if each.pod is None or each.health is None:
            continue
        if each.health.overdue_at is not None:
            yield each.health.overdue_at
        if each.health.ended:
            yield _replaced_at(each.pod)


def claim_of(namespace: str, pod: str) -> Ref:
    return Ref(CLAIM, namespace, f"data-{pod}")


def claims(
    world: World, owner: Observed, storage: Storage, labels: dict[str, str], found: Sequence[Post]
) -> Iterator[Apply]:
    """A volume for each post. One that is to outlive the resource isn't owned by it."""
    wanted = storage.volume_claim
    if wanted is None:
        return
    for each in found:
        ref = claim_of(owner.ref.namespace, each.name)
        meta = dict(metadata(owner, ref.name, labels))
        if storage.on_delete is OnDelete.RETAIN:
            meta["ownerReferences"] = []
        known = world.objects.get(ref)
        spec: dict[str, object] = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": _size(wanted.size, known)}},
        }
        if wanted.storage_class_name is not None:
            spec["storageClassName"] = wanted.storage_class_name
        if known is None or not known.deleting:
            manifest = {"apiVersion": "v1", "kind": CLAIM, "metadata": meta, "spec": spec}
            yield from _applied(missing(world, manifest))


def _size(wanted: str, known: Observed | None) -> str:
    """The API server keeps amounts in words of its own, and people may have a volume grow."""
    resources: Document = {} if known is None else known.spec.get("resources") or {}
    requests: Document = resources.get("requests") or {}
    text = str(requests.get("storage", ""))
    have, least = whole(text), whole(wanted)
    return text if have is not None and least is not None and have >= least else wanted


def _applied(actions: Iterable[Action]) -> Iterator[Apply]:
    return (each for each in actions if isinstance(each, Apply))


def mounted(storage: Storage) -> Storage:
    """What a pod is made of of it: a volume grows, and outlives its resource, without the pod."""
    claim = storage.volume_claim
    kept = None if claim is None else replace(claim, size="")
    return replace(storage, on_delete=OnDelete.RETAIN, volume_claim=kept)


def data(storage: Storage, pod: str) -> Mounted:
    """Where a pod keeps what it has acknowledged."""
    if storage.volume_claim is None:
        volume: Document = {"name": "data", "emptyDir": {}}
    else:
        claim = {"claimName": claim_of("", pod).name}
        volume = {"name": "data", "persistentVolumeClaim": claim}
    return volume, {"name": "data", "mountPath": DATA_DIR}


def _replaced_at(pod: Observed) -> Nanoseconds:
    return (pod.created_at + ENDED_MS) * MS
