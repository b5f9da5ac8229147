"""What programs pass to a client, checked before anything is sent: a mistake is raised at once."""

from collections.abc import Iterable
from numbers import Real
from operator import index
from typing import Any, cast

from anabranch.core.errors import BadRequest
from anabranch.core.types import NEVER, Milliseconds, Position

_ONE_VALUE: tuple[type, ...] = (str, bytes, bytearray, memoryview)

VALUES, VALUES_SHOWN = "the values to append", "[b'1', b'2']"
"""Of `append_many`: what they are called, and what they may look like."""

TIMEOUT_S_MAX = 1_000_000_000
"""Thirty years; what is longer, or infinite, is a mistake."""


def text(what: str, value: Any) -> str:
    """Surrogates, which stand for bytes that aren't text, can't be sent."""
    if not isinstance(value, str):
        raise BadRequest(what, f"it must be text, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(what, f"{value[:80]!r} has parts that aren't Unicode text") from None
    return value


def several(what: str, values: Any, example: str) -> Iterable[Any]:
    """A list or another iterable: one string would be taken for a list of its characters."""
    one = isinstance(values, _ONE_VALUE)
    if one or not isinstance(values, Iterable):
        kind: str = values.__class__.__name__
        raise BadRequest(what, f"it must be a list, as in {example}, not {kind}")
    return cast("Iterable[Any]", values)


def position(what: str, value: Any) -> Position:
    return number(what, value, NEVER)


def number(what: str, value: Any, end: int) -> int:
    """From 0 up to below `end`."""
    try:
        found = None if isinstance(value, bool) else index(value)
    except TypeError:
        found = None
    if found is None:
        raise BadRequest(what, f"it must be a whole number, not {_shown(value)}")
    if not 0 <= found < end:
        raise BadRequest(what, f"{_shown(value)} isn't from 0 up to {end - 1}")
    return found


def octets(what: str, value: Any) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        raise BadRequest(what, f"it must be bytes or None, not {type(value).__name__}")
    return value


def seconds(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadRequest(what, f"it must be a number of seconds, not {_shown(value)}")
    # Compared before it is converted: a whole number may be too large for a float. NaN is neither
    # less nor more than anything.
    if not 0 <= cast("float", value) <= TIMEOUT_S_MAX:
        raise BadRequest(what, f"{_shown(value)} s isn't from 0 to {TIMEOUT_S_MAX} s")
    return float(value)


def milliseconds(timeout: float | None, default: Milliseconds) -> Milliseconds:
    """Of a timeout in seconds, if one was given."""
    return default if timeout is None else round(seconds("a timeout", timeout) * 1_000)


def _shown(value: object) -> str:
    try:
        shown = repr(value)
    except ValueError:  # Python shows no number of more than some thousand digits
        shown = "a number of thousands of digits"
    return shown if len(shown) <= 40 else f"{shown[:37]}..."  # a line's worth
