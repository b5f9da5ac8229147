"""What a pod's status says: ready, hopeless, ended, or only slow."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.types import MS
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.status import stamp
from anabranch_operator.plan.pool.health import START_UP_MS, health

CREATED_MS = 1_000_000_000
HOPELESS = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError")


def pod(**status: Any) -> Observed:
    return specified({}, status)


def specified(spec: dict[str, Any], status: dict[str, Any]) -> Observed:
    body = {"spec": spec, "status": status}
    ref = Ref("Pod", "demo", "demo-0")
    return Observed(ref=ref, uid="u", version=1, created_at=CREATED_MS, body=body)


def ready(status: str, at_ms: int | None = None) -> dict[str, str]:
    at = {} if at_ms is None else {"lastTransitionTime": stamp(at_ms)}
    return {"type": "Ready", "status": status, **at}


def waiting(reason: str, **last: Any) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}, "lastState": last}


def test_a_pod_that_is_ready_is_well_whatever_it_went_through() -> None:
    found = health(
        pod(conditions=[ready("True")], containerStatuses=[waiting("CrashLoopBackOff")]), 1 << 62
    )
    assert (found.ready, found.failing, found.overdue) == (True, "", False)
    assert found.overdue_at is None


@pytest.mark.parametrize("reason", HOPELESS)
@pytest.mark.parametrize("key", ["initContainerStatuses", "containerStatuses"])
def test_a_container_that_waits_in_vain_fails_at_once(reason: str, key: str) -> None:
    found = health(pod(**{key: [{"state": {"running": {}}}, waiting(reason)]}), CREATED_MS * MS)
    assert found.failing == reason
    assert not found.overdue


def test_the_exit_code_of_a_container_that_ends_again_and_again_is_told() -> None:
    crash = waiting("CrashLoopBackOff", terminated={"exitCode": 3})
    found = health(pod(containerStatuses=[crash]), CREATED_MS * MS)
    assert found.failing == "CrashLoopBackOff, exit code 3"


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", "Anything"])
def test_a_container_that_waits_for_a_moment_is_only_starting(reason: str) -> None:
    found = health(pod(containerStatuses=[waiting(reason)]), CREATED_MS * MS)
    assert found.failing == ""


@pytest.mark.parametrize(
    ("status", "failing"),
    [
        ({"phase": "Failed"}, "Failed"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ],
)
def test_a_pod_that_has_ended_says_why(status: dict[str, Any], failing: str) -> None:
    found = health(pod(**status), CREATED_MS * MS)
    assert (found.ended, found.failing) == (True, failing)


@given(st.integers(-START_UP_MS, 3 * START_UP_MS), st.none() | st.integers(0, START_UP_MS))
def test_a_pod_is_overdue_when_it_wasnt_ready_for_its_start_up_time(
    ahead_ms: int, lost_ms: int | None
) -> None:
    """Counted from its creation, or from when it was ready for the last time."""
    since = CREATED_MS + 1_000 * ((lost_ms or 0) // 1_000)
    conditions = [] if lost_ms is None else [ready("False", since)]
    found = health(pod(conditions=conditions), (CREATED_MS + ahead_ms) * MS)
    overdue = CREATED_MS + ahead_ms - since >= START_UP_MS
    assert found.overdue == overdue
    assert bool(found.failing) == overdue
    assert found.overdue_at == (None if overdue else (since + START_UP_MS) * MS)


def test_the_scheduler_s_reason_is_told_of_a_pod_that_no_node_takes() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    late = (CREATED_MS + START_UP_MS) * MS
    found = health(pod(conditions=[unscheduled]), late)
    assert found.failing == "no node takes it: 0/3 nodes are available"
    assert health(pod(conditions=[unscheduled]), late - 1).failing == ""
    assert health(pod(), late).failing == "it isn't ready for 10 minutes"


def test_a_node_is_a_place() -> None:
    assert not health(pod(), 0).placed
    assert not health(specified({"nodeName": ""}, {}), 0).placed
    assert health(specified({"nodeName": "node-0"}, {}), 0).placed
