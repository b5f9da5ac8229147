"""Durations as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_operator.api import names
from anabranch_operator.api.common import SPAN_MS_MAX, Span, instant, milliseconds

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@pytest.mark.parametrize(
    ("span", "ms"),
    [("250ms", 250), ("90s", 90_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("0s", 0)],
)
def test_a_duration_is_so_many_milliseconds(span: str, ms: int) -> None:
    assert milliseconds(msgspec.convert(span, Span)) == ms


@given(
    st.lists(
        st.tuples(st.integers(0, 10**5), st.sampled_from(list(UNITS_MS))), min_size=1, max_size=3
    )
)
def test_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    span = "".join(f"{number}{unit}" for number, unit in parts)
    wanted = sum(number * UNITS_MS[unit] for number, unit in parts)
    assert milliseconds(msgspec.convert(span, Span)) == min(wanted, SPAN_MS_MAX)


@pytest.mark.parametrize("span", ["", "5", "s", "1.5h", "1w", "-1s", "1h 30m", "1h30"])
def test_what_is_no_duration_is_refused(span: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(span, Span)


@given(
    st.datetimes(
        min_value=datetime(1971, 1, 1),  # noqa: DTZ001 - the zone comes beside it
        timezones=st.builds(timezone, st.integers(-720, 720).map(lambda m: timedelta(minutes=m))),
    )
)
def test_a_moment_keeps_every_millisecond(moment: datetime) -> None:
    """By a float, one in some thousands came out a millisecond early."""
    days = moment.toordinal() - datetime(1970, 1, 1, tzinfo=UTC).toordinal()
    minutes = (days * 24 + moment.hour) * 60 + moment.minute
    offset = moment.utcoffset()
    assert offset is not None
    minutes -= offset // timedelta(minutes=1)
    wanted = (minutes * 60 + moment.second) * 1_000 + moment.microsecond // 1_000
    assert instant(moment.isoformat()) == wanted


def test_who_owns_a_log_is_told_down_to_the_uid() -> None:
    owner = names.owner("team", names.FORK, "what-if", "0b-1")
    assert owner == "k8s/team/Fork/what-if/0b-1"
    assert owner.startswith(names.OWNERS)
    assert names.service_name(names.FORK, "what-if") == "fork-what-if"
