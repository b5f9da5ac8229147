"""A gate judges the fork that was meant, or none."""

import pytest
from msgspec.structs import replace

from anabranch.errors import BadRequest
from anabranch_spark.gate.task import Found, objection, task

JOB = {
    "ANABRANCH_LOG": "orders--repriced",
    "ANABRANCH_FORK": "repriced",
    "ANABRANCH_PARENT": "orders",
    "ANABRANCH_FORK_POINT": "7",
    "ANABRANCH_OWN_RECORDS": "3",
}
FOUND = Found(id=2, parent="orders", fork_point=7, start=0, tail=10, settled=10, own_records=3)


def test_a_jobs_environment_says_it_all() -> None:
    found = task({}, JOB)
    assert (found.log, found.shown, found.parent) == ("orders--repriced", "repriced", "orders")
    assert (found.fork_point, found.own_records) == (7, 3)
    assert objection(found, FOUND) is None


def test_arguments_come_before_the_environment() -> None:
    found = task({"ANABRANCH_LOG": "a--b", "ANABRANCH_FORK_POINT": "0"}, JOB)
    assert (found.log, found.fork_point) == ("a--b", 0)


def test_a_name_is_enough_and_what_is_empty_is_not_there() -> None:
    found = task({"ANABRANCH_LOG": "a--b"}, {"ANABRANCH_PARENT": "", "ANABRANCH_FORK_POINT": ""})
    assert (found.shown, found.parent, found.fork_point, found.own_records) == (
        "a--b",
        None,
        None,
        None,
    )
    assert objection(found, FOUND) is None


def test_without_a_name_the_variable_is_named() -> None:
    with pytest.raises(BadRequest, match="ANABRANCH_LOG"):
        task({"ANABRANCH_LOG": None}, {})


@pytest.mark.parametrize("text", ["-1", "1.0", "x", "٣", "1" * 19])
@pytest.mark.parametrize("name", ["ANABRANCH_FORK_POINT", "ANABRANCH_OWN_RECORDS"])
def test_what_is_no_count_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadRequest, match=name):
        task({}, {**JOB, name: text})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (replace(FOUND, parent=None), "is no fork"),
        (replace(FOUND, fork_point=6), "forked at 6, not at 7"),
        (replace(FOUND, own_records=2), "has 2 records of its own, and had 3"),
    ],
)
def test_another_fork_of_that_name_is_not_judged(found: Found, words: str) -> None:
    assert words in (objection(task({}, JOB), found) or "")


def test_a_fork_that_got_more_or_another_parent_is_judged() -> None:
    """Its parent was promoted, and what it got since will be read."""
    found = replace(FOUND, own_records=9, parent="all")
    assert objection(task({}, JOB), found) is None
