"""How the command line writes sizes, times and strangers' text, and reads durations and points."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from anabranch.cli.options import DURATION, POINT
from anabranch.cli.render.output import duration, moment, printable, shown, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 us"),
        (0.000_34, "340 us"),
        (0.002_14, "2.14 ms"),
        (0.999, "999 ms"),
        (1.0, "1 s"),
        (59.0, "59 s"),
        (60, "1 m"),
        (200, "3 m 20 s"),
        (3_600, "1 h"),
        (7_500, "2 h 5 m"),
        (86_400 * 4 + 7_200, "4 d 2 h"),
        (86_400 * 400, "400 d"),
    ],
)
def test_durations_have_two_parts_that_matter(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes_are_in_powers_of_1024(count: int, text: str) -> None:
    assert size(count) == text


def test_moments_are_rfc_3339_in_utc() -> None:
    assert moment(0) == "1970-01-01T00:00:00.000Z"
    assert moment(1_767_225_600_250) == "2026-01-01T00:00:00.250Z"


def test_what_strangers_wrote_can_not_move_the_cursor() -> None:
    assert printable("a\x1b[31mb\nc") == "a\\x1b[31mb\\nc"
    assert shown(b"\xff\x00ok") == "\\xff\\x00ok"
    assert shown("grün".encode()) == "grün"
    assert shown(None) == "-"


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


@pytest.mark.parametrize("text", ["", "-1", "yesterday", "12:00", "x ago"])
def test_no_point_is_guessed(text: str) -> None:
    with pytest.raises(click.BadParameter):
        POINT.convert(text, None, None)
