"""The last records of a log, in every form, and what is said of those that aren't final."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import Command

import anabranch as library
from anabranch import testing
from anabranch.cli.failure import Exit

COUNT, START = 25, 4


@pytest.fixture(scope="module")
def counted(service: testing.Server) -> str:
    with library.connect(service.url) as found:
        log = found.create("counted")
        log.append_many([str(each).encode() for each in range(COUNT)])
        log.trim(START)
    return "counted"


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2 * COUNT))
def test_the_last_so_many_are_printed(ask: Command, counted: str, count: int) -> None:
    printed = ask("tail", counted, "-n", str(count), "--format", "raw").out.split()
    assert printed == [str(each) for each in range(START, COUNT)][max(0, COUNT - START - count) :]


def test_ten_are_printed_where_nobody_says_how_many(ask: Command, counted: str) -> None:
    assert len(ask("tail", counted).out.splitlines()) == 10


@pytest.mark.parametrize(
    ("start", "first"), [("20", 20), ("-3", COUNT - 3), ("-1h", START), ("2000-01-01", START)]
)
def test_a_place_to_begin_at_counts_more_than_a_number(
    ask: Command, counted: str, start: str, first: int
) -> None:
    printed = ask("tail", counted, "-n", "1", "--from", start, "--format", "raw").out.split()
    assert printed == [str(each) for each in range(first, COUNT)]


def test_a_filter_is_for_the_last_ones_alone(ask: Command, counted: str) -> None:
    assert ask("tail", counted, "-n", "5", "--grep", "[24]$").out.split() == [
        *("22", "22"),
        *("24", "24"),
    ]


@pytest.fixture
def held(ask: Command, log: str) -> str:
    """A log of one final record and two provisional ones."""
    ask("append", log, "a")
    ask("fork", log, "plan", "--promotable")
    ask("append", log, "b", "c", "--key", "k")
    return log


def test_only_what_is_final_is_printed_unless_more_is_asked_for(ask: Command, held: str) -> None:
    assert ask("tail", held).out == "       0  a\n"
    printed = ask("tail", held, "--speculative").out.splitlines()
    assert [line for line in printed if " -- " not in line] == [
        "         0  a",
        "?        1  [k]  b",
        "?        2  [k]  c",
    ]
    # Whether a confirmation comes beside the records depends on how they were sent.
    assert {line for line in printed if " -- " in line} <= {"  -- final below 1"}


def test_in_json_every_event_is_a_line(ask: Command, held: str) -> None:
    events = ask("tail", held, "--speculative", "-o", "json").lines
    delivered: list[Any] = [each for each in events if each["event"] == "deliver"]
    assert [(each["position"], each["speculative"]) for each in delivered] == [
        (0, False),
        (1, True),
        (2, True),
    ]
    assert {each["event"] for each in events} <= {"deliver", "confirm"}
    assert delivered[1]["key"] == "k"


def test_a_filter_holds_for_what_is_not_final_too(ask: Command, held: str) -> None:
    events = ask("tail", held, "--speculative", "--grep", "c", "-o", "json").lines
    assert [each["value"] for each in events if each["event"] == "deliver"] == ["c"]


def test_an_empty_log_has_no_last_records(ask: Command, log: str) -> None:
    for options in ((), ("--speculative",), ("-n", "0"), ("--from", "0"), ("-o", "json")):
        assert ask("tail", log, *options).out == ""


def test_a_negative_number_of_records_is_a_mistake(ask: Command, counted: str) -> None:
    assert "-1 is not in the range x>=0" in ask("tail", counted, "-n", "-1", code=Exit.USAGE).err


def test_no_ops_of_a_belfast_log_do_not_count(ask: Command, ticks: str) -> None:
    ask("append", ticks, "x", "y", "z", "--key", "of tail")
    assert ask("tail", ticks, "-n", "2", "--format", "raw").out.split() == ["y", "z"]
    shown = ask("tail", ticks, "-n", "1", "--origins").out.split()
    assert shown[1] in {"shard-0", "shard-1"}
    assert shown[2:] == ["[of", "tail]", "z"]
