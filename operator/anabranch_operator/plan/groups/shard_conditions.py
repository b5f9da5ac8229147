"""What is told of a ShardGroup: who has a seat, who is to get one, who leaves."""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.pods import RolloutPolicy
from anabranch_operator.api.shards import ShardGroupStatus, ShardState
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said, conditions, write
from anabranch_operator.plan.engine.world import Shards, World
from anabranch_operator.plan.groups.conditions import (
    Obstacle,
    announce,
    blocked,
    degraded,
    unwritten,
)
from anabranch_operator.plan.groups.engine import GroupEngine
from anabranch_operator.plan.groups.engines import ENGINES
from anabranch_operator.plan.groups.report import Standing
from anabranch_operator.plan.groups.shard_members import Group, Seen
from anabranch_operator.plan.groups.shard_pod import labels, node
from anabranch_operator.plan.groups.status_polls import unheard
from anabranch_operator.plan.manifests.pod_parts import selector


def status(world: World, found: Group) -> ShardGroupStatus:
    posts = found.posts
    return ShardGroupStatus(
        shards=len(found.shards),
        desired=found.group.spec.shards,
        seated=_seated(found),
        pods=sum(each.ready for each in posts),
        updated=sum(each.manned and not each.outdated for each in posts),
        window=_window(found),
        speculation=_speculation(world, found),
        selector=selector(labels(found.group.ref.name)),
        seats=[_shown(found, each) for each in found.shards],
    )


def _window(found: Group) -> int | None:
    cutting = None if found.status is None else found.status.cutting
    return None if cutting is None else cutting.window


_SEATED = (Standing.SEATED, Standing.LEAVING)


def _seated(found: Group) -> int:
    """Whether the group may be deleted goes by it: nobody gives up a seat while the log is away."""
    if found.log is not None and found.status is None:
        return found.group.status.seated
    return sum(each.standing in _SEATED for each in found.shards)


def _speculation(world: World, found: Group) -> int | None:
    """Rounded down: 100 says that nothing was ever void."""
    vitals = [
        world.vitals[each.pod.uid]
        for each in found.posts
        if each.pod is not None and each.pod.uid in world.vitals
    ]
    confirmed = sum(each.confirmed for each in vitals)
    told = confirmed + sum(each.voided for each in vitals)
    return 100 * confirmed // told if told else None


def _shown(found: Group, shard: Seen) -> ShardState:
    told = shard.told
    if told is None:
        return ShardState(name=shard.name, standing="Absent")
    primary = (each.name for each in shard.posts if found.leads(shard, each))
    return ShardState(
        name=shard.name,
        standing=told.standing.value,
        epoch=told.epoch,
        primary=next(primary, None),
        copies=len(told.replicas) - len(told.silent),
        quota=told.quota,
        lag=told.lag,
        resting=told.resting,
    )


def said(world: World, found: Group, obstacle: Obstacle | None, troubles: Troubles) -> list[Said]:
    engine = ENGINES[found.group.spec.engine]
    return [
        unwritten(troubles) or _ready(found),
        _progressing(found, obstacle),
        degraded(world, _flaws(found)),
        blocked(obstacle, len(found.old), found.group.spec.rollout.policy),
        *engine.shard_conditions(found),
        _joining(found, engine),
        _leaving(found, engine),
    ]


def shown(world: World, found: Group, said: list[Said], now: Nanoseconds) -> tuple[Action, ...]:
    group = found.group
    if found.log is not None and group.status.conditions and unheard(world, found.log.ref):
        return ()
    written = told(group, status(world, found), said, now)
    return (*written, *announce(group.object, group.status.conditions, said))


def told(
    group: Shards, status: ShardGroupStatus, said: list[Said], now: Nanoseconds
) -> tuple[Action, ...]:
    generation = group.object.generation
    made = conditions(group.status.conditions, said, generation, now)
    return write(group.object, replace(status, observed_generation=generation, conditions=made))


def _ready(found: Group) -> Said:
    away = found.away
    if away is not None:
        return Said(Type.READY, False, *away)
    failed = _names(found.wanted, Standing.FAILED)
    if failed:
        return Said(Type.READY, False, Reason.SHARDS_FAILED, f"{failed} failed as a whole")
    seated = sum(each.seated for each in found.wanted)
    message = f"{seated} of {len(found.wanted)} shards take appends"
    if seated < len(found.wanted):
        return Said(Type.READY, False, Reason.AWAITING_SEATS, message)
    return Said(Type.READY, True, Reason.SEATED, "every wanted shard takes appends")


def _progressing(found: Group, obstacle: Obstacle | None) -> Said:
    rolls = found.group.spec.rollout.policy is RolloutPolicy.AUTO
    if rolls and found.old and obstacle is None:
        message = f"{len(found.old)} pods run an older spec"
        return Said(Type.PROGRESSING, True, Reason.ROLLING, message)
    if found.surplus:
        message = f"{', '.join(each.name for each in found.surplus)} leaving"
        return Said(Type.PROGRESSING, True, Reason.SCALING, message)
    moving = [each.name for each in found.posts if not each.ready and not each.failing]
    if moving:
        message = f"{', '.join(moving)} starting or ending"
        return Said(Type.PROGRESSING, True, Reason.SCALING, message)
    return Said(Type.PROGRESSING, False, Reason.UP_TO_DATE, "no pod is starting or ending")


def _flaws(found: Group) -> Iterator[tuple[Reason, str]]:
    for shard in found.shards:
        for each in shard.posts:
            if each.failing:
                yield Reason.PODS_FAILING, f"{each.name}: {each.failing}"
        if shard.told is None or shard.told.standing in {Standing.FAILED, Standing.LEFT}:
            continue
        count = len(shard.told.replicas) - len(shard.told.silent)
        if count < len(shard.posts):
            away = _missing(found, shard)
            yield Reason.WAITING_FOR_COPIES, f"{shard.name} runs without {away}"


def _missing(found: Group, shard: Seen) -> str:
    assert shard.told is not None
    counted = [each for each in shard.told.replicas if each not in shard.told.silent]
    return ", ".join(
        each.name for each in shard.posts if node(found.group, each.name) not in counted
    )


def _joining(found: Group, engine: GroupEngine) -> Said:
    unseated = [each.name for each in found.wanted if not each.seated]
    if unseated:
        message = f"{', '.join(unseated)} {engine.joins}"
        return Said(Type.JOINING, True, Reason.AWAITING_SEATS, message)
    return Said(Type.JOINING, False, Reason.NONE_JOINS, "every wanted shard takes appends")


def _leaving(found: Group, engine: GroupEngine) -> Said:
    if not found.surplus:
        message = "no shard is to leave"
        return Said(Type.LEAVING, False, Reason.NONE_LEAVES, message)
    away = found.away
    if away is not None:
        return Said(Type.LEAVING, True, *away)
    if found.kept:
        message = f"{found.kept} stays: it is the last shard of the log, and appends need one"
        return Said(Type.LEAVING, True, Reason.LAST_SHARD, message)
    seated = _names(found.surplus, Standing.WAITING, Standing.SEATED, Standing.LEAVING)
    if seated:
        return Said(Type.LEAVING, True, engine.leaving_reason, f"{seated} {engine.leaves}")
    kept = [each.told for each in found.surplus if each.told is not None and not each.over]
    if kept:
        what = ", ".join(f"{each.name} {each.standing.lower()}" for each in kept)
        message = (
            f"{what}: trim the log to {max(each.last for each in kept)}, or set leaving.waitFor to "
            "Nothing to give up what is kept there"
        )
        return Said(Type.LEAVING, True, Reason.AWAITING_TRIM, message)
    names = ", ".join(each.name for each in found.surplus)
    message = f"the log doesn't count on {names} any more, and the pods are ending"
    return Said(Type.LEAVING, True, Reason.DRAINING, message)


def _names(shards: list[Seen], *standings: Standing) -> str:
    return ", ".join(each.name for each in shards if each.standing in standings)
