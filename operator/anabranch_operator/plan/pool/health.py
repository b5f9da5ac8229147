"""What a pod's own status says of it: is it ready, will it be, or does it need somebody?"""

from collections.abc import Iterator

from msgspec import Struct

from anabranch_operator.api.anabranch_names import MS, Milliseconds, Nanoseconds
from anabranch_operator.api.common import instant
from anabranch_operator.plan.engine.objects import Document, Observed
from anabranch_operator.plan.log.services import is_ready

START_UP_MS = 600_000
"""A pod that isn't ready for so long won't be by itself."""

_HOPELESS = (
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
)
"""Why a container waits, where waiting doesn't help; the kubelet goes on trying, ever slower."""

_ENDED = ("Failed", "Succeeded")


class Health(Struct, frozen=True):
    ready: bool
    failing: str
    """Why it can't serve and won't soon; empty: it does, or is starting."""
    ended: bool
    """It will never run again."""
    placed: bool
    """It has a node."""
    overdue: bool
    """It hasn't been ready for `START_UP_MS`."""
    overdue_at: Nanoseconds | None
    """When that will be; None if it is ready, or overdue already."""


def health(pod: Observed, now: Nanoseconds) -> Health:
    ready = is_ready(pod)
    ended = pod.status.get("phase") in _ENDED
    due = (_unready_since(pod) + START_UP_MS) * MS
    overdue = not ready and due <= now
    return Health(
        ready=ready,
        failing="" if ready else _failing(pod, ended=ended, overdue=overdue),
        ended=ended,
        placed=bool(pod.spec.get("nodeName")),
        overdue=overdue,
        overdue_at=None if ready or overdue else due,
    )


def _failing(pod: Observed, *, ended: bool, overdue: bool) -> str:
    if ended:
        return str(pod.status.get("reason") or pod.status["phase"])
    for status in _containers(pod):
        reason = _part(_part(status, "state"), "waiting").get("reason")
        if reason in _HOPELESS:
            last = _part(_part(status, "lastState"), "terminated")
            return f"{reason}, exit code {last['exitCode']}" if "exitCode" in last else str(reason)
    if not overdue:
        return ""
    unscheduled = _condition(pod, "PodScheduled")
    if unscheduled is not None and unscheduled["status"] == "False":
        return f"no node takes it: {unscheduled.get('message', '')}"
    return f"it isn't ready for {START_UP_MS // 60_000} minutes"


def _unready_since(pod: Observed) -> Milliseconds:
    condition = _condition(pod, "Ready")
    at = None if condition is None else condition.get("lastTransitionTime")
    return pod.created_at if at is None else max(pod.created_at, instant(at))


def _condition(pod: Observed, name: str) -> Document | None:
    found: list[Document] = pod.status.get("conditions") or []
    return next((each for each in found if each["type"] == name), None)


def _containers(pod: Observed) -> Iterator[Document]:
    for key in ("initContainerStatuses", "containerStatuses"):
        yield from pod.status.get(key) or ()


def _part(document: Document, key: str) -> Document:
    return document.get(key) or {}
