"""A moment as programs say it, and the milliseconds since 1970 that a record bears."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anabranch.client.session.records import checked, milliseconds, record
from anabranch.core.errors import BadRequest
from anabranch.core.records.record import UNSTAMPED, Record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(ms=st.integers(0, 250_000_000_000_000), zone=zones)
@example(ms=1_001, zone=UTC)
@example(ms=253_402_300_799_999, zone=UTC)
def test_a_moment_is_the_same_in_every_zone_to_the_millisecond(ms: int, zone: timezone) -> None:
    moment = EPOCH + timedelta(milliseconds=ms)
    assert milliseconds(moment) == ms
    try:
        there = moment.astimezone(zone)
    except OverflowError:
        return  # the last hours that Python knows
    assert milliseconds(there) == ms


@given(ms=st.integers(0, 1 << 41), within=st.integers(0, 999))
def test_what_is_finer_than_a_millisecond_is_cut_off(ms: int, within: int) -> None:
    """So that what is committed within a millisecond is found from its beginning on."""
    assert milliseconds(EPOCH + timedelta(milliseconds=ms, microseconds=within)) == ms


@pytest.mark.parametrize("before", [timedelta(microseconds=1), timedelta(days=1)])
def test_nothing_was_appended_before_1970(before: timedelta) -> None:
    with pytest.raises(BadRequest, match="since 1970"):
        milliseconds(EPOCH - before)


def test_a_moment_without_a_zone_could_be_any() -> None:
    with pytest.raises(BadRequest, match="time zone"):
        record(b"", timestamp=datetime(2024, 1, 1))  # noqa: DTZ001


@given(st.integers(0, (1 << 63) - 1))
def test_a_record_that_was_made_is_checked_and_stays_as_it_is(ms: int) -> None:
    made = record(b"v", b"k", [("a", b"1"), ("a", None)], ms)
    assert made == Record(b"v", b"k", (("a", b"1"), ("a", None)), ms)
    assert checked(made) == made
    assert checked(b"v") == Record(b"v", None, (), UNSTAMPED)
    assert checked(Record(b"v")).timestamp == UNSTAMPED


@pytest.mark.parametrize(
    "made",
    [
        Record("text"),  # pyright: ignore[reportArgumentType]
        Record(b"", "key"),  # pyright: ignore[reportArgumentType]
        Record(b"", None, (("name", "text"),)),  # pyright: ignore[reportArgumentType]
        Record(b"", None, (("\ud800", b""),)),
        Record(b"", None, (), -2),
    ],
    ids=["value", "key", "header", "name", "time"],
)
def test_a_record_that_was_made_past_the_types_is_refused(made: Record) -> None:
    with pytest.raises(BadRequest):
        checked(made)
