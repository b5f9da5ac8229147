"""How the command line writes sizes, times and strangers' text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.cli.render.words import duration, printable, shown, size


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


def test_what_strangers_wrote_can_not_move_the_cursor() -> None:
    assert printable("a\x1b[31mb\nc") == "a\\x1b[31mb\\nc"
    assert shown(b"\xff\x00ok") == "\\xff\\x00ok"
    assert shown("grün".encode()) == "grün"
    assert shown(None) == "-"


UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.000_999_6, "1 ms"), (0.999_6, "1 s"), (59.96, "1 m"), (3_599.6, "1 h"), (86_399.9, "1 d")],
)
def test_what_is_almost_a_unit_is_that_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e9))
def test_a_duration_reads_as_about_what_it_was(seconds: float) -> None:
    told = duration(seconds)
    assert re.fullmatch(r"[0-9.]+ (us|ms|s|m|h|d)( [0-9]+ (s|m|h))?", told), told
    parts = re.findall(r"([0-9.]+) ([a-z]+)", told)
    assert sum(float(number) * UNITS_S[unit] for number, unit in parts) == pytest.approx(
        seconds, rel=0.05, abs=1e-6
    )
    assert all(float(number) < 1_000 or unit == "d" for number, unit in parts)


@given(st.text())
def test_printable_text_is_left_alone_and_other_text_can_be_read_back(text: str) -> None:
    told = printable(text)
    assert told.isprintable()
    assert (told == text) == text.isprintable()
    if "\\" not in text:
        assert told.encode("latin-1", "backslashreplace").decode("unicode_escape") == text


@given(st.binary(max_size=30))
def test_any_content_is_shown_on_one_line(content: bytes) -> None:
    told = shown(content)
    assert told.isprintable()
    if content.isascii() and told == content.decode():
        assert content.decode().isprintable()


def test_null_is_told_from_empty() -> None:
    assert (shown(None), shown(b""), shown(b"-")) == ("-", "", "-")
