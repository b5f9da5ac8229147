"""Evictions: brokers hand over what they serve first; members, sequencers and the replicas of a
shard go one at a time (ADR 0024, 0033).
"""

from collections.abc import Iterator

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import BROKER_READY, MS, Nanoseconds
from anabranch_operator.plan.engine.dependencies import broker_name
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import Eviction, World
from anabranch_operator.plan.groups import sequencer_members, shard_members
from anabranch_operator.plan.log.conditions import is_paused
from anabranch_operator.plan.log.services import is_ready

FORGOTTEN_MS = 120_000
"""Whoever drains a node asks every few seconds; who hasn't for so long has given up."""


class Evictions:
    """Requests to take pods off their nodes, each granted once the pod can be spared."""

    def __init__(self, world: World) -> None:
        self._world = world

    def ask(self, uid: str, now: Nanoseconds) -> Observed | None:
        """Somebody asks for a pod, or asks again; None if there is no such pod."""
        pod = self._world.by_uid(uid)
        if pod is None:
            return None
        known = self._world.evicting.get(uid)
        if known is None:
            self._world.evicting[uid] = Eviction(now, now)
        else:
            known.asked_at, known.told = now, False
        return pod

    def grant(self, now: Nanoseconds) -> Iterator[str]:
        """Pods that may go now, each told once for each time that it is asked for."""
        evicting = self._world.evicting
        for uid, each in list(evicting.items()):
            if forgotten_at(each) <= now:
                del evicting[uid]
            elif not each.told and may_go(self._world, uid, now):
                each.told = True
                yield uid


def deadline(world: World, eviction: Eviction) -> Nanoseconds:
    """From then on the pod goes, whatever stands in the way."""
    return eviction.since + world.surroundings.eviction_ms * MS


def forgotten_at(eviction: Eviction) -> Nanoseconds:
    return eviction.asked_at + FORGOTTEN_MS * MS


def may_go(world: World, uid: str, now: Nanoseconds) -> bool:
    """Can this pod be spared?"""
    pod = world.by_uid(uid)
    if pod is None or pod.deleting or not is_ready(pod):
        return True
    eviction = world.evicting.get(uid)
    if eviction is not None and deadline(world, eviction) <= now:
        return True
    match pod.labels.get(names.ROLE):
        case names.BROKER:
            return _has_handed_over(world, pod)
        case names.METADATA:
            return _is_spared(world, pod)
        case names.SEQUENCER:
            return _sequencers_spare(world, pod, now)
        case names.SHARD:
            return _shard_spares(world, pod, now)
        case _:
            return True


def _has_handed_over(world: World, pod: Observed) -> bool:
    pool = world.pools.get(Ref(names.POOL, pod.ref.namespace, pod.labels.get(names.POOL_LABEL, "")))
    if pool is None or pool.object.deleting or is_paused(pool.object):
        return True
    seat = world.service.brokers.get(broker_name(pod))
    if seat is None:
        return world.service.trouble is None
    return seat.state != BROKER_READY and not (seat.roots or seat.trees or seat.exclusive)


def _sequencers_spare(world: World, pod: Observed, now: Nanoseconds) -> bool:
    name = pod.labels.get(names.SEQUENCERS_LABEL, "")
    group = world.sequencers.get(Ref(names.SEQUENCERS, pod.ref.namespace, name))
    if group is None or group.object.deleting or is_paused(group.object):
        return True
    sight = sequencer_members.look(world, group, now)
    return sequencer_members.spares(sight, pod.ref.name)


def _shard_spares(world: World, pod: Observed, now: Nanoseconds) -> bool:
    """All other replicas of its shard are there, and count. Pods of a deleted group of the same
    name are judged like the new group's: the log may still count on them.
    """
    name = pod.labels.get(names.SHARDS_LABEL, "")
    group = world.shards.get(Ref(names.SHARDS, pod.ref.namespace, name))
    if group is None or group.object.deleting or is_paused(group.object):
        return True
    found = shard_members.look(world, group, now)
    shard = pod.labels.get(names.SHARD_LABEL)
    here = [each for each in found.shards if each.name == shard]
    return all(_is_out(each) or (found.status is not None and each.whole) for each in here)


def _is_out(shard: shard_members.Seen) -> bool:
    return shard.over and shard.barred


def _is_spared(world: World, pod: Observed) -> bool:
    """All others are ready, or this one is alone, and nobody else was told to go before it."""
    others = [each for each in members(world, pod.owners) if each.uid != pod.uid]
    if not all(is_ready(each) and not each.deleting for each in others):
        return False
    replicas = max((_replicas(world, uid) for uid in pod.owners), default=1)
    return len(others) >= replicas - 1 and not any(world.goes(each.uid) for each in others)


def members(world: World, owners: tuple[str, ...]) -> list[Observed]:
    """The pods of those owners."""
    return [pod for uid in owners for pod in world.children(uid, "Pod")]


def _replicas(world: World, uid: str) -> int:
    owner = world.by_uid(uid)
    return 1 if owner is None else owner.spec.get("replicas", 1)
