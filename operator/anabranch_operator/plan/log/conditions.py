"""What logs and forks have in common in what is told about them."""

from collections.abc import Iterable

from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import (
    DeadlineExceeded,
    Description,
    ForkBlocked,
    LogExists,
    LogQuota,
    Nanoseconds,
    NoSpareBroker,
    Unavailable,
)
from anabranch_operator.api.common import Quota, Shape
from anabranch_operator.api.conditions import Condition, Reason, Type
from anabranch_operator.api.fork import ForkStatus
from anabranch_operator.api.log import LogStatus
from anabranch_operator.plan.engine.actions import (
    Action,
    Announce,
    Apply,
    ApplyStatus,
    Mark,
    Plan,
    SetQuota,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.retries import Trouble, Troubles
from anabranch_operator.plan.engine.status import Said, conditions, document, write
from anabranch_operator.plan.engine.world import World
from anabranch_operator.plan.log.services import AnyLog, Face

_REASONS = {
    LogExists.code: Reason.NAME_TAKEN,
    ForkBlocked.code: Reason.PARENT_BLOCKED,
    NoSpareBroker.code: Reason.NO_SPARE_BROKER,
    Unavailable.code: Reason.SERVICE_AWAY,
    DeadlineExceeded.code: Reason.SERVICE_AWAY,
}

_TOLD = (
    Reason.SERVING,
    Reason.PROMOTED,
    Reason.SQUASHED,
    Reason.EXPIRED,
    Reason.LOG_LOST,
    Reason.NAME_TAKEN,
    Reason.REFUSED,
    Reason.FRONT_ENDING,
    Reason.NO_SPARE_BROKER,
    Reason.SERVICE_AWAY,
    Reason.ETCD_FULL,
    Reason.GATE_RUNNING,
    Reason.GATE_SUCCEEDED,
    Reason.GATE_FAILED,
    Reason.FORK_MOVED,
    Reason.GATE_REPORT_INVALID,
    Reason.GATE_INVALID,
    Reason.AWAITING_APPROVAL,
)
"""What is worth an event when it comes to be so."""

_GOOD = (
    Reason.SERVING,
    Reason.PROMOTED,
    Reason.GATE_RUNNING,
    Reason.GATE_SUCCEEDED,
    Reason.AWAITING_APPROVAL,
    Reason.FRONT_ENDING,
)


_TYPES = {each.value for each in Type}
_REASONED = {each.value for each in Reason}
_STATUS = {"True": True, "False": False}


class Malformed(Shape, frozen=True, kw_only=True):
    """The status of what can't be understood: nothing else can be said of it."""

    conditions: list[Condition]


def is_paused(object: Observed) -> bool:
    return object.annotations.get(names.PAUSED) == "true"


def is_left_alone(world: World, resource: AnyLog) -> bool:
    """Paused; but a namespace's end waits for nobody."""
    return is_paused(resource.object) and not world.terminating(resource.ref.namespace)


def paused(object: Observed, before: Iterable[Condition]) -> list[Said]:
    """What was said last is still said: nobody looks whether it is still so."""
    message = f"the operator leaves this resource alone while the annotation {names.PAUSED} is true"
    others = (Type.PAUSED, Type.SERVICE_REACHABLE)
    kept = [each for each in as_before(before) if each.type not in others]
    return [*kept, Said(Type.PAUSED, True, Reason.PAUSED, message)]


def as_before(before: Iterable[Condition]) -> list[Said]:
    """What was said, to be said again."""
    return [
        Said(Type(each.type), _STATUS.get(each.status), Reason(each.reason), each.message)
        for each in before
        if each.type in _TYPES and each.reason in _REASONED
    ]


def told(
    world: World,
    resource: AnyLog,
    now: Nanoseconds,
    status: LogStatus | ForkStatus,
    said: list[Said],
    actions: tuple[Action, ...] = (),
) -> Plan:
    """What else is to be done, and the status that says so."""
    generation = resource.object.generation
    every = [*said, reachable(world)]
    made = conditions(resource.status.conditions, every, generation, now)
    status = replace(status, observed_generation=generation, conditions=made)
    return Plan((*actions, *write(resource.object, status), *announce(resource, said)))


def plan_malformed(world: World, ref: Ref, now: Nanoseconds) -> Plan:
    """A resource that an older or newer CRD let in: told so, and left alone."""
    why = world.malformed.get(ref)
    if why is None:
        return Plan()
    object = world.objects[ref]
    said = [Said(Type.READY, False, Reason.INVALID, f"the spec can't be read: {why}")]
    if names.FINALIZER in object.finalizers:
        return Plan((Mark(ref=ref, uid=object.uid, made_by=object.labels.get(names.MADE_BY, "")),))
    before = object.status.get("conditions") or ()
    if [each.message for each in said] == [each.get("message") for each in before]:
        return Plan()
    status = Malformed(conditions=conditions((), said, object.generation, now))
    return Plan((ApplyStatus(ref=ref, uid=object.uid, status=document(status)),))


def terminating(resource: AnyLog) -> Said:
    """Others hold it: it has no finalizer of ours."""
    held = ", ".join(resource.object.finalizers) or "its grace"
    return Said(
        Type.READY,
        False,
        Reason.TERMINATING,
        f"the resource is being deleted, and waits for {held}",
    )


def reachable(world: World) -> Said:
    why = world.service.trouble
    if why is None:
        return Said(Type.SERVICE_REACHABLE, True, Reason.SERVICE_ANSWERS)
    return Said(Type.SERVICE_REACHABLE, False, Reason.SERVICE_AWAY, why)


def refused(trouble: Trouble) -> Said:
    """It couldn't be made."""
    reason = _REASONS.get(trouble.refusal.code, Reason.REFUSED)
    return Said(Type.READY, False, reason, trouble.refusal.message)


def may_adopt(world: World, resource: AnyLog) -> bool:
    """A log that nobody declares is the installation's: its rights are judged in that namespace.

    Whoever may make a resource in another one mustn't get at it by that.
    """
    return resource.ref.namespace == world.surroundings.namespace


def not_adopted(world: World, name: str) -> Said:
    where = world.surroundings.namespace
    message = f"{name} exists, and is taken over by resources in namespace {where} alone"
    return Said(Type.READY, False, Reason.NAME_TAKEN, message)


def full(world: World) -> Said | None:
    """Readiness of whatever needs the journal, while etcd has no room for it."""
    if not world.etcd_full:
        return None
    message = "etcd is full: appends and changes are refused; raise its quota, or make room in it"
    return Said(Type.READY, False, Reason.ETCD_FULL, message)


def ready(world: World, shown: Face, troubles: Troubles) -> Said:
    """It is there; can it be met?"""
    held = troubles.with_action(Apply)
    if held is not None and isinstance(held.action, Apply):
        message = f"{held.action.ref}: {held.refusal.message}"
        return Said(Type.READY, False, Reason.WRITE_FAILED, message)
    if shown.address is None:
        pod = shown.pod.ref.name if shown.pod else "no broker"
        message = f"{pod} serves the log, but can't be reached yet"
        return Said(Type.READY, False, Reason.NOT_SERVED, message)
    serves = Said(Type.READY, True, Reason.SERVING, f"clients reach it at {shown.endpoint}")
    return full(world) or serves


def quota(wanted: Quota | None, found: Description) -> tuple[SetQuota, ...]:
    """The action that gives the log the quota that is wanted, if one is."""
    if wanted is None:
        return ()
    asked = as_quota(wanted)
    has = found.quota or LogQuota()
    same = asked == has or (asked.limits_nothing and has.limits_nothing)
    return () if same else (SetQuota(log=found.id, quota=asked),)


def as_quota(wanted: Quota) -> LogQuota:
    return LogQuota(
        append_bytes_per_s=wanted.append_bytes_per_second,
        append_records_per_s=wanted.append_records_per_second,
        read_bytes_per_s=wanted.read_bytes_per_second,
        burst_ms=wanted.burst_milliseconds,
    )


def announce(resource: AnyLog, said: list[Said]) -> tuple[Announce, ...]:
    """Events, for what has just come to be so."""
    before = {each.type: each.reason for each in resource.status.conditions}
    return tuple(
        Announce(
            ref=resource.ref,
            uid=resource.object.uid,
            warning=each.reason not in _GOOD,
            reason=each.reason.value,
            message=each.message,
        )
        for each in said
        if each.reason in _TOLD and before.get(each.type.value) != each.reason.value
    )
