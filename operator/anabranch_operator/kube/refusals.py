"""What the API server says when it doesn't do as it was asked: few kinds, by what follows."""

import email.utils
import time
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from anabranch_operator.plan.engine import events
from anabranch_operator.plan.engine.events import Refusal


class ApiError(Exception):
    """Base; the codes are those that plans know."""

    code: ClassVar[str]

    def __init__(self, message: str, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_ms = retry_after_ms

    def refusal(self) -> Refusal:
        return Refusal(self.code, self.message, self.retry_after_ms)


class Conflict(ApiError):
    """Another version, another UID, or somebody's name already."""

    code = events.CONFLICT


class NotFound(ApiError):
    code = events.NOT_FOUND


class Invalid(ApiError):
    """It will never be taken as it is; the message is the API server's own."""

    code = events.INVALID


class Forbidden(ApiError):
    """By RBAC, by admission, or because we aren't known."""

    code = events.FORBIDDEN


class TooMany(ApiError):
    code = events.TOO_MANY


class Away(ApiError):
    """No answer, or one that says to come again. It may have been done."""

    code = events.AWAY


class NotStanding(ApiError):
    """Our lease isn't good any more, and nothing was sent."""

    code = events.NOT_STANDING


class _Cause(msgspec.Struct, frozen=True):
    field: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: tuple[_Cause, ...] = ()


class _Status(msgspec.Struct, frozen=True):
    """The API server's `Status`, as far as it is read."""

    message: str = ""
    reason: str = ""
    details: _Details = _Details()

    @property
    def is_another(self) -> bool:
        """The object of this name isn't the one that was meant."""
        return any(cause.field == "metadata.uid" for cause in self.details.causes)


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    409: Conflict,
    410: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooMany,
}
_MESSAGE_CHARS_MAX = 2_000


def refused(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """What an answer outside of the two hundreds means; what isn't listed may pass by itself."""
    try:
        told = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        told = _Status(body[:_MESSAGE_CHARS_MAX].decode(errors="replace"))
    message = told.message or told.reason or f"the API server answered {status}"
    kind = Conflict if told.is_another else _BY_STATUS.get(status, Away)
    return kind(message[:_MESSAGE_CHARS_MAX], _milliseconds(headers.get("Retry-After", "")))


def _milliseconds(retry_after: str) -> int:
    """Seconds, or a date as HTTP writes them."""
    if retry_after.isdecimal():
        return int(retry_after) * 1_000
    try:
        at = email.utils.parsedate_to_datetime(retry_after).timestamp()
    except ValueError:
        return 0
    return max(0, round((at - time.time()) * 1_000))
