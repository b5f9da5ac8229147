"""A fork with a promotion gate, its Job, and what its pods report."""

from typing import Any

from tests.unit.operator.declared import (
    NAMESPACE,
    WHAT_IF,
    current,
    fork,
)

from anabranch.core.bolt.protocol.commands import (
    Batch,
    CommitObject,
    Committed,
    Description,
    Row,
)
from anabranch.core.records.objects import object_id
from anabranch_operator.api import names
from anabranch_operator.api.fork import ForkPhase, GateStatus
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.world import Fork
from anabranch_operator.plan.log.job_templates import GateSettings, PodSecurity
from anabranch_sim.kubernetes.sandbox import Sandbox

SAID = [{"name": "ANABRANCH_LOG", "value": "y"}]
JUDGE = {"name": "judge", "image": "x", "env": SAID}
BASELINE = GateSettings(enabled=True, pod_security=PodSecurity.BASELINE)
TEMPLATE: dict[str, Any] = {"spec": {"template": {"spec": {"containers": [JUDGE]}}}}


def append(tended: Sandbox, count: int = 1) -> None:
    """To the fork, by somebody. The operator doesn't hear of it at once."""
    found = tended.service.describe("orders--what-if")
    assert isinstance(found, Description)
    [broker] = tended.service.brokers()
    object = object_id(broker.epoch, 1 + found.own_records)
    row = Row(found.id, 0, [Batch(10, count)])
    committed = tended.service.command(CommitObject(broker.name, object, [row]))
    assert isinstance(committed, Committed)


def own_records_told(tended: Sandbox, job: Ref) -> str:
    """What the containers of a Job have in their environment."""
    [container] = tended.kube.documents[job]["spec"]["template"]["spec"]["containers"]
    return next(each["value"] for each in container["env"] if each["name"].endswith("OWN_RECORDS"))


def jobs(tended: Sandbox) -> list[Ref]:
    return [ref for ref in tended.kube.documents if ref.kind == "Job"]


def promoted_records(tended: Sandbox) -> int:
    """How many own records the fork had when it was promoted."""
    assert phase(tended) is ForkPhase.PROMOTED
    parent = tended.service.describe("orders")
    assert isinstance(parent, Description)
    return parent.tail


def gated(tended: Sandbox, policy: str = "Gate", **spec: Any) -> Ref:
    gate = {"jobTemplate": TEMPLATE, "onFailure": spec.pop("onFailure", "Squash")}
    promotion = {"policy": policy, "gate": gate}
    fork(tended, promotable=True, promotion=promotion, state="Promoted", **spec)
    jobs = [ref for ref in tended.kube.documents if ref.kind == "Job"]
    assert len(jobs) == 1
    return jobs[0]


def tended_fork(tended: Sandbox, on_failure: str = "Squash") -> Sandbox:
    """With a fork that has a gate, and isn't to be promoted yet."""
    gate = {"jobTemplate": TEMPLATE, "onFailure": on_failure}
    fork(tended, promotable=True, promotion={"policy": "Gate", "gate": gate})
    return tended


def wish(tended: Sandbox) -> Ref:
    """Wish for its promotion, and find its Job."""
    tended.kube.edit(WHAT_IF, state="Promoted")
    tended.settle()
    [job] = jobs(tended)
    return job


def judged(tended: Sandbox) -> GateStatus:
    gate = current(tended).status.gate
    assert gate is not None
    return gate


def message(of: Fork, about: str) -> str:
    return next(each.message for each in of.status.conditions if each.type == about)


def phase(tended: Sandbox) -> ForkPhase:
    return tended.operator.world.forks[WHAT_IF].status.phase


def judgement(tended: Sandbox) -> str | None:
    gate = tended.operator.world.forks[WHAT_IF].status.gate
    assert gate is not None
    return gate.message


def ends(tended: Sandbox, job: Ref, how: str, words: str = "", report: str = "") -> None:
    pod_ends(tended, job, how, words, report=report)
    job_ends(tended, job, how)
    tended.settle()


def pod_ends(
    tended: Sandbox, job: Ref, how: str, words: str = "", name: str = "x", report: str = ""
) -> None:
    found = tended.kube.get(job)
    assert found is not None
    pod = Ref("Pod", NAMESPACE, f"{job.name}-{name}")
    owner = {"uid": found.uid, "kind": "Job", "name": job.name}
    labels = {names.ROLE: names.GATE, names.FORK_LABEL: WHAT_IF.name}
    meta = {"name": pod.name, "namespace": NAMESPACE, "ownerReferences": [owner]}
    tended.kube.apply(pod, {"kind": "Pod", "metadata": {**meta, "labels": labels}, "spec": {}})
    ended = {"name": "judge", "state": {"terminated": {"message": report}}}
    done = "Failed" if how == "Failed" else "Succeeded"
    tended.kube.report(pod, {"phase": done, "containerStatuses": [ended]})
    tended.texts[pod.name] = words


def job_ends(tended: Sandbox, job: Ref, how: str, failed: int = 1) -> None:
    condition = {"type": how, "status": "True", "message": "it ended"}
    fails = how == "Failed"
    counts = {"failed": failed if fails else 0, "succeeded": 0 if fails else 1}
    tended.kube.report(job, {"conditions": [condition], **counts})
