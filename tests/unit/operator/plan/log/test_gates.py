"""Promotion gates: who may promote, and what a Job's end does."""

from typing import Any

import pytest
from tests.unit.operator.declared import (
    NAMESPACE,
    WHAT_IF,
    conditions,
    current,
    fork,
    log,
    office,
)
from tests.unit.operator.gated import (
    BASELINE,
    JUDGE,
    TEMPLATE,
    append,
    ends,
    gated,
    job_ends,
    jobs,
    judged,
    judgement,
    message,
    own_records_told,
    phase,
    pod_ends,
    promoted_records,
    tended_fork,
    wish,
)

from anabranch.core.bolt.protocol.commands import (
    Description,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS
from anabranch_operator.api.fork import ForkPhase
from anabranch_operator.plan.engine.actions import Action, Announce, Promote, TailLog
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_operator.plan.log.gate_reports import REPORT_CHARS_MAX
from anabranch_operator.plan.log.gates import PAUSE_MS, PAUSE_MS_MAX, POD_MS_MAX
from anabranch_operator.plan.log.job_templates import GateSettings
from anabranch_sim.kubernetes.sandbox import Sandbox


@pytest.fixture
def tended() -> Sandbox:
    made = office()
    log(made)
    return made


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


def test_a_record_that_is_appended_after_the_gate_has_read_isnt_promoted(tended: Sandbox) -> None:
    append(tended_fork(tended), 2)
    job = wish(tended)
    assert own_records_told(tended, job) == "2"
    append(tended)
    ends(tended, job, "Complete")
    assert phase(tended) is ForkPhase.GATING
    made = current(tended)
    assert conditions(made)["GatePassed"] == ("Unknown", "ForkMoved")
    assert "has judged 2 of the fork's 3 own records" in message(made, "GatePassed")
    assert jobs(tended) == [job]
    tended.wait(PAUSE_MS / 1_000 + 1)
    [again] = [each for each in jobs(tended) if each != job]
    assert (own_records_told(tended, again), len(again.name)) == ("3", len(job.name))
    ends(tended, again, "Complete")
    assert promoted_records(tended) == 3


def test_a_fork_that_moves_while_its_promotion_is_on_its_way_is_judged_again(
    tended: Sandbox,
) -> None:
    """Nothing but the log service can know: it refuses, and the refusal says how many there are."""
    append(tended_fork(tended))
    job = wish(tended)
    late = [append]

    def comes_first(action: Action) -> bool:
        if isinstance(action, Promote) and late:
            late.pop()(tended)
        return False

    tended.crash = comes_first
    ends(tended, job, "Complete")
    assert not late
    assert phase(tended) is ForkPhase.GATING
    assert conditions(current(tended))["GatePassed"] == ("Unknown", "ForkMoved")
    assert not tended.operator.world.service.fates


def test_a_job_that_reports_what_it_has_judged_needs_no_second_one(tended: Sandbox) -> None:
    job = gated(tended)
    assert own_records_told(tended, job) == "0"
    append(tended, 2)
    ends(tended, job, "Complete", report='{"ownRecords": 2, "checks": ["prices"]}')
    assert promoted_records(tended) == 2


def test_a_job_that_reports_less_than_there_is_is_repeated(tended: Sandbox) -> None:
    append(tended_fork(tended), 3)
    ends(tended, wish(tended), "Complete", report='{"ownRecords": 2}')
    assert conditions(current(tended))["GatePassed"] == ("Unknown", "ForkMoved")
    assert "has judged 2 of the fork's 3" in message(current(tended), "GatePassed")


@pytest.mark.parametrize(
    ("report", "why"),
    [
        ('{"ownRecords": 4}', "it reports 4 own records, and the fork has 3"),
        ('{"ownRecords": -1}', "isn't a count"),
        ('{"ownRecords": "3"}', "isn't a count"),
        ('{"ownRecords": true}', "isn't a count"),
        ('{"ownRecords": 1e99}', "isn't a count"),
        ('{"ownRecords": 3', "isn't JSON"),
        ('{"ownRecords": 3, "more": "' + "x" * REPORT_CHARS_MAX + '"}', "may have 4096"),
    ],
)
@pytest.mark.parametrize("on_failure", ["Squash", "Hold"])
def test_a_report_that_cant_be_true_promotes_nothing_and_squashes_nothing(
    tended: Sandbox, report: str, why: str, on_failure: str
) -> None:
    append(tended_fork(tended, on_failure), 3)
    ends(tended, wish(tended), "Complete", report=report)
    tended.restart()
    tended.wait(3_600)
    assert conditions(current(tended))["GatePassed"] == ("False", "GateReportInvalid")
    assert why in message(current(tended), "GatePassed")
    assert isinstance(tended.service.describe("orders--what-if"), Description)


@pytest.mark.parametrize("words", ["all is well", "", '{"verdict": "good"}', "[3]"])
def test_what_is_no_report_is_left_to_the_gates_author(tended: Sandbox, words: str) -> None:
    append(tended_fork(tended), 3)
    ends(tended, wish(tended), "Complete", report=words)
    assert promoted_records(tended) == 3


def test_containers_that_report_different_numbers_promote_nothing(tended: Sandbox) -> None:
    append(tended_fork(tended), 2)
    job = wish(tended)
    pod_ends(tended, job, "Complete", name="a", report='{"ownRecords": 1}')
    ends(tended, job, "Complete", report='{"ownRecords": 2}')
    assert conditions(current(tended))["GatePassed"] == ("False", "GateReportInvalid")
    assert "1 and 2" in message(current(tended), "GatePassed")


def test_the_report_of_a_pod_that_is_seen_later_is_waited_for(tended: Sandbox) -> None:
    job = gated(tended)
    append(tended)
    job_ends(tended, job, "Complete")
    tended.settle()
    assert phase(tended) is ForkPhase.GATING
    pod_ends(tended, job, "Complete", report='{"ownRecords": 1}')
    tended.settle()
    assert promoted_records(tended) == 1


def test_a_pod_that_is_never_seen_leaves_the_count_from_before_the_job(tended: Sandbox) -> None:
    job = gated(tended)
    job_ends(tended, job, "Complete")
    tended.wait(POD_MS_MAX / 1_000 + 1)
    assert promoted_records(tended) == 0


def test_a_fork_that_always_moves_is_judged_ever_more_seldom_and_told_of_once(
    tended: Sandbox,
) -> None:
    job, began, seen = gated(tended), tended.now, 1
    for turn in range(8):
        append(tended)
        ends(tended, job, "Complete")
        pause_ms = min(PAUSE_MS << turn, PAUSE_MS_MAX)
        assert len(jobs(tended)) == seen
        tended.wait(pause_ms / 1_000 + 1)
        seen += 1
        [job] = [each for each in jobs(tended) if each.name == judged(tended).job]
        assert len(jobs(tended)) == seen
        assert tended.kube.documents[job]["spec"]["ttlSecondsAfterFinished"] == 3_600
    assert tended.now - began > 20 * 60 * 1_000 * MS
    told = [each.reason for each in tended.done if isinstance(each, Announce)]
    assert told.count("ForkMoved") == 1
    assert told.count("GateRunning") == 1
    ends(tended, job, "Complete")
    assert promoted_records(tended) == 8


def test_a_fork_that_moves_while_it_awaits_approval_is_judged_again(tended: Sandbox) -> None:
    job = gated(tended, "Approval", approved=False)
    ends(tended, job, "Complete")
    assert phase(tended) is ForkPhase.AWAITING_APPROVAL
    append(tended)
    tended.wait(5)
    assert phase(tended) is ForkPhase.GATING
    tended.kube.edit(WHAT_IF, approved=True)
    tended.wait(PAUSE_MS / 1_000 + 1)
    [again] = [each for each in jobs(tended) if each != job]
    ends(tended, again, "Complete")
    assert promoted_records(tended) == 1


@pytest.mark.parametrize("result", [None, "Succeeded"])
def test_a_verdict_of_an_earlier_operator_that_counted_nothing_is_asked_for_again(
    tended: Sandbox, result: str | None
) -> None:
    job = gated(tended)
    status = dict(tended.kube.documents[WHAT_IF]["status"])
    status["gate"] = {"job": job.name} | ({} if result is None else {"result": result})
    tended.kube.report(WHAT_IF, status)
    job_ends(tended, job, "Complete")
    tended.restart()
    tended.wait(POD_MS_MAX / 1_000 + PAUSE_MS / 1_000 + 2)
    [again] = [each for each in jobs(tended) if each != job]
    ends(tended, again, "Complete")
    assert promoted_records(tended) == 0


def test_an_operator_that_is_replaced_at_any_step_promotes_what_was_judged(
    tended: Sandbox,
) -> None:
    for step in range(1, 40):
        made = office()
        log(made)
        left = [step]

        def dies(_: Action, left: list[int] = left) -> bool:
            left[0] -= 1
            return left[0] == 0

        append(tended_fork(made))
        made.crash = dies
        job = wish(made)
        append(made)
        ends(made, job, "Complete")
        made.wait(PAUSE_MS / 1_000 + 2)
        [again] = [each for each in jobs(made) if each != job]
        ends(made, again, "Complete")
        made.wait(1)
        assert promoted_records(made) == 2
        if left[0] > 0:
            return
    raise AssertionError("more steps than there can be")


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
