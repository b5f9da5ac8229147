"""ShardGroups: shards join with their pods, and leave before them.

A shard that is added has its pods first; the log gives it a seat in a window to come. One that is
taken away leaves first: no window counts on it any more when its pods go, and by default nobody
can ask for what it holds. A group that is deleted takes its pods along at once, so an admission
policy refuses that while shards have seats.
"""

from collections.abc import Iterator

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.api.conditions import Reason
from anabranch_operator.api.pods import RolloutPolicy
from anabranch_operator.plan.engine.actions import (
    Action,
    Apply,
    Create,
    Delete,
    JoinShard,
    LeaveShard,
    Plan,
)
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import World
from anabranch_operator.plan.groups import shard_conditions
from anabranch_operator.plan.groups.conditions import Obstacle
from anabranch_operator.plan.groups.engines import ENGINES
from anabranch_operator.plan.groups.named_pods import Post, claims, man, relieve, wakes
from anabranch_operator.plan.groups.report import Standing
from anabranch_operator.plan.groups.sequencer_pod import url
from anabranch_operator.plan.groups.shard_members import Group, Seen, look
from anabranch_operator.plan.groups.shard_pod import budget, headless, labels, pod
from anabranch_operator.plan.log import conditions
from anabranch_operator.plan.log.services import missing


def plan_shards(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    group = world.shards.get(ref)
    if group is None:
        return conditions.plan_malformed(world, ref, now)
    if group.object.deleting or world.terminating(ref.namespace):
        return Plan()
    if conditions.is_paused(group.object):
        said = conditions.paused(group.object, group.status.conditions)
        return Plan(shard_conditions.told(group, group.status, said, now))
    found = look(world, group, now)
    useless = tuple(relieve(found.posts, now))
    rolled, obstacle = _roll(found, useless)
    said = shard_conditions.said(world, found, obstacle, troubles)
    pods = sum(len(each.posts) for each in found.shards if not each.over)
    actions: tuple[Action, ...] = (
        *missing(world, headless(group)),
        *missing(world, budget(group, pods)),
        *_coming(world, found),
        *_returning(found),
        *_leaving(found),
        *_going(found),
        *useless,
        *rolled,
        *shard_conditions.shown(world, found, said, now),
    )
    return Plan(actions, min(wakes(found.posts), default=None))


def _coming(world: World, found: Group) -> Iterator[Apply | Create]:
    """Pods for all shards that anybody counts on; also for one that leaves, as long as it must, and
    for one that has failed: it is admitted again, so that it can be read, and then it leaves.
    """
    log, group = found.log, found.group
    if log is None or found.mismatch:
        return
    for shard in found.shards:
        if shard.over:
            continue
        number = shard.number
        settings = ENGINES[group.spec.engine].shard_settings(group, number)
        labelled = {**labels(group.ref.name), names.SHARD_LABEL: shard.name}
        yield from claims(world, group.object, group.spec.storage, labelled, shard.posts)
        yield from man(
            world,
            group.ref.namespace,
            shard.posts,
            lambda name, number=number, settings=settings: pod(group, log, number, name, settings),
        )


def _returning(found: Group) -> Iterator[JoinShard]:
    """Shards that left, or are about to and may be kept, and are wanted again. Whose disks are new
    isn't ready before the log has it back, so nobody waits for that: the log says what stands in
    the way.
    """
    if found.log is None:
        return
    returns = ENGINES[found.group.spec.engine].returns
    for shard in found.wanted:
        if shard.standing in returns and all(each.tries for each in shard.posts):
            yield JoinShard(log=found.log.ref, url=url(found.log), shard=shard.name)


def _leaving(found: Group) -> Iterator[LeaveShard]:
    """The log says when; Belfast at a window's end."""
    if found.log is None:
        return
    for shard in found.surplus:
        if shard.standing in {Standing.WAITING, Standing.SEATED} and shard.name != found.kept:
            yield LeaveShard(log=found.log.ref, url=url(found.log), shard=shard.name)


def _going(found: Group) -> Iterator[Delete]:
    """Pods first, and their volumes when no pod is left, not even of a deleted group of the same
    name. Of a shard that might be admitted meanwhile one replica goes before the others.
    """
    for shard in found.surplus:
        if not shard.over:
            continue
        there = [each for each in shard.posts if each.pod is not None]
        staying = [each for each in there if each.manned]
        if shard.barred:
            yield from (each.leave for each in staying)
        elif len(staying) == len(shard.posts):
            yield staying[-1].leave
        if all(each.empty for each in shard.posts) and shard.barred and shard.told is not None:
            for volume in shard.volumes:
                yield Delete(ref=volume.ref, uid=volume.uid)


def _roll(found: Group, useless: tuple[Delete, ...]) -> tuple[tuple[Delete, ...], Obstacle | None]:
    """One in the whole group at a time: backups first, then the primary, then the next shard."""
    if found.group.spec.rollout.policy is not RolloutPolicy.AUTO or useless:
        return (), None
    shard = next((each for each in found.shards if _candidates(each)), None)
    if shard is None:
        return (), None
    chosen = min(_candidates(shard), key=lambda each: (found.leads(shard, each), each.name))
    failing = [each.name for each in found.posts if each.failing]
    if failing:
        return (), Obstacle(chosen.name, Reason.PODS_FAILING, f"{', '.join(failing)} can't serve")
    if not _settled(found):
        return (), None
    if found.status is None:
        return (), Obstacle(chosen.name, Reason.SEQUENCERS_AWAY, found.why)
    broken = [each.name for each in found.shards if not each.over and not each.whole]
    if broken:
        message = f"not all replicas of {', '.join(broken)} are in sync"
        return (), Obstacle(chosen.name, Reason.WAITING_FOR_COPIES, message)
    return (chosen.leave,), None


def _candidates(shard: Seen) -> list[Post]:
    return [] if shard.over else [each for each in shard.posts if each.ready and each.outdated]


def _settled(found: Group) -> bool:
    """Nobody comes or goes."""
    return all(
        each.ready and not each.evicted
        for shard in found.shards
        if not shard.over
        for each in shard.posts
    )
