"""How durations, points, delimiters and bytes are read."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from anabranch.cli.options.values import BYTES, DELIMITER, DURATION, PATTERN, POINT, START


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5_400), ("250ms", 0.25), ("1.5d", 129_600)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "10 m", "10x", "-5s", "1h, 2m"])
def test_no_duration_is_guessed(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no duration"):
        DURATION.convert(text, None, None)


def test_a_point_is_a_position_a_time_or_some_time_ago() -> None:
    assert POINT.convert("1234", None, None) == 1234
    assert POINT.convert("10m ago", None, None) == timedelta(minutes=10)
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert POINT.convert("2026-01-31T12:00:00Z", None, None) == noon
    assert POINT.convert("2026-01-31T14:00:00+02:00", None, None) == noon


@pytest.mark.parametrize("text", ["", "-1", "yesterday", "12:00", "x ago", "- 10m", "-10"])
def test_no_point_is_guessed(text: str) -> None:
    with pytest.raises(click.BadParameter):
        POINT.convert(text, None, None)


@pytest.mark.parametrize("text", ["-90m", "90m ago", "-1h30m"])
def test_a_point_may_be_some_time_ago(text: str) -> None:
    assert POINT.convert(text, None, None) == timedelta(minutes=90)


def test_where_to_start_may_be_counted_from_the_end() -> None:
    assert START.convert("-10", None, None) == -10
    assert START.convert("-10m", None, None) == timedelta(minutes=10)
    assert START.convert("7", None, None) == 7


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        (":", b":"),
        ("\\t", b"\t"),
        ("\\x1f", b"\x1f"),
        ("=>", b"=>"),
        ("\\\\", b"\\"),
        ("ü", "ü".encode()),
    ],
)
def test_a_delimiter_may_be_escaped(text: str, delimiter: bytes) -> None:
    assert DELIMITER.convert(text, None, None) == delimiter


@pytest.mark.parametrize("text", ["", "\\", "\\q", "\\xg0"])
def test_no_delimiter_is_guessed(text: str) -> None:
    with pytest.raises(click.BadParameter):
        DELIMITER.convert(text, None, None)


def test_bytes_that_are_not_text_are_kept() -> None:
    given = os.fsdecode(b"\xff\x00a")
    assert BYTES.convert(given, None, None) == b"\xff\x00a"
    pattern: Any = PATTERN.convert(os.fsdecode(b"\xff.a"), None, None)
    assert pattern.search(b"--\xff-a")


def test_a_wrong_pattern_says_what_is_wrong() -> None:
    with pytest.raises(click.BadParameter, match="unterminated"):
        PATTERN.convert("[a", None, None)
