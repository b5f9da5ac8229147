"""Promotion gates: a Job that judges a fork, and what comes of its judgement.

The operator makes the Job for whoever wrote the Fork. Whether the author may have one is checked
when the Fork is written (`api/admission.py`); what it may ask for is checked here, by
`job_templates.py`, so that Forks from before the admission policy, or past it, get no more.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import MS, Description, Nanoseconds
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.fork import ForkState, Gate, GateStatus, OnFailure, Policy
from anabranch_operator.plan.engine.actions import Action, Apply, Promote, Squash, TailLog
from anabranch_operator.plan.engine.objects import Document, Observed, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Fork, World
from anabranch_operator.plan.log.excerpts import excerpt
from anabranch_operator.plan.log.job_templates import (
    objections,
    restrict,
    without_nulls,
)
from anabranch_operator.plan.log.services import entrance, metadata

SUCCEEDED, FAILED = "Succeeded", "Failed"
LINES = 20
"""Of a failed Job's log, for the condition."""
POD_MS_MAX = 10_000
"""How long a failed Job's pod is waited for. Pods and Jobs are watched apart, so that the Job may
be seen to have failed before its pod; and a pod that was deleted is never seen.
"""
_OBJECTIONS_MAX = 3
_UID_PART = 8
_MESSAGE_CHARS_MAX = 900
_VOLUME = "anabranch"


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
    return Verdict((Promote(log=log.id),), said, verdict.gate)


def job_name(fork: Fork) -> str:
    return f"gate-{fork.ref.name}-{fork.object.uid[:_UID_PART]}"


def _gate(
    world: World,
    fork: Fork,
    gate: Gate,
    log: Description,
    now: Nanoseconds,
    troubles: Troubles,
) -> Verdict:
    """What has been judged once isn't judged again, even when the Job is gone."""
    told = fork.status.gate
    if told is not None and told.result == SUCCEEDED:
        return Verdict(said=(Said(Type.GATE_PASSED, True, Reason.GATE_SUCCEEDED),), gate=told)
    if told is not None and told.result == FAILED:
        return _failed(gate, log, told)
    name = job_name(fork)
    job = world.objects.get(Ref("Job", fork.ref.namespace, name))
    if job is None or fork.object.uid not in job.owners:
        return _begin(world, fork, gate, log, troubles)
    result = _result(job)
    if result is None:
        said = Said(Type.GATE_PASSED, None, Reason.GATE_RUNNING, f"Job {name} is running")
        return Verdict((), (said,), GateStatus(job=name), waiting=True)
    if result == SUCCEEDED:
        status = GateStatus(job=name, result=SUCCEEDED)
        return Verdict(said=(Said(Type.GATE_PASSED, True, Reason.GATE_SUCCEEDED),), gate=status)
    return _fails(world, gate, log, job, now, troubles)


def _begin(world: World, fork: Fork, gate: Gate, log: Description, troubles: Troubles) -> Verdict:
    objection = _objection(world, gate)
    if objection is not None:
        said = Said(Type.GATE_PASSED, False, Reason.GATE_INVALID, objection)
        return Verdict((), (said,), fork.status.gate, waiting=True)
    name = job_name(fork)
    make = Apply(ref=Ref("Job", fork.ref.namespace, name), manifest=_job(world, fork, gate, log))
    held = troubles.with_action(Apply)
    if held is not None and held.action == make:
        said = Said(Type.GATE_PASSED, False, Reason.GATE_INVALID, held.refusal.message)
    else:
        said = Said(Type.GATE_PASSED, None, Reason.GATE_RUNNING, f"Job {name} is being created")
    return Verdict((make,), (said,), GateStatus(job=name), waiting=True)


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


def _fails(
    world: World,
    gate: Gate,
    log: Description,
    job: Observed,
    now: Nanoseconds,
    troubles: Troubles,
) -> Verdict:
    """Read its pod's log first: with the Job its pods may go."""
    pods = _failed_pods(world, job)
    due = world.failed_at[job.uid] + POD_MS_MAX * MS
    if len(pods) < _failures(world, job) and now < due:
        return replace(_reading(job), wake_at=due)
    pod = pods[-1] if pods and world.surroundings.gates.logs else None
    if pod is not None and pod.ref not in world.texts and troubles.with_action(TailLog) is None:
        return replace(_reading(job), actions=(TailLog(ref=pod.ref, lines=LINES),))
    words = excerpt(world.texts.get(pod.ref, ""), _MESSAGE_CHARS_MAX) if pod is not None else ""
    why = (job.condition(FAILED) or {}).get("message", "")
    message = f"{why}: {words}" if words else why
    status = GateStatus(
        job=job.ref.name, result=FAILED, message=message[-_MESSAGE_CHARS_MAX:] or None
    )
    return _failed(gate, log, status)


def _reading(job: Observed) -> Verdict:
    message = "the Job has failed; its log is being read"
    said = Said(Type.GATE_PASSED, None, Reason.GATE_RUNNING, message)
    return Verdict(said=(said,), gate=GateStatus(job=job.ref.name), waiting=True)


def _failures(world: World, job: Observed) -> int:
    """How many failed pods the Job counts, if their logs may be read: 0 if it never had a pod."""
    return int(job.status.get("failed") or 0) if world.surroundings.gates.logs else 0


def _failed_pods(world: World, job: Observed) -> list[Observed]:
    """The last to be made comes last."""
    pods = [pod for pod in world.children(job.uid, "Pod") if pod.status.get("phase") == FAILED]
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


def _job(world: World, fork: Fork, gate: Gate, log: Description) -> Document:
    """The template with the fork's address in every container's environment."""
    template = gate.job_template
    said = without_nulls(template.get("metadata"))
    labels: dict[str, Any] = {
        **(said.get("labels") or {}),
        names.ROLE: names.GATE,
        names.FORK_LABEL: fork.ref.name,
    }
    spec: dict[str, Any] = {"backoffLimit": 0, **without_nulls(template["spec"])}
    pod: dict[str, Any] = dict(spec["template"])
    pod_said = without_nulls(pod.get("metadata"))
    # Only these: a finalizer or an owner in it would outlive the Job.
    pod["metadata"] = {"labels": {**(pod_said.get("labels") or {}), **labels}}
    if pod_said.get("annotations"):
        pod["metadata"]["annotations"] = pod_said["annotations"]
    pod["spec"] = _pod_spec(world, fork, log, pod["spec"])
    spec["template"] = pod
    meta = dict(metadata(fork.object, job_name(fork), labels))
    if said.get("annotations"):
        meta["annotations"] = said["annotations"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def _pod_spec(world: World, fork: Fork, log: Description, spec: Document) -> Document:
    surroundings = world.surroundings
    variables = {
        "ANABRANCH_URL": _url(world),
        "ANABRANCH_LOG": log.name,
        "ANABRANCH_FORK": fork.ref.name,
        "ANABRANCH_PARENT": log.parent or "",
        "ANABRANCH_FORK_POINT": str(log.fork_point),
    }
    env: list[Document] = [{"name": name, "value": value} for name, value in variables.items()]
    mount = {"name": _VOLUME, "mountPath": names.RUN_DIR, "readOnly": True}
    sources: list[Document] = [
        {
            "serviceAccountToken": {
                "audience": names.AUDIENCE,
                "path": "token",
                "expirationSeconds": 3_600,
            }
        }
    ]
    if surroundings.tls:
        items = [{"key": "ca.crt", "path": "ca.crt"}]
        sources.append({"configMap": {"name": surroundings.certificates.bundle, "items": items}})
    restricted = restrict(spec, surroundings.gates, surroundings.release)
    filled = {"restartPolicy": "Never", **restricted}
    for key in ("initContainers", "containers"):
        if key in restricted:
            filled[key] = [_container(each, env, mount) for each in restricted[key]]
    volume = {"name": _VOLUME, "projected": {"sources": sources}}
    filled["volumes"] = [*(spec.get("volumes") or ()), volume]
    return filled


def _container(container: Document, env: list[Document], mount: Document) -> Document:
    """What the template says itself goes before what we say."""
    said = {each["name"] for each in container.get("env") or ()}
    return {
        **container,
        "env": [*(each for each in env if each["name"] not in said), *(container.get("env") or ())],
        "volumeMounts": [*(container.get("volumeMounts") or ()), mount],
    }


def _url(world: World) -> str:
    """Not the fork's own Service: resolvers may have heard of another fork of this name, or of
    none, a moment ago, and a Job that reaches nobody fails.
    """
    surroundings = world.surroundings
    query = f"?token_file={names.RUN_DIR}/token"
    if surroundings.tls:
        query = f"?ca={names.RUN_DIR}/ca.crt&token_file={names.RUN_DIR}/token"
    return entrance(surroundings) + query
