"""How the command line writes sizes, times and strangers' text."""

import pytest

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
