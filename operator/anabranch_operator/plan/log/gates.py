"""Promotion gates: a Job that judges a fork, and what comes of its judgement.

What is promoted is what was judged (decision 77). The fork's own records are counted before the Job
is made, and the fork is promoted only with exactly so many, or with as many as the Job reports. A
fork that has got others is judged again, after a pause that grows.

The operator makes the Job for whoever wrote the Fork. Whether the author may have one is checked
when the Fork is written (`api/admission.py`); what it may ask for is checked here, by
`job_templates.py`, so that Forks from before the admission policy, or past it, get no more.
"""

from msgspec import Struct
from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import MS, Description, Milliseconds, Nanoseconds
from anabranch_operator.api.common import instant
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.fork import ForkState, Gate, GateStatus, OnFailure, Policy
from anabranch_operator.plan.engine.actions import (
    Action,
    Apply,
    CountOwn,
    Promote,
    Squash,
    TailLog,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said, stamp
from anabranch_operator.plan.engine.world import Fork, World
from anabranch_operator.plan.log.excerpts import excerpt
from anabranch_operator.plan.log.gate_jobs import gate_job, job_name
from anabranch_operator.plan.log.gate_reports import UnreadableReport, reported
from anabranch_operator.plan.log.job_templates import objections

SUCCEEDED, FAILED, MOVED, INVALID = "Succeeded", "Failed", "Moved", "Invalid"
LINES = 20
"""Of a failed Job's log, for the condition."""
POD_MS_MAX = 10_000
"""How long the pods of a Job that has ended are waited for. Pods and Jobs are watched apart, so a
Job may be seen to have ended before its pods; and a pod that was deleted is never seen.
"""
PAUSE_MS, PAUSE_MS_MAX = 10_000, 600_000
"""Before a fork that has moved is judged again; doubled after each attempt."""
_OBJECTIONS_MAX = 3
_MESSAGE_CHARS_MAX = 900


class Verdict(Struct, frozen=True):
    """How far the decision on a promotion has come."""

    actions: tuple[Action, ...] = ()
    said: tuple[Said, ...] = ()
    gate: GateStatus | None = None
    waiting: bool = False
    """For a Job that runs."""
    asks: bool = False
    """Somebody has to approve."""
    wake_at: Nanoseconds | None = None
    """When to judge again although nothing was seen to change."""


def judge(
    world: World, fork: Fork, log: Description, now: Nanoseconds, troubles: Troubles
) -> Verdict:
    """`state: Promoted` is a wish; the policy says what must be so before it is granted."""
    if fork.spec.state is not ForkState.PROMOTED:
        return Verdict(gate=fork.status.gate)
    promotion = fork.spec.promotion
    gate = None if promotion.policy is Policy.MANUAL else promotion.gate
    verdict = Verdict() if gate is None else _gate(world, fork, gate, log, now, troubles)
    passed = gate is None or (verdict.gate is not None and verdict.gate.result == SUCCEEDED)
    if not passed:
        return verdict
    if promotion.policy is Policy.APPROVAL and not fork.spec.approved:
        message = "set spec.approved to true to have it promoted"
        said = Said(Type.APPROVED, False, Reason.AWAITING_APPROVAL, message)
        return Verdict((), (*verdict.said, said), verdict.gate, asks=True)
    said = verdict.said
    if promotion.policy is Policy.APPROVAL:
        said = (*said, Said(Type.APPROVED, True, Reason.APPROVED))
    expected = None if verdict.gate is None else verdict.gate.own_records
    return Verdict((Promote(log=log.id, expect_own=expected),), said, verdict.gate)


def _gate(
    world: World,
    fork: Fork,
    gate: Gate,
    log: Description,
    now: Nanoseconds,
    troubles: Troubles,
) -> Verdict:
    """What has been judged isn't judged again while it is the same, even if the Job is gone."""
    told = fork.status.gate
    if told is None or told.result is None:
        return _judging(world, fork, gate, log, now, troubles)
    if told.result == SUCCEEDED:
        return _passed(log, told, now)
    if told.result == MOVED:
        return _moved(world, fork, gate, log, told, now)
    if told.result == INVALID:
        return _invalid(told)
    return _failed(gate, log, told)


def _judging(
    world: World,
    fork: Fork,
    gate: Gate,
    log: Description,
    now: Nanoseconds,
    troubles: Troubles,
) -> Verdict:
    told = fork.status.gate
    if told is None:
        return _count_first(world, fork, gate, log, 1)
    job = world.objects.get(Ref("Job", fork.ref.namespace, told.job))
    if job is None or fork.object.uid not in job.owners:
        if told.own_records is None:
            return _count_first(world, fork, gate, log, told.attempt)
        return _begin(world, fork, gate, log, told, troubles)
    result = _result(job)
    if result is None:
        return _running(told, f"Job {told.job} is running")
    if result == SUCCEEDED:
        return _succeeds(world, fork, log, job, told, now)
    return _fails(world, gate, log, job, told, now, troubles)


def _running(judged: GateStatus | None, message: str) -> Verdict:
    """The reason stays the same over all attempts after the first, so that a fork that always moves
    has one event and not two for each of them.
    """
    reason = Reason.GATE_RUNNING
    if judged is not None and judged.attempt > 1:
        reason = Reason.FORK_MOVED
        message = f"{message}, which judges the fork anew (attempt {judged.attempt})"
    return Verdict((), (Said(Type.GATE_PASSED, None, reason, message),), judged, waiting=True)


def _count_first(world: World, fork: Fork, gate: Gate, log: Description, attempt: int) -> Verdict:
    """What is appended after this count isn't promoted, unless the Job reports that it judged it.

    The count is in the status before the Job is made of it: so all operators make the same Job.
    """
    told = fork.status.gate
    if (objecting := _objecting(world, fork, gate)) is not None:
        return objecting
    name = job_name(fork, attempt)
    running = _running(GateStatus(job=name, attempt=attempt), f"Job {name} is being created")
    count = _counted(world, fork, name, ended=False)
    if count is None:
        ask = CountOwn(log=log.id, fork=fork.object.uid, job=name, ended=False)
        return replace(running, actions=(ask,), gate=told)
    return replace(running, gate=GateStatus(job=name, attempt=attempt, own_records=count))


def _counted(world: World, fork: Fork, job: str, *, ended: bool) -> int | None:
    known = world.counted.get(fork.object.uid)
    if known is None or (known.job, known.ended) != (job, ended):
        return None
    return known.own_records


def _begin(
    world: World,
    fork: Fork,
    gate: Gate,
    log: Description,
    judged: GateStatus,
    troubles: Troubles,
) -> Verdict:
    if (objecting := _objecting(world, fork, gate)) is not None:
        return objecting
    ref = Ref("Job", fork.ref.namespace, judged.job)
    make = Apply(ref=ref, manifest=gate_job(world, fork, gate, log, judged))
    running = replace(_running(judged, f"Job {judged.job} is being created"), actions=(make,))
    held = troubles.with_action(Apply)
    if held is not None and held.action == make:
        said = Said(Type.GATE_PASSED, False, Reason.GATE_INVALID, held.refusal.message)
        return replace(running, said=(said,))
    return running


def _objecting(world: World, fork: Fork, gate: Gate) -> Verdict | None:
    objection = _objection(world, gate)
    if objection is None:
        return None
    said = Said(Type.GATE_PASSED, False, Reason.GATE_INVALID, objection)
    return Verdict((), (said,), fork.status.gate, waiting=True)


def _objection(world: World, gate: Gate) -> str | None:
    """Why the operator doesn't run this gate's Job."""
    around = world.surroundings
    if not around.gates.enabled:
        return "this installation runs no gates: set gates.enabled, or promotion.policy to Manual"
    found = objections(gate.job_template, around.gates, around.release)
    if not found:
        return None
    more = len(found) - _OBJECTIONS_MAX
    shown = "; ".join(found[:_OBJECTIONS_MAX]) + (f"; and {more} more" if more > 0 else "")
    message = f"the gate's Job may not have what jobTemplate asks for: {shown}"
    return message[:_MESSAGE_CHARS_MAX]


def _succeeds(
    world: World, fork: Fork, log: Description, job: Observed, told: GateStatus, now: Nanoseconds
) -> Verdict:
    """Its report is held against a count from after its end: it can't have judged more."""
    pods = _ended_pods(world, job, SUCCEEDED)
    due = world.ended_at[job.uid] + POD_MS_MAX * MS
    if len(pods) < int(job.status.get("succeeded") or 0) and now < due:
        return replace(_running(told, f"Job {told.job} has succeeded"), wake_at=due)
    count = _counted(world, fork, told.job, ended=True)
    if count is None:
        ask = CountOwn(log=log.id, fork=fork.object.uid, job=told.job, ended=True)
        return replace(_running(told, f"Job {told.job} has succeeded"), actions=(ask,))
    try:
        judged = reported(pods)
    except UnreadableReport as error:
        return _invalid(replace(told, result=INVALID, message=str(error)[:_MESSAGE_CHARS_MAX]))
    if judged is not None and judged > count:
        message = f"it reports {judged} own records, and the fork has {count}"
        return _invalid(replace(told, result=INVALID, message=message))
    expected = told.own_records if judged is None else judged
    latest = replace(log, own_records=count)
    return _passed(latest, replace(told, own_records=expected, result=SUCCEEDED), now)


def _passed(log: Description, judged: GateStatus, now: Nanoseconds) -> Verdict:
    """The verdict counts as long as the fork has no other records; their number only grows."""
    if judged.own_records is not None and log.own_records <= judged.own_records:
        said = Said(Type.GATE_PASSED, True, Reason.GATE_SUCCEEDED)
        return Verdict(said=(said,), gate=judged)
    pause_ms = min(PAUSE_MS << min(judged.attempt - 1, 16), PAUSE_MS_MAX)
    known = "an unknown number" if judged.own_records is None else str(judged.own_records)
    message = f"Job {judged.job} has judged {known} of the fork's {log.own_records} own records"
    next_at = stamp(_up_to_seconds(now // MS + pause_ms))
    return _paused(replace(judged, result=MOVED, next_at=next_at, message=message))


def _up_to_seconds(at: Milliseconds) -> Milliseconds:
    """A status holds whole seconds."""
    return -(-at // 1_000) * 1_000


def _paused(judged: GateStatus) -> Verdict:
    assert judged.next_at is not None
    message = (
        f"{judged.message}: another Job judges it at {judged.next_at}, stop appending until then"
    )
    said = Said(Type.GATE_PASSED, None, Reason.FORK_MOVED, message)
    return Verdict((), (said,), judged, waiting=True, wake_at=instant(judged.next_at) * MS)


def _moved(
    world: World, fork: Fork, gate: Gate, log: Description, told: GateStatus, now: Nanoseconds
) -> Verdict:
    if told.next_at is not None and now < instant(told.next_at) * MS:
        return _paused(told)
    return _count_first(world, fork, gate, log, told.attempt + 1)


def _invalid(judged: GateStatus) -> Verdict:
    message = f"Job {judged.job} has succeeded, and its verdict doesn't count: {judged.message}"
    said = Said(Type.GATE_PASSED, False, Reason.GATE_REPORT_INVALID, message)
    return Verdict((), (said,), judged)


def _fails(
    world: World,
    gate: Gate,
    log: Description,
    job: Observed,
    told: GateStatus,
    now: Nanoseconds,
    troubles: Troubles,
) -> Verdict:
    """Read its pod's log first: with the Job its pods may go."""
    reading = _running(told, f"Job {told.job} has failed; its log is being read")
    pods = _ended_pods(world, job, FAILED)
    due = world.ended_at[job.uid] + POD_MS_MAX * MS
    if len(pods) < _failures(world, job) and now < due:
        return replace(reading, wake_at=due)
    pod = pods[-1] if pods and world.surroundings.gates.logs else None
    if pod is not None and pod.ref not in world.texts and troubles.with_action(TailLog) is None:
        return replace(reading, actions=(TailLog(ref=pod.ref, lines=LINES),))
    words = excerpt(world.texts.get(pod.ref, ""), _MESSAGE_CHARS_MAX) if pod is not None else ""
    why = (job.condition(FAILED) or {}).get("message", "")
    message = f"{why}: {words}" if words else why
    status = replace(told, result=FAILED, message=message[-_MESSAGE_CHARS_MAX:] or None)
    return _failed(gate, log, status)


def _failures(world: World, job: Observed) -> int:
    """How many failed pods the Job counts, if their logs may be read: 0 if it never had a pod."""
    return int(job.status.get("failed") or 0) if world.surroundings.gates.logs else 0


def _ended_pods(world: World, job: Observed, phase: str) -> list[Observed]:
    """The last to be made comes last."""
    pods = [pod for pod in world.children(job.uid, "Pod") if pod.status.get("phase") == phase]
    return sorted(pods, key=lambda each: (each.created_at, each.ref))


def _failed(gate: Gate, log: Description, status: GateStatus) -> Verdict:
    message = f"Job {status.job} failed: {status.message or 'it said nothing'}"
    said = Said(Type.GATE_PASSED, False, Reason.GATE_FAILED, message)
    squash = (Squash(log=log.id),) if gate.on_failure is OnFailure.SQUASH else ()
    return Verdict(squash, (said,), status)


def _result(job: Observed) -> str | None:
    if job.condition("Complete") is not None:
        return SUCCEEDED
    return None if job.condition(FAILED) is None else FAILED
