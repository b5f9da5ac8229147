"""Statuses: conditions merged with those that were there, and what counts as a change."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from anabranch_operator.api.anabranch_names import Milliseconds, Nanoseconds
from anabranch_operator.api.common import Shape
from anabranch_operator.api.conditions import Condition, Reason, Type
from anabranch_operator.plan.engine.actions import ApplyStatus
from anabranch_operator.plan.engine.objects import Document, Observed

COSMETIC = (
    *("tail", "settled", "start", "ownRecords", "lag", "forks", "brokers", "spare"),
    *("confirmed", "window", "speculation", "seats", "backlog"),
    "ringLastsSeconds",
)
"""Fields that move with every append, every fork, every window."""

_TYPES = dict.fromkeys(each.value for each in Type)

MESSAGE_CHARS_MAX = 1_024
_LAST_MS: Milliseconds = 253_402_300_799_000


class Said(Struct, frozen=True):
    """What is to be said of one condition; None leaves it out."""

    type: Type
    status: bool | None
    reason: Reason
    message: str = ""


def stamp(at: Milliseconds) -> str:
    """RFC 3339, in seconds, as the API server writes times. It knows no year after 9999, but a fork
    made through the API may be meant to live so long.
    """
    return datetime.fromtimestamp(min(at, _LAST_MS) // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def conditions(
    before: Iterable[Condition], said: Iterable[Said], generation: int, now: Nanoseconds
) -> list[Condition]:
    """What is said now; the time of a transition is kept while the status is the same."""
    known = {each.type: each for each in before}
    made: list[Condition] = []
    for each in said:
        status = {True: "True", False: "False", None: "Unknown"}[each.status]
        old = known.get(each.type)
        kept = old is not None and old.status == status
        made.append(
            Condition(
                type=each.type.value,
                status=status,
                reason=each.reason.value,
                message=each.message[:MESSAGE_CHARS_MAX],
                last_transition_time=old.last_transition_time
                if kept and old
                else stamp(now // 1_000_000),
                observed_generation=generation,
            )
        )
    return made


def write(object: Observed, status: Shape) -> tuple[ApplyStatus, ...]:
    """The action that makes the object's status this, if it isn't already."""
    wanted = document(status)
    have = _ours(object.status, status)
    moved = [key for key in wanted.keys() | have.keys() if wanted.get(key) != have.get(key)]
    if not moved:
        return ()
    cosmetic = all(key in COSMETIC for key in moved)
    return (ApplyStatus(ref=object.ref, uid=object.uid, status=wanted, cosmetic=cosmetic),)


def document(status: Shape) -> Document:
    """As it is written: what isn't known is left out."""
    return _without_none(msgspec.to_builtins(status))


def _ours(have: Document, status: Shape) -> Document:
    """Without what others have added, which we neither write nor take away."""
    known = _fields(type(status))
    ours = {key: value for key, value in have.items() if key in known}
    if "conditions" in ours:
        ours["conditions"] = [each for each in ours["conditions"] if each["type"] in _TYPES]
    return ours


@cache
def _fields(kind: type[Shape]) -> dict[str, None]:
    """As they are written; msgspec reads the annotations anew each time it is asked."""
    return dict.fromkeys(field.encode_name for field in msgspec.structs.fields(kind))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {key: _without_none(each) for key, each in known.items() if each is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in cast("list[Any]", value)]
    return value
