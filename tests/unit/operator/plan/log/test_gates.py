"""Promotion gates: who may promote, and what a Job's end does."""

from typing import Any

import pytest
from tests.unit.operator.declared import NAMESPACE, WHAT_IF, conditions, fork, log, office

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors.refused import Refused
from anabranch_operator.api import names
from anabranch_operator.api.fork import ForkPhase
from anabranch_operator.plan.engine.actions import TailLog
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_operator.plan.log.gates import POD_MS_MAX
from anabranch_operator.plan.log.job_templates import GateSettings, PodSecurity
from anabranch_sim.kubernetes.sandbox import Sandbox

SAID = [{"name": "ANABRANCH_LOG", "value": "y"}]
JUDGE = {"name": "judge", "image": "x", "env": SAID}
BASELINE = GateSettings(enabled=True, pod_security=PodSecurity.BASELINE)
TEMPLATE: dict[str, Any] = {"spec": {"template": {"spec": {"containers": [JUDGE]}}}}


@pytest.fixture
def tended() -> Sandbox:
    made = office()
    log(made)
    return made


def gated(tended: Sandbox, policy: str = "Gate", **spec: Any) -> Ref:
    gate = {"jobTemplate": TEMPLATE, "onFailure": spec.pop("onFailure", "Squash")}
    promotion = {"policy": policy, "gate": gate}
    fork(tended, promotable=True, promotion=promotion, state="Promoted", **spec)
    jobs = [ref for ref in tended.kube.documents if ref.kind == "Job"]
    assert len(jobs) == 1
    return jobs[0]


def phase(tended: Sandbox) -> ForkPhase:
    return tended.operator.world.forks[WHAT_IF].status.phase


def judgement(tended: Sandbox) -> str | None:
    gate = tended.operator.world.forks[WHAT_IF].status.gate
    assert gate is not None
    return gate.message


def ends(tended: Sandbox, job: Ref, how: str, words: str = "") -> None:
    pod_ends(tended, job, how, words)
    job_ends(tended, job, how)
    tended.settle()


def pod_ends(tended: Sandbox, job: Ref, how: str, words: str = "", name: str = "x") -> None:
    found = tended.kube.get(job)
    assert found is not None
    pod = Ref("Pod", NAMESPACE, f"{job.name}-{name}")
    owner = {"uid": found.uid, "kind": "Job", "name": job.name}
    labels = {names.ROLE: names.GATE, names.FORK_LABEL: WHAT_IF.name}
    meta = {"name": pod.name, "namespace": NAMESPACE, "ownerReferences": [owner]}
    tended.kube.apply(pod, {"kind": "Pod", "metadata": {**meta, "labels": labels}, "spec": {}})
    tended.kube.report(pod, {"phase": "Failed" if how == "Failed" else "Succeeded"})
    tended.texts[pod.name] = words


def job_ends(tended: Sandbox, job: Ref, how: str, failed: int = 1) -> None:
    condition = {"type": how, "status": "True", "message": "it ended"}
    status = {"conditions": [condition], "failed": failed if how == "Failed" else 0}
    tended.kube.report(job, status)


def test_a_job_gets_the_services_address_and_keeps_what_it_said_itself(
    tended: Sandbox,
) -> None:
    job = gated(tended)
    spec = tended.kube.documents[job]["spec"]
    pod = spec["template"]["spec"]
    env = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert env["ANABRANCH_URL"].startswith("anabranchs://demo.demo.svc:7420?")
    assert (env["ANABRANCH_LOG"], env["ANABRANCH_PARENT"]) == ("y", "orders")
    assert (spec["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert phase(tended) is ForkPhase.GATING


def test_a_job_knows_whom_to_trust_in_any_namespace() -> None:
    made = office()
    log(made, Ref("Log", "elsewhere", "orders"))
    promotion = {"policy": "Gate", "gate": {"jobTemplate": TEMPLATE}}
    asks = {"promotable": True, "promotion": promotion, "state": "Promoted"}
    fork(made, Ref("Fork", "elsewhere", "what-if"), **asks)
    (job,) = [ref for ref in made.kube.documents if ref.kind == "Job"]
    pod = made.kube.documents[job]["spec"]["template"]["spec"]
    url = next(each for each in pod["containers"][0]["env"] if each["name"] == "ANABRANCH_URL")
    assert "ca=/var/run/anabranch/ca.crt" in url["value"]
    (volume,) = pod["volumes"]
    assert [*map(list, volume["projected"]["sources"])] == [["serviceAccountToken"], ["configMap"]]


def test_success_promotes(tended: Sandbox) -> None:
    ends(tended, gated(tended), "Complete")
    assert phase(tended) is ForkPhase.PROMOTED


def test_failure_squashes_and_tells_the_last_words(tended: Sandbox) -> None:
    ends(tended, gated(tended), "Failed", "the totals don't match")
    made = tended.operator.world.forks[WHAT_IF]
    assert made.status.phase is ForkPhase.SQUASHED
    assert conditions(made)["GatePassed"] == ("False", "GateFailed")
    assert judgement(tended) == "it ended: the totals don't match"
    assert isinstance(tended.service.describe("orders--what-if"), Refused)


def test_a_failed_job_waits_for_its_pod_that_is_seen_later(tended: Sandbox) -> None:
    job = gated(tended)
    job_ends(tended, job, "Failed")
    tended.settle()
    made = tended.operator.world.forks[WHAT_IF]
    assert phase(tended) is ForkPhase.GATING
    assert conditions(made)["GatePassed"] == ("Unknown", "GateRunning")
    pod_ends(tended, job, "Failed", "the totals don't match")
    tended.settle()
    assert phase(tended) is ForkPhase.SQUASHED
    assert judgement(tended) == "it ended: the totals don't match"


def test_of_several_attempts_the_last_ones_log_is_waited_for(tended: Sandbox) -> None:
    job = gated(tended)
    pod_ends(tended, job, "Failed", "the first attempt")
    job_ends(tended, job, "Failed", failed=2)
    tended.settle()
    assert phase(tended) is ForkPhase.GATING
    tended.wait(1)
    pod_ends(tended, job, "Failed", "the second attempt", name="a")
    tended.settle()
    assert judgement(tended) == "it ended: the second attempt"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_pod_that_was_deleted_is_waited_for_a_while_only(tended: Sandbox, restarts: bool) -> None:
    job = gated(tended)
    job_ends(tended, job, "Failed")
    tended.wait(POD_MS_MAX / 1_000 - 1)
    assert phase(tended) is ForkPhase.GATING
    if restarts:
        tended.restart()
        tended.wait(POD_MS_MAX / 1_000 - 1)
        assert phase(tended) is ForkPhase.GATING, "a restarted operator waits anew"
    tended.wait(2)
    assert phase(tended) is ForkPhase.SQUASHED
    assert judgement(tended) == "it ended"


def test_a_job_that_never_had_a_pod_is_judged_at_once(tended: Sandbox) -> None:
    job = gated(tended)
    job_ends(tended, job, "Failed", failed=0)
    tended.settle()
    assert phase(tended) is ForkPhase.SQUASHED


def test_failure_may_hold(tended: Sandbox) -> None:
    ends(tended, gated(tended, onFailure="Hold"), "Failed", "no")
    assert phase(tended) is ForkPhase.READY
    made = tended.operator.world.forks[WHAT_IF]
    assert conditions(made)["GatePassed"] == ("False", "GateFailed")
    assert isinstance(tended.service.describe("orders--what-if"), Description)


def test_what_was_judged_isnt_judged_again_when_the_job_is_gone(tended: Sandbox) -> None:
    job = gated(tended, onFailure="Hold")
    ends(tended, job, "Failed", "no")
    tended.kube.delete(job)
    tended.restart()
    tended.wait(600)
    assert job not in tended.kube.documents
    made = tended.operator.world.forks[WHAT_IF]
    assert conditions(made)["GatePassed"] == ("False", "GateFailed")


def test_an_approval_waits_for_the_job_and_then_for_a_person(tended: Sandbox) -> None:
    job = gated(tended, "Approval", approved=False)
    assert phase(tended) is ForkPhase.GATING
    ends(tended, job, "Complete")
    assert phase(tended) is ForkPhase.AWAITING_APPROVAL
    tended.kube.edit(WHAT_IF, approved=True)
    tended.settle()
    assert phase(tended) is ForkPhase.PROMOTED
    assert conditions(tended.operator.world.forks[WHAT_IF])["Approved"] == ("True", "Approved")


def test_approved_beforehand_still_waits_for_the_job(tended: Sandbox) -> None:
    job = gated(tended, "Approval", approved=True)
    assert phase(tended) is ForkPhase.GATING
    ends(tended, job, "Complete")
    assert phase(tended) is ForkPhase.PROMOTED


def given(settings: GateSettings, **spec: Any) -> Sandbox:
    """An office under these settings, with a fork whose gate's pods have this in their spec."""
    around = Surroundings(namespace=NAMESPACE, release="demo", gates=settings)
    made = office(around)
    log(made)
    pod = {"containers": [JUDGE], **spec}
    gate = {"jobTemplate": {"spec": {"template": {"spec": pod}}}}
    promotion = {"policy": "Gate", "gate": gate}
    fork(made, promotable=True, promotion=promotion, state="Promoted")
    return made


def jobs(office: Sandbox) -> list[Ref]:
    return [ref for ref in office.kube.documents if ref.kind == "Job"]


def test_an_installation_without_gates_makes_no_job_and_says_so() -> None:
    made = given(GateSettings())
    found = made.operator.world.forks[WHAT_IF]
    assert jobs(made) == []
    assert conditions(found)["GatePassed"] == ("False", "GateInvalid")
    assert phase(made) is not ForkPhase.PROMOTED


def test_a_template_that_asks_for_what_isnt_allowed_gets_no_job() -> None:
    """Also one that was written before there was an admission policy, or past it."""
    secret = {"name": "keys", "secret": {"secretName": "demo-s3"}}
    asks = {"serviceAccountName": "demo-operator", "volumes": [secret]}
    made = given(GateSettings(enabled=True), **asks)
    found = made.operator.world.forks[WHAT_IF]
    assert jobs(made) == []
    assert conditions(found)["GatePassed"] == ("False", "GateInvalid")
    message = next(each.message for each in found.status.conditions if each.type == "GatePassed")
    assert "spec.template.spec.serviceAccountName: demo-operator" in message
    assert "the Secret demo-s3 isn't in gates.secrets" in message
    promotion = {"policy": "Gate", "gate": {"jobTemplate": TEMPLATE}}
    made.kube.edit(WHAT_IF, promotion=promotion)
    made.settle()
    assert len(jobs(made)) == 1


def test_a_gates_pods_are_restricted_and_run_as_the_account_for_gates() -> None:
    made = given(GateSettings(enabled=True))
    (job,) = jobs(made)
    pod = made.kube.documents[job]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "demo-gate"
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]


@pytest.mark.parametrize("containers", [None, [None], "none"])
def test_containers_that_are_none_make_the_gate_invalid(containers: Any) -> None:
    for settings in (GateSettings(enabled=True), BASELINE):
        made = given(settings, containers=containers)
        found = made.operator.world.forks[WHAT_IF]
        assert jobs(made) == []
        assert conditions(found)["GatePassed"] == ("False", "GateInvalid")


def test_nulls_in_a_template_leave_the_jobs_defaults() -> None:
    for settings in (GateSettings(enabled=True), BASELINE):
        made = office(Surroundings(namespace=NAMESPACE, release="demo", gates=settings))
        log(made)
        pod = {"containers": [{**JUDGE, "env": None, "volumeMounts": None}], "volumes": None}
        pods = {"metadata": None, "spec": {**pod, "restartPolicy": None}}
        asked = {"metadata": None, "spec": {"backoffLimit": None, "template": pods}}
        promotion = {"policy": "Gate", "gate": {"jobTemplate": asked}}
        fork(made, promotable=True, promotion=promotion, state="Promoted")
        (job,) = jobs(made)
        spec = made.kube.documents[job]["spec"]
        assert spec["backoffLimit"] == 0
        assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_a_failed_jobs_log_is_shown_only_where_that_is_asked_for() -> None:
    for logs in (False, True):
        made = given(GateSettings(enabled=True, logs=logs))
        (job,) = jobs(made)
        ends(made, job, "Failed", "the totals don't match\npassword: hunter2")
        message = judgement(made) or ""
        assert ("the totals don't match" in message) is logs
        assert "hunter2" not in message
        asked = [each for each in made.done if isinstance(each, TailLog)]
        assert bool(asked) is logs


def test_a_template_that_isnt_accepted_is_told_and_corrected(tended: Sandbox) -> None:
    tended.kube._check = lambda ref, _: "no such field" if ref.kind == "Job" else None
    promotion = {"policy": "Gate", "gate": {"jobTemplate": TEMPLATE}}
    made = fork(tended, promotable=True, state="Promoted", promotion=promotion)
    assert conditions(made)["GatePassed"] == ("False", "GateInvalid")
    tended.kube._check = None
    tended.wait(600)
    assert [ref for ref in tended.kube.documents if ref.kind == "Job"]
