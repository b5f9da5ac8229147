"""What the store answered, as what it means for the call.

The client tells most of it as text alone: status and code are taken from there, once, here.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from obstore.exceptions import AlreadyExistsError, BaseError

CLIENT_ERRORS = (BaseError, OSError)
"""Everything that the client raises of its own."""

_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_SAID = re.compile(r'(?:message|error): "([^"\n]+)"')
_KIND = re.compile(r"(?:kind|source): ([A-Z]\w+),")

_AGAIN_CODES = frozenset(
    [
        "BadDigest",  # damaged on its way, and refused
        "ConditionalRequestConflict",
        "IncompleteBody",
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "SlowDown",
        "Throttling",
        "XAmzContentChecksumMismatch",
        "XAmzContentSHA256Mismatch",
    ]
)
_AGAIN_STATUSES = frozenset([408, 425, 429])
_SKEWED = "RequestTimeTooSkewed"


class Verdict(Enum):
    MISSING = auto()
    """There is no such object."""
    TAKEN = auto()
    """There is one of that name."""
    PAST_END = auto()
    """It has no byte there."""
    AGAIN = auto()
    """Nothing is known of the outcome, and another attempt may have one."""
    REFUSED = auto()
    """Another attempt would be refused as well."""


@dataclass(frozen=True, slots=True)
class Fault:
    verdict: Verdict
    reason: str
    throttled: bool = False


def understand(error: BaseError | OSError) -> Fault:
    text = str(error)
    status, code = _first(_STATUS, text), _first(_CODE, text)
    number = int(status) if status else None
    verdict = _verdict(error, number, code)
    return Fault(verdict, _reason(text, status, code), number in {429, 503})


def _verdict(error: BaseError | OSError, status: int | None, code: str) -> Verdict:
    if code in _AGAIN_CODES or status in _AGAIN_STATUSES or status is None or status >= 500:
        return Verdict.AGAIN
    if isinstance(error, AlreadyExistsError):
        return Verdict.TAKEN
    # A bucket that is gone says nothing of the object: that one isn't damage, and may come back.
    if status == 404 and code != "NoSuchBucket":
        return Verdict.MISSING
    return Verdict.PAST_END if status == 416 else Verdict.REFUSED


def _reason(text: str, status: str, code: str) -> str:
    if code == _SKEWED:
        return f"{status} {code}: this machine's clock is off"
    if status:
        return f"{status} {code} {_first(_MESSAGE, text)}".strip()
    causes = _SAID.findall(text) or _KIND.findall(text) or [text.partition("\n")[0]]
    return f"no whole answer came ({causes[-1]})"


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
