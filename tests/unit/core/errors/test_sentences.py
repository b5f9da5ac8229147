"""What some errors say where their facts are out of the ordinary."""

from string import Formatter

import pytest

from anabranch.core.errors import (
    BY_CODE,
    AnabranchError,
    Forbidden,
    NotPrimary,
    OutOfRange,
    RecordsDamaged,
    RecordVoided,
)
from anabranch.core.errors.refused import Refused


def test_a_range_names_the_first_and_the_last_that_is_granted() -> None:
    error = OutOfRange("orders", 9, 2, 7)
    assert "orders is from 2 to 7, both included: 9 isn't" in error.message
    assert "a position to trim before in" in OutOfRange("o", 9, 2, 7, OutOfRange.TRIM).message


@pytest.mark.parametrize("what", [OutOfRange.BEGIN, OutOfRange.PAST, OutOfRange.CURSOR])
def test_an_empty_log_is_not_told_by_a_range_that_ends_before_it_begins(what: str) -> None:
    error = OutOfRange("orders", 0, 0, -1, what)
    assert error.message == f"orders holds no records, so 0 can't be {what} it"
    assert str(error) == error.message
    assert Refused.of(error).error().message == error.message


def test_a_primary_that_nobody_knows_is_not_an_empty_name() -> None:
    assert "not known yet" in NotPrimary("n", "s", "").message
    assert "that is: p" in NotPrimary("n", "s", "p").message


def test_a_right_to_all_is_named_as_rbac_names_it() -> None:
    assert (
        "may not list logs * in namespace shop"
        in Forbidden("u", "list", "logs", "", "shop").message
    )
    assert "logs orders in" in Forbidden("u", "read", "logs", "orders", "shop").message


def test_damaged_records_are_named_to_the_last_one() -> None:
    error = RecordsDamaged("orders", 3, 7, "it", "it is torn")
    assert "records 3 to 6 of log orders" in error.message
    assert "reading goes on at 7" in error.message


def test_a_voided_append_says_that_it_isnt_there() -> None:
    assert "isn't in the log" in RecordVoided("shard-0").message


@pytest.mark.parametrize("kind", BY_CODE.values(), ids=lambda kind: kind.code)
def test_a_sentence_is_one_that_people_read(kind: type[AnabranchError]) -> None:
    """Begun like the middle of a line, for a program puts its own words before; and ended without
    a period, for it may go on.
    """
    said = "it".join(literal for literal, *_ in Formatter().parse(kind.says))
    assert not said.endswith(".")
    assert "  " not in said
    for word in ("please", "invalid", "illegal", "oops", "internal error"):
        assert word not in said.lower()
