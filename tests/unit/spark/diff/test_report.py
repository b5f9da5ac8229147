"""The verdict that follows from a comparison."""

import pytest
from msgspec.structs import replace

from anabranch_spark.diff.report import (
    EXIT,
    TEXT_CHARS,
    Keys,
    Positions,
    by_key,
    by_position,
    text,
)
from anabranch_spark.jobs.verdict import Verdict

SAME = Positions(
    since=0,
    shared=9,
    only_a=0,
    only_b=0,
    not_comparable_a=0,
    not_comparable_b=0,
    ranges_a=[],
    ranges_b=[],
    complete=True,
)
EQUAL = Keys(
    added=0,
    removed=0,
    changed=0,
    not_comparable=0,
    without_key_a=3,
    without_key_b=3,
    without_key_equal=True,
    samples=[],
)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, Verdict.DONE),
        ({"only_a": 1}, Verdict.REFUSED),
        ({"only_b": 1, "complete": False}, Verdict.REFUSED),
        ({"not_comparable_a": 1}, Verdict.UNKNOWN),
        ({"not_comparable_b": 1}, Verdict.UNKNOWN),
        ({"complete": False}, Verdict.UNKNOWN),
    ],
)
def test_positions_are_the_same_only_if_all_were_compared(
    changes: dict[str, int], code: Verdict
) -> None:
    assert EXIT[by_position(replace(SAME, **changes))] is code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, Verdict.DONE),
        ({"added": 1}, Verdict.REFUSED),
        ({"removed": 1}, Verdict.REFUSED),
        ({"changed": 1, "not_comparable": 1}, Verdict.REFUSED),
        ({"without_key_equal": False}, Verdict.REFUSED),
        ({"not_comparable": 1}, Verdict.UNKNOWN),
    ],
)
def test_contents_are_the_same_only_if_nothing_was_trimmed(
    changes: dict[str, int], code: Verdict
) -> None:
    assert EXIT[by_key(replace(EQUAL, **changes))] is code


def test_samples_are_readable_and_short() -> None:
    assert text(None) is None
    assert text(b"caf\xc3\xa9 \xff") == "caf\u00e9 \\xff"
    shown = text(b"x" * 10_000)
    assert shown == "x" * TEXT_CHARS + "..."
