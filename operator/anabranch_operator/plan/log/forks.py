"""A Fork resource: made through the log service, mirrored, judged, promoted, squashed.

Nothing here makes a fork fast or slow: the log service makes it, in milliseconds, and whoever has
no time for an API server asks it directly. The resource declares and mirrors.
"""

from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import (
    MS,
    Description,
    Kind,
    LogExists,
    LogId,
    Nanoseconds,
    OnParentDelete,
    Promoted,
    Refused,
    Squashed,
    UnknownLog,
)
from anabranch_operator.api.common import instant, milliseconds
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.fork import (
    ForkPhase,
    ForkStatus,
    ForkType,
    Isolation,
    ParentDeletion,
)
from anabranch_operator.plan.engine.actions import (
    Action,
    Adopt,
    Delete,
    Describe,
    MakeFork,
    Plan,
    Promote,
)
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said, stamp
from anabranch_operator.plan.engine.world import Fork, World, parent_of
from anabranch_operator.plan.log import conditions
from anabranch_operator.plan.log.conditions import told
from anabranch_operator.plan.log.gates import Verdict, judge
from anabranch_operator.plan.log.orphans import declare, known, mark, owner_of, unhold
from anabranch_operator.plan.log.services import Face, face, faceless

EXPIRED = "its time to live passed"
"""How the log service tells that nobody but time squashed a fork."""

_MADE_BY_OPERATOR, _MADE_BY_API = "operator", "api"


def plan_fork(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    fork = world.forks.get(ref)
    if fork is None:
        return conditions.plan_malformed(world, ref, now)
    if held := unhold(world, fork):
        return Plan(held)
    if conditions.is_left_alone(world, fork):
        said = conditions.paused(fork.object, fork.status.conditions)
        return told(world, fork, now, fork.status, said)
    if fork.object.deleting:
        status = replace(fork.status, phase=ForkPhase.TERMINATING)
        return told(world, fork, now, status, [conditions.terminating(fork)])
    fate = _fate(world, fork)
    if fate is not None:
        return _over(world, fork, fate, now)
    found = known(world, fork)
    if isinstance(found, Describe):
        return Plan((found,))
    if found is None:
        return _making(world, fork, now, troubles)
    return _served(world, fork, found, now, troubles)


def own_name(fork: Fork) -> str:
    """Within its root's tree."""
    return fork.spec.fork_name or fork.ref.name


def _fate(world: World, fork: Fork) -> Refused | None:
    """What became of the fork, if it is no more; a resource tells it for as long as it is there."""
    if fork.status.phase in _OVER:
        return Refused(_OVER[fork.status.phase].value, _message(fork), {})
    fates = world.service.fates
    id = None if fork.status.log_id is None else LogId(fork.status.log_id)
    fate = fates.get(fork.owner) or (None if id is None else fates.get(id))
    if fate is None and id is not None and id in world.service.logs:
        taken = world.service.logs[id].owner
        if taken and names.plain(taken) != fork.owner:
            return Refused(UnknownLog.code, f"the log is {taken}'s now", {})
    return fate


_OVER = {
    ForkPhase.PROMOTED: Reason.PROMOTED,
    ForkPhase.SQUASHED: Reason.SQUASHED,
    ForkPhase.EXPIRED: Reason.EXPIRED,
    ForkPhase.LOST: Reason.LOG_LOST,
}


def _message(fork: Fork) -> str:
    ready = (each for each in fork.status.conditions if each.type == Type.READY)
    return next((each.message for each in ready), "")


def _over(world: World, fork: Fork, fate: Refused, now: Nanoseconds) -> Plan:
    """The fork is no more; its resource tells what became of it, and goes when it was told to."""
    phase, reason = _phase_of(fate)
    finished_at = fork.status.finished_at or stamp(now // MS)
    status = replace(fork.status, phase=phase, finished_at=finished_at, endpoint=None, broker=None)
    said = [Said(Type.READY, False, reason, fate.message), *_kept(fork)]
    actions: list[Action] = [*faceless(world, fork)]
    again = None
    if fork.spec.ttl_after_finished is not None:
        again = (instant(finished_at) + milliseconds(fork.spec.ttl_after_finished)) * MS
        if again <= now:
            actions.append(Delete(ref=fork.ref, uid=fork.object.uid))
    plan = told(world, fork, now, status, said, tuple(actions))
    return Plan(plan.actions, again)


def _phase_of(fate: Refused) -> tuple[ForkPhase, Reason]:
    for phase, reason in _OVER.items():
        if fate.code == reason.value:
            return phase, reason
    if fate.code == Promoted.code:
        return ForkPhase.PROMOTED, Reason.PROMOTED
    if fate.code == Squashed.code:
        if fate.facts.get("reason") == EXPIRED:
            return ForkPhase.EXPIRED, Reason.EXPIRED
        return ForkPhase.SQUASHED, Reason.SQUASHED
    return ForkPhase.LOST, Reason.LOG_LOST


def _kept(fork: Fork) -> list[Said]:
    """What was said of gate and approval stays said."""
    told = conditions.as_before(fork.status.conditions)
    kept = [each for each in told if each.type is Type.GATE_PASSED]
    if fork.spec.approved:
        return [*kept, Said(Type.APPROVED, True, Reason.APPROVED)]
    return [*kept, *(each for each in told if each.type is Type.APPROVED)]


def _making(world: World, fork: Fork, now: Nanoseconds, troubles: Troubles) -> Plan:
    parent, stands = _parent(world, fork)
    if parent is None:
        said = stands or Said(Type.READY, False, Reason.PARENT_NOT_READY)
        return told(world, fork, now, fork.status, [said])
    make = _make(fork, parent)
    trouble = troubles.with_action(MakeFork)
    if trouble is None:
        return Plan((make,))
    if trouble.refusal.code == LogExists.code and fork.spec.adopt:
        # What was refused stays wanted: its pause would be forgotten otherwise.
        plan = _adopting(world, fork, parent, now, troubles)
        return Plan((make, *plan.actions), plan.wake_at)
    return told(world, fork, now, fork.status, [conditions.refused(trouble)], (make,))


def _parent(world: World, fork: Fork) -> tuple[Description | None, Said | None]:
    ref = parent_of(fork)
    parent = world.logs.get(ref) or world.forks.get(ref)
    if parent is None:
        message = f"there is no {ref}: apply it, or correct spec.parent in a new resource"
        return None, Said(Type.READY, False, Reason.PARENT_MISSING, message)
    found = world.service.of(parent.owner)
    if found is None or parent.object.deleting:
        message = f"{ref} has no log yet, or has lost it"
        return None, Said(Type.READY, False, Reason.PARENT_NOT_READY, message)
    return found, None


def _make(fork: Fork, parent: Description) -> MakeFork:
    spec = fork.spec
    past = at = None
    if spec.at is not None:
        past = spec.at.position
        at = None if spec.at.time is None else instant(spec.at.time)
    cascade = spec.on_parent_delete is ParentDeletion.CASCADE
    return MakeFork(
        parent=parent.id,
        kind=_KINDS[spec.type],
        name=own_name(fork),
        owner=owner_of(fork),
        why=str(fork.ref),
        past=past,
        at=at,
        promotable=spec.promotable,
        ttl_ms=None if spec.ttl is None else milliseconds(spec.ttl),
        on_parent_delete=OnParentDelete.CASCADE if cascade else OnParentDelete.ORPHAN,
        exclusive=spec.isolation is Isolation.EXCLUSIVE,
        quota=None if spec.quota is None else conditions.as_quota(spec.quota),
    )


_KINDS = {ForkType.CONTINUOUS: Kind.CONTINUOUS, ForkType.SEVERED: Kind.SEVERED}


def _adopting(
    world: World, fork: Fork, parent: Description, now: Nanoseconds, troubles: Troubles
) -> Plan:
    """Take over what was made through the API, if it is what the resource declares."""
    name = f"{parent.root}--{own_name(fork)}"
    if not conditions.may_adopt(world, fork):
        return told(world, fork, now, fork.status, [conditions.not_adopted(world, name)])
    found = world.service.named(name)
    trouble = troubles.with_action(Adopt)
    if found is None:
        return Plan((Describe(log=name), *((trouble.action,) if trouble else ())))
    spec = fork.spec
    is_it = (found.parent, found.kind, found.promotable) == (
        parent.name,
        _KINDS[spec.type],
        spec.promotable,
    )
    if not is_it:
        kind = f"{'promotable ' if found.promotable else ''}{found.kind} fork of {found.parent}"
        message = f"{name} is a {kind}: declare that, or choose another name"
        said = Said(Type.READY, False, Reason.NAME_TAKEN, message)
        return told(world, fork, now, fork.status, [said])
    adopt = Adopt(log=found.id, owner=owner_of(fork))
    if trouble is None:
        return Plan((adopt,))
    return told(world, fork, now, fork.status, [conditions.refused(trouble)], (adopt,))


def _served(
    world: World, fork: Fork, found: Description, now: Nanoseconds, troubles: Troubles
) -> Plan:
    shown = face(world, fork, found)
    verdict = judge(world, fork, found, now, troubles)
    made_by = _made_by(fork, found)
    labelled = fork.object.labels.get(names.MADE_BY) == made_by
    wanted: tuple[Action, ...] = (
        *(() if labelled else (mark(fork, made_by),)),
        *declare(fork, found),
        *shown.actions,
        *conditions.quota(fork.spec.quota, found),
        *verdict.actions,
    )
    status = _status(world, fork, found, shown, verdict)
    promote = troubles.with_action(Promote)
    ready = conditions.ready(world, shown, troubles)
    if promote is not None:
        message = f"the promotion was refused: {promote.refusal.message}"
        ready = Said(Type.READY, ready.status, Reason.REFUSED, message)
    # What a gate said is kept before the fork goes, and with it all that could be asked again.
    judged = verdict.gate is not None and verdict.gate != fork.status.gate
    if troubles.due(wanted, now) and not judged:
        return Plan(wanted, verdict.wake_at)
    actions = shown.actions if judged else wanted
    plan = told(world, fork, now, status, [ready, *verdict.said], actions)
    return Plan(plan.actions, verdict.wake_at)


def _status(
    world: World, fork: Fork, found: Description, shown: Face, verdict: Verdict
) -> ForkStatus:
    return replace(
        fork.status,
        phase=_phase(verdict),
        log_id=found.id,
        log_name=found.name,
        parent=found.parent,
        fork_point=found.fork_point,
        tail=found.tail,
        own_records=found.own_records,
        lag=_lag(world, fork, found),
        broker=shown.pod.ref.name if shown.pod else found.broker or None,
        endpoint=shown.endpoint,
        made_by=_made_by(fork, found),
        expires_at=None if found.expires_at is None else stamp(found.expires_at),
        gate=verdict.gate,
    )


def _made_by(fork: Fork, found: Description) -> str:
    if fork.status.made_by is not None:
        return fork.status.made_by
    return _MADE_BY_OPERATOR if found.why == str(fork.ref) else _MADE_BY_API


def _phase(verdict: Verdict) -> ForkPhase:
    if verdict.asks:
        return ForkPhase.AWAITING_APPROVAL
    if verdict.waiting:
        return ForkPhase.GATING
    if any(isinstance(action, Promote) for action in verdict.actions):
        return ForkPhase.PROMOTING
    return ForkPhase.READY


def _lag(world: World, fork: Fork, found: Description) -> int | None:
    """A continuous fork sees all that its parent has; a severed one nothing after its point."""
    if found.kind is not Kind.SEVERED:
        return 0
    parent, _ = _parent(world, fork)
    return None if parent is None else max(0, parent.tail - found.fork_point)
