"""What the operator looks at by itself: the log service, and the metrics of pods."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import MS, Description, Nanoseconds, SetTimer
from anabranch_operator.plan.engine.dependencies import everybody, of_kinds, ref_of
from anabranch_operator.plan.engine.events import Look, Viewed
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import World, moved

LOOK = "look"

Defers = Callable[[Ref], bool]
"""Will this object be planned again anyway, when its deferred status write is due?"""


class ServicePoll:
    """Looks every `look_ms`, one look at a time; each answer tells which objects to plan again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._looking = False

    def start(self) -> Iterator[Look]:
        if not self._looking:
            self._looking = True
            self._world.service.looking()
            yield Look()

    def cancel(self) -> None:
        self._looking = False

    def finish(self, now: Nanoseconds) -> SetTimer:
        """An answer has come; the timer says when to look again."""
        self._looking = False
        return SetTimer(LOOK, now + self._world.surroundings.look_ms * MS)

    def view(self, event: Viewed, defers: Defers) -> list[Ref]:
        service = self._world.service
        news = not service.looked or service.trouble is not None
        changed, brokers = service.view(event.logs, event.brokers)
        if news:
            return list(everybody(self._world))
        wake: list[Ref] = []
        for id, before in changed.items():
            wake += _changed(before, service.logs.get(id), defers)
        if brokers:
            wake += of_kinds(self._world, names.POOL)
        return [*wake, *self._world.orphans()]

    def miss(self, why: str) -> list[Ref]:
        """The log service couldn't be looked at."""
        service = self._world.service
        news = service.trouble is None or not service.looked
        service.trouble, service.looked = why, True
        return list(everybody(self._world)) if news else []


def _changed(before: Description, after: Description | None, defers: Defers) -> Iterator[Ref]:
    """A thousand forks of a log move with each append to it: a fork of which only counters moved
    isn't planned before its deferred status write is due.
    """
    only_moved = after is not None and moved(before, after)
    for log in (before, after):
        ref = None if log is None else ref_of(log.owner)
        if ref is None or (only_moved and ref.kind == names.FORK and defers(ref)):
            continue
        yield ref


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
