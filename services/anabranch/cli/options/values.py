"""How durations, times, positions, rates, addresses and bytes are written on the command line."""

import os
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from anabranch.client.session.endpoint import endpoint
from anabranch.core.errors import BadRequest

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_UNITS_B = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB)?")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_DURATION = re.compile(f"(?:{_PART.pattern})+")
_INT63_END = 1 << 63
"""Positions, rates and milliseconds are below."""
_DIGITS_MAX = 19

Point = int | datetime | timedelta
"""A position, a moment, or a moment so long ago."""


class Duration(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """`90s`, `10m`, `1h30m`, `250ms`; as seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        if not _DURATION.fullmatch(text):
            self.fail(f"{text!r} is no duration: write 90s, 10m, 1h30m or 250ms", param, ctx)
        seconds = _seconds(text)
        if seconds * 1_000 >= _INT63_END:
            self.fail(f"{_shortened(text)} is longer than any duration can be", param, ctx)
        return seconds


class PointInLog(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """A position, or a time: RFC 3339 (local if it names no zone), `-10m`, or `10m ago`.

    With `from_end`, a negative number is so many records before the end.
    """

    name = "position|time"

    def __init__(self, *, from_end: bool = False) -> None:
        self._from_end = from_end

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Point:
        if isinstance(value, Point):
            return value
        text = str(value).strip()
        if text.isdecimal() or (self._from_end and re.fullmatch(r"-\d+", text)):
            return self._position(text, param, ctx)
        ago = text.removesuffix(" ago") if text.endswith(" ago") else text.removeprefix("-")
        try:
            if ago != text and _DURATION.fullmatch(ago):
                return timedelta(seconds=_seconds(ago))
            return datetime.fromisoformat(text).astimezone(UTC)
        except OverflowError:
            self.fail(f"{_shortened(text)} is a time outside of the years 1 to 9999", param, ctx)
        except ValueError:
            last = ", -10 (ten before the end)" if self._from_end else ""
            self.fail(
                f"{text!r} is neither a position nor a time: write 1234{last}, "
                "2026-01-31T12:00:00Z, or -10m (ten minutes ago)",
                param,
                ctx,
            )

    def _position(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Python refuses to read thousands of digits, and no server has such positions."""
        digits = text.removeprefix("-").lstrip("0")
        if len(digits) > _DIGITS_MAX or abs(int(text)) >= _INT63_END:
            self.fail(f"{_shortened(text)} is beyond the last position there can be", param, ctx)
        return int(text)


class Rate(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """`1MiB/s`, `500/s`, `1000`; as a whole number a second. `none` is no limit, and -1 here."""

    name = "rate"
    NONE = -1

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip().removesuffix("/s")
        if text == "none":
            return self.NONE
        found = _AMOUNT.fullmatch(text)
        amount = float(found[1]) * _UNITS_B[found[2] or ""] if found else 0.0
        if amount >= _INT63_END:
            self.fail(f"{_shortened(text)} is more than any rate can be: write none", param, ctx)
        if round(amount) < 1:
            self.fail(f"{value!r} is no rate: write 1MiB/s, 500/s or none", param, ctx)
        return round(amount)


class Url(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """An address as it was given: what an endpoint shows of itself leaves the token out."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            endpoint(str(value))
        except BadRequest as wrong:
            self.fail(wrong.message, param, ctx)
        return str(value)


class Bytes(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """The argument's own bytes, whether they are UTF-8 or not."""

    name = "text"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> bytes:
        return value if isinstance(value, bytes) else os.fsencode(str(value))


class Delimiter(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    r"""What stands between a key and its value: `:`, `\t`, `\x1f`."""

    name = "delimiter"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> bytes:
        if isinstance(value, bytes):
            return value
        given = os.fsencode(str(value))
        try:
            found = re.sub(rb"\\(x[0-9a-fA-F]{2}|.?)", _escaped, given, flags=re.DOTALL)
        except KeyError as unknown:
            self.fail(f"{value!r}: \\{unknown.args[0]} stands for nothing", param, ctx)
        if not found:
            self.fail("a delimiter has at least one character", param, ctx)
        return found


class Pattern(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """A regular expression over bytes."""

    name = "regex"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[bytes]:
        try:
            return re.compile(os.fsencode(str(value)))
        except (re.error, OverflowError) as wrong:
            self.fail(f"{value!r} is no regular expression: {wrong}", param, ctx)
        except RecursionError:
            self.fail("the regular expression is nested too deeply", param, ctx)


def _shortened(text: str) -> str:
    """The text in quotes; of thousands of digits, only the first ones."""
    return repr(text if len(text) <= _DIGITS_MAX * 2 else f"{text[:_DIGITS_MAX]}...")


def _seconds(text: str) -> float:
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


_ESCAPES = {"t": b"\t", "n": b"\n", "r": b"\r", "0": b"\0", "\\": b"\\"}


def _escaped(found: re.Match[bytes]) -> bytes:
    sign = found[1].decode("utf-8", "backslashreplace")
    return bytes.fromhex(sign[1:]) if len(sign) == 3 else _ESCAPES[sign]


DURATION = Duration()
RATE = Rate()
URL = Url()
BYTES = Bytes()
DELIMITER = Delimiter()
PATTERN = Pattern()
POINT = PointInLog()
START = PointInLog(from_end=True)
