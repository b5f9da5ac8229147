"""SequencerSets: the pods of a log's sequencing group, followers rolled first and the leader last.

A group that is deleted takes its pods along. Its volumes stay unless `storage.onDelete` says not.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.pods import RolloutPolicy
from anabranch_operator.api.sequencers import Sequencer, SequencerSetStatus
from anabranch_operator.plan.engine.actions import Action, Delete, Plan
from anabranch_operator.plan.engine.objects import Document, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said, conditions, write
from anabranch_operator.plan.engine.world import Sequencers, World
from anabranch_operator.plan.groups.conditions import (
    Obstacle,
    announce,
    blocked,
    degraded,
    unwritten,
)
from anabranch_operator.plan.groups.engine import Flaw, GroupEngine
from anabranch_operator.plan.groups.engines import ENGINES
from anabranch_operator.plan.groups.named_pods import Post, claims, man, relieve, wakes
from anabranch_operator.plan.groups.report import Standing
from anabranch_operator.plan.groups.sequencer_members import Sight, look
from anabranch_operator.plan.groups.sequencer_pod import (
    budget,
    endpoint,
    headless,
    labels,
    log_id,
    pod,
)
from anabranch_operator.plan.groups.status_polls import unheard
from anabranch_operator.plan.log import conditions as telling
from anabranch_operator.plan.log.services import missing

_SEATED = (Standing.SEATED, Standing.LEAVING)


def plan_sequencers(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    group = world.sequencers.get(ref)
    if group is None:
        return telling.plan_malformed(world, ref, now)
    if group.object.deleting or world.terminating(ref.namespace):
        return Plan()
    if telling.is_paused(group.object):
        said = telling.paused(group.object, group.status.conditions)
        return Plan(_told(group, group.status, said, now))
    sight = look(world, group, now)
    useless = tuple(relieve(sight.posts, now))
    leaving, obstacle = _roll(sight, useless)
    engine = ENGINES[group.spec.engine]
    said = _said(world, sight, obstacle, troubles, engine)
    actions: tuple[Action, ...] = (
        *missing(world, headless(group)),
        *missing(world, budget(group)),
        *_manned(world, sight, engine),
        *useless,
        *leaving,
        *_shown(world, sight, said, now, engine),
    )
    return Plan(actions, min(wakes(sight.posts), default=None))


def _manned(world: World, sight: Sight, engine: GroupEngine) -> Iterator[Action]:
    """Volumes, and pods where there are none."""
    group = sight.group
    if engine.waits(group) is not None:
        return
    settings = engine.sequencer_settings(group)
    yield from claims(world, group.object, group.spec.storage, labels(group.ref.name), sight.posts)

    def made(name: str) -> Document:
        return pod(group, name, settings, engine.sequencer_volumes(group))

    yield from man(world, group.ref.namespace, sight.posts, made)


def _roll(sight: Sight, useless: tuple[Delete, ...]) -> tuple[tuple[Delete, ...], Obstacle | None]:
    """One at a time, the leader last: it hands over when it is told to end."""
    if not sight.old or sight.group.spec.rollout.policy is not RolloutPolicy.AUTO:
        return (), None
    candidates = [each for each in sight.old if each.ready]
    if useless or not candidates:
        return (), None
    chosen = min(candidates, key=lambda each: (sight.leads(each), each.name))
    failing = [each.name for each in sight.posts if each.failing]
    if failing:
        return (), Obstacle(chosen.name, Reason.PODS_FAILING, f"{', '.join(failing)} can't serve")
    if not all(each.ready and not each.evicted for each in sight.posts):
        return (), None
    if sight.status is None:
        return (), Obstacle(chosen.name, Reason.SEQUENCERS_AWAY, sight.why)
    silent = [each.name for each in sight.posts if not sight.reaches(each)]
    if silent:
        message = f"{ENGINES[sight.group.spec.engine].unreached} {', '.join(silent)}"
        return (), Obstacle(chosen.name, Reason.WAITING_FOR_COPIES, message)
    return (chosen.leave,), None


def _shown(
    world: World, sight: Sight, said: list[Said], now: Nanoseconds, engine: GroupEngine
) -> tuple[Action, ...]:
    group = sight.group
    if group.status.conditions and unheard(world, group.ref):
        return ()
    told = _told(group, _status(sight, engine), said, now)
    return (*told, *announce(group.object, group.status.conditions, said))


def _status(sight: Sight, engine: GroupEngine) -> SequencerSetStatus:
    report, leader = sight.status, sight.leader
    found = SequencerSetStatus(
        members=sight.reached,
        ready=sum(each.ready for each in sight.posts),
        updated=sum(each.manned and not each.outdated for each in sight.posts),
        endpoint=endpoint(sight.group),
        sequencers=[_sequencer(sight, each) for each in sight.posts],
        log_id=log_id(sight.group),
    )
    if report is None:
        # Whether it may be deleted goes by the seats, which nobody gives up while it is away.
        return replace(found, seated=sight.group.status.seated)
    found = replace(
        found,
        leader=None if leader is None else leader.name,
        view=report.view,
        confirmed=report.settled,
        seated=sum(each.standing in _SEATED for each in report.shards),
    )
    return engine.sequencer_status(found, report)


def _sequencer(sight: Sight, post: Post) -> Sequencer:
    return Sequencer(
        pod=post.name, node=post.node, state=_state(sight, post), updated=not post.outdated
    )


def _state(sight: Sight, post: Post) -> str:
    if post.pod is None:
        return "absent"
    if post.pod.deleting:
        return "ending"
    if not post.ready:
        return "failing" if post.failing else "starting"
    if sight.leads(post):
        return "leading"
    return "following" if sight.status is None or sight.reaches(post) else "silent"


def _said(
    world: World,
    sight: Sight,
    obstacle: Obstacle | None,
    troubles: Troubles,
    engine: GroupEngine,
) -> list[Said]:
    policy = sight.group.spec.rollout.policy
    return [
        unwritten(troubles) or _ready(sight, engine),
        _progressing(sight, obstacle),
        degraded(world, _flaws(sight, engine)),
        blocked(obstacle, len(sight.old), policy),
        *engine.sequencer_conditions(sight),
    ]


def _ready(sight: Sight, engine: GroupEngine) -> Said:
    waits = engine.waits(sight.group)
    if waits is not None:
        return Said(Type.READY, False, *waits)
    if sight.status is None:
        return Said(Type.READY, False, Reason.SEQUENCERS_AWAY, sight.why)
    obstacle = engine.obstacle(sight.status)
    if obstacle is not None:
        return Said(Type.READY, False, *obstacle)
    leader = sight.leader
    who = sight.status.leader if leader is None else leader.name
    return Said(Type.READY, True, Reason.LEADING, f"{who} leads")


def _progressing(sight: Sight, obstacle: Obstacle | None) -> Said:
    rolls = sight.group.spec.rollout.policy is RolloutPolicy.AUTO
    if rolls and sight.old and obstacle is None:
        message = f"{len(sight.old)} sequencers run an older spec"
        return Said(Type.PROGRESSING, True, Reason.ROLLING, message)
    moving = [each.name for each in sight.posts if not each.ready and not each.failing]
    if moving:
        message = f"{', '.join(moving)} starting or ending"
        return Said(Type.PROGRESSING, True, Reason.SCALING, message)
    return Said(Type.PROGRESSING, False, Reason.UP_TO_DATE, "no pod is starting or ending")


def _flaws(sight: Sight, engine: GroupEngine) -> Iterator[Flaw]:
    for each in sight.posts:
        if each.failing:
            yield Reason.PODS_FAILING, f"{each.name}: {each.failing}"
        elif sight.status is not None and each.ready and not sight.reaches(each):
            yield Reason.WAITING_FOR_COPIES, f"{engine.unreached} {each.name}"
    if sight.status is not None:
        yield from engine.flaws(sight.status)


def _told(
    group: Sequencers, status: SequencerSetStatus, said: list[Said], now: Nanoseconds
) -> tuple[Action, ...]:
    generation = group.object.generation
    made = conditions(group.status.conditions, said, generation, now)
    return write(group.object, replace(status, observed_generation=generation, conditions=made))
