"""What the Job of a gate reports: how many of the fork's own records it has judged.

A container of the Job's pods writes it as its termination message, such as `{"ownRecords": 12}`.
Other fields are left to the gate's author. A message that isn't a JSON object, or has no
`ownRecords`, is no report: gates may say there whatever they like.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, cast

import msgspec

from anabranch_operator.plan.engine.objects import Observed

REPORT_CHARS_MAX = 4_096
"""Kubernetes keeps no more of a termination message."""
_FIELD = "ownRecords"

_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]


class UnreadableReport(Exception):
    """There is a report, and it can't be understood: the verdict doesn't count."""


def reported(pods: Iterable[Observed]) -> int | None:
    """How many own records these pods have judged; None if none of them says so.

    Pods that judge parts of the fork must all report the same number, that of the whole.
    """
    counts = {count for pod in pods for count in _counts(pod)}
    if len(counts) > 1:
        said = " and ".join(map(str, sorted(counts)))
        raise UnreadableReport(f"its containers report different numbers of own records: {said}")
    return next(iter(counts), None)


def _counts(pod: Observed) -> Iterator[int]:
    containers: list[dict[str, Any]] = pod.status.get("containerStatuses") or []
    for container in containers:
        state: dict[str, Any] = container.get("state") or {}
        ended: dict[str, Any] = state.get("terminated") or {}
        message: str = ended.get("message") or ""
        if message.lstrip().startswith("{"):
            count = _count(message, f"container {container.get('name')} of pod {pod.ref.name}")
            if count is not None:
                yield count


def _count(message: str, whose: str) -> int | None:
    if len(message) > REPORT_CHARS_MAX:
        raise UnreadableReport(
            f"the report of {whose} has {len(message)} characters, and may have {REPORT_CHARS_MAX}"
        )
    try:
        found = cast("dict[str, Any]", msgspec.json.decode(message))
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableReport(f"the report of {whose} isn't JSON: {error}") from None
    if _FIELD not in found:
        return None
    try:
        return msgspec.convert(found[_FIELD], _Count)
    except msgspec.ValidationError:
        raise UnreadableReport(f"{_FIELD} in the report of {whose} isn't a count") from None
