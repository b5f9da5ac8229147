"""Nothing but a pass of everything that was declared is a pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anabranch_spark.expectations import NotNull, Result, Status, Suite, Text
from anabranch_spark.expectations.outcome import (
    REASON_CHARS_MAX,
    conclude,
    declared,
    keeps,
    unknown,
)
from anabranch_spark.expectations.suite import NAME_CHARS_MAX, PARSED


def suite(*names: str) -> Suite:
    each = tuple(NotNull(name=name, column="value") for name in names)
    return Suite(version=1, value=Text(), expectations=each)


def result(name: str, status: Status) -> Result:
    kind = PARSED if name == PARSED else "not_null"
    return Result(name=name, expect=kind, status=status, reason="it says so")


def test_a_pass_of_each_is_a_pass() -> None:
    found = conclude(suite("a", "b"), [result(name, Status.PASSED) for name in (PARSED, "a", "b")])
    assert found.verdict is Status.PASSED
    assert found.reason == "all 3 expectations pass"
    assert [each.name for each in found.results] == [PARSED, "a", "b"]


@given(st.data())
def test_a_pass_needs_a_pass_of_each_and_nothing_else(data: st.DataObject) -> None:
    """Against the definition: every name once, as its own kind, all passed."""
    names = [f"n{index}" for index in range(data.draw(st.integers(1, 5)))]
    wanted = suite(*names)
    pool = [*declared(wanted), "stranger"]
    found = [
        replace(
            result(data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(Status))),
        )
        for _ in range(data.draw(st.integers(0, 9)))
    ]
    if data.draw(st.booleans()):
        found = [result(name, Status.PASSED) for name in declared(wanted)] + found[:1]
    sound = sorted(each.name for each in found) == sorted(declared(wanted)) and all(
        each.status is Status.PASSED for each in found
    )
    concluded = conclude(wanted, found)
    assert (concluded.verdict is Status.PASSED) == sound
    assert [each.name for each in concluded.results] == list(declared(wanted))


@given(st.lists(st.sampled_from(Status), min_size=1, max_size=6))
def test_one_that_wasnt_judged_makes_all_unknown(statuses: list[Status]) -> None:
    names = [f"n{index}" for index in range(len(statuses))]
    found = [result(name, each) for name, each in zip(names, statuses, strict=True)]
    verdict = conclude(suite(*names), [result(PARSED, Status.PASSED), *found]).verdict
    if Status.UNKNOWN in statuses:
        assert verdict is Status.UNKNOWN
    else:
        assert verdict is (Status.FAILED if Status.FAILED in statuses else Status.PASSED)


@pytest.mark.parametrize("left_out", [PARSED, "a", "b"])
def test_one_that_was_left_out_is_named(left_out: str) -> None:
    found = [result(name, Status.PASSED) for name in (PARSED, "a", "b") if name != left_out]
    concluded = conclude(suite("a", "b"), found)
    assert concluded.verdict is Status.UNKNOWN
    assert f"{left_out} (it wasn't judged)" in concluded.reason


def test_a_result_of_another_kind_doesnt_count() -> None:
    found = [result(PARSED, Status.PASSED), replace(result("a", Status.PASSED), expect="range")]
    assert conclude(suite("a"), found).verdict is Status.UNKNOWN


def test_a_status_that_nobody_knows_doesnt_pass() -> None:
    odd = replace(result("a", Status.PASSED), status="fine")  # type: ignore[arg-type]
    found = [result(PARSED, Status.PASSED), odd]
    assert conclude(suite("a"), found).verdict is Status.UNKNOWN


@given(st.integers(0, 10**18), st.integers(0, 10**18), st.integers(1, 10_000))
def test_a_share_is_compared_exactly(judged: int, misses: int, share: int) -> None:
    misses = min(misses, judged)
    expected = (judged - misses) * 10_000 >= share * judged
    assert keeps(judged, misses, share / 10_000) == expected


def test_a_share_is_the_number_that_was_written() -> None:
    """As doubles, 0.07 of 100 is more than 7."""
    assert keeps(100, 93, 0.07)
    assert not keeps(100, 94, 0.07)
    assert keeps(0, 0, 1.0)
    assert not keeps(10**15, 1, 1.0)


def test_the_reason_has_room_in_a_condition_and_counts_what_it_leaves_out() -> None:
    names = [f"{index} {'x' * (NAME_CHARS_MAX - 4)}" for index in range(40)]
    found = [result(name, Status.FAILED) for name in names]
    reason = conclude(suite(*names), [result(PARSED, Status.PASSED), *found]).reason
    assert len(reason) <= REASON_CHARS_MAX
    shown = reason.count("it says so")
    assert reason.startswith("40 of 41 expectations fail: 0 x")
    assert reason.endswith(f"; and {40 - shown} more")


def test_what_failed_and_what_wasnt_judged_are_counted_apart() -> None:
    found = [result(PARSED, Status.PASSED), result("a", Status.FAILED)]
    reason = conclude(suite("a", "b"), found).reason
    assert reason.startswith("1 of 3 expectations fail and 1 of 3 couldn't be judged: a (")


def test_nothing_that_is_unknown_has_counts() -> None:
    found = unknown("a", "range", "why")
    assert (found.judged, found.misses, found.status) == (None, None, Status.UNKNOWN)
