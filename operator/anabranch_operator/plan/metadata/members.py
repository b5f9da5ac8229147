"""The metadata members rolled: standbys first, the leader last, one at a time (ADR 0024).

Their StatefulSet is the chart's, and deletes no pod by itself. Nothing is done but that.
"""

from collections.abc import Iterator

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.engine.actions import Announce, Delete, Plan
from anabranch_operator.plan.engine.objects import Document, Observed, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import World
from anabranch_operator.plan.log.conditions import is_paused
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.evictions import forgotten_at
from anabranch_operator.plan.pool.health import health

BEHIND_MAX = 1_000
"""Entries of the journal: a member further behind would be long in taking over."""

REVISION = "controller-revision-hash"
ROLLING, ROLLED = "Rolling", "Rolled"


def plan_members(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    """A member that can't be deleted is tried again; there is nowhere to tell of it but the log."""
    del troubles
    owner = world.objects.get(Ref("StatefulSet", ref.namespace, world.surroundings.metadata))
    if owner is None or owner.deleting or is_paused(owner) or not _is_ours_to_roll(owner):
        return Plan()
    pods = sorted(world.children(owner.uid, "Pod"), key=lambda pod: pod.ref)
    outdated = [pod for pod in pods if not pod.deleting and _is_outdated(pod, owner)]
    states = {pod.uid: health(pod, now) for pod in outdated}
    broken = [pod for pod in outdated if states[pod.uid].failing]
    if broken:
        # They serve nothing as they are, and what they should be may mend them.
        return Plan(tuple(map(_delete, broken)))
    times = [each.overdue_at for each in states.values() if each.overdue_at]
    times += [forgotten_at(world.evicting[pod.uid]) for pod in pods if pod.uid in world.evicting]
    due = min(times, default=None)
    if not outdated or not _may_roll(world, owner, pods):
        return Plan(wake_at=due)
    chosen = min(outdated, key=lambda pod: (world.vitals[pod.uid].leading, pod.ref))
    return Plan((_delete(chosen), *_told(owner, pods, outdated, chosen)), due)


def _is_ours_to_roll(owner: Observed) -> bool:
    """And does its status speak of the spec as it is now?"""
    strategy: Document = owner.spec.get("updateStrategy") or {}
    if strategy.get("type") != "OnDelete" or not owner.status.get("updateRevision"):
        return False
    seen: int = owner.status.get("observedGeneration", 0)
    return seen >= owner.generation


def _is_outdated(pod: Observed, owner: Observed) -> bool:
    return pod.labels.get(REVISION) != owner.status["updateRevision"]


def _may_roll(world: World, owner: Observed, pods: list[Observed]) -> bool:
    """All are there and ready, one leads, the others could, and nobody is about to be evicted."""
    if world.service.trouble is not None or len(pods) != owner.spec.get("replicas", 1):
        return False
    if not all(is_ready(pod) and not pod.deleting for pod in pods):
        return False
    if any(pod.uid in world.evicting or pod.uid not in world.vitals for pod in pods):
        return False
    told = [world.vitals[pod.uid] for pod in pods]
    return sum(each.leading for each in told) == 1 and all(
        each.behind <= BEHIND_MAX for each in told
    )


def _delete(pod: Observed) -> Delete:
    return Delete(ref=pod.ref, uid=pod.uid)


def _told(
    owner: Observed, pods: list[Observed], outdated: list[Observed], chosen: Observed
) -> Iterator[Announce]:
    """Events at the first and at the last of them."""
    if len(outdated) == len(pods):
        message = f"the template has changed: {len(pods)} members are replaced, the leader last"
        yield _event(owner, ROLLING, message)
    if len(outdated) == 1:
        yield _event(owner, ROLLED, f"{chosen.ref.name} is the last to be replaced")


def _event(owner: Observed, reason: str, message: str) -> Announce:
    return Announce(ref=owner.ref, uid=owner.uid, warning=False, reason=reason, message=message)
