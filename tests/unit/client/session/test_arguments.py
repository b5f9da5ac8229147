"""What programs pass to a client: what can't be meant is refused, and never by another error."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.session import arguments
from anabranch.core.errors import BadRequest
from anabranch.core.types import NEVER

HUGE = 10**5_000
"""Too long to be shown, and too large for a float."""

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
    st.lists(st.integers()),
    st.sampled_from(["\ud800", "a\udfffb"]),
    st.just(HUGE),
    st.just(-HUGE),
    st.just(object()),
)


class Nine:
    """As numpy's integers are: none of Python's, but usable as one."""

    def __index__(self) -> int:
        return 9


@given(anything)
def test_a_position_is_a_whole_number_or_refused(value: Any) -> None:
    meant = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < NEVER
    if meant:
        assert arguments.position("it", value) == value
    else:
        with pytest.raises(BadRequest, match=r"^it: "):
            arguments.position("it", value)


@given(anything)
def test_seconds_are_a_number_from_nothing_to_thirty_years_or_refused(value: Any) -> None:
    real = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if real and 0 <= value <= arguments.TIMEOUT_S_MAX:
        assert arguments.seconds("it", value) == float(value)
    else:
        with pytest.raises(BadRequest, match=r"^it: "):
            arguments.seconds("it", value)


@given(anything)
def test_text_is_what_can_be_sent(value: Any) -> None:
    sendable = isinstance(value, str) and value.encode("utf-8", "replace").decode() == value
    if sendable:
        assert arguments.text("it", value) == value
    else:
        with pytest.raises(BadRequest, match=r"^it: "):
            arguments.text("it", value)


@given(anything)
def test_octets_are_bytes_or_nothing(value: Any) -> None:
    if value is None or isinstance(value, bytes):
        assert arguments.octets("it", value) == value
    else:
        with pytest.raises(BadRequest, match="must be bytes or None"):
            arguments.octets("it", value)


@given(anything)
def test_one_value_is_not_taken_for_several(value: Any) -> None:
    """Iterated over, `b"12"` would be the numbers 49 and 50."""
    if isinstance(value, list):
        assert list(arguments.several("it", value, "[1]")) == value
    else:
        with pytest.raises(BadRequest, match=r"it must be a list, as in \[1\]"):
            arguments.several("it", value, "[1]")


@pytest.mark.parametrize("value", [bytearray(b"12"), memoryview(b"12")])
def test_neither_is_a_buffer(value: Any) -> None:
    with pytest.raises(BadRequest, match="must be a list"):
        arguments.several("the values to append", value, "[b'1', b'2']")


def test_a_generator_is_several() -> None:
    assert list(arguments.several("it", (each for each in (1, 2)), "[1]")) == [1, 2]


def test_what_is_usable_as_a_whole_number_is_one() -> None:
    assert arguments.number("it", Nine(), 10) == 9
    with pytest.raises(BadRequest, match="from 0 up to 8"):
        arguments.number("it", Nine(), 9)


@pytest.mark.parametrize(
    "value", [HUGE, -HUGE, [HUGE], "x" * 10_000], ids=["huge", "less", "within", "text"]
)
def test_what_is_refused_is_shown_in_a_line(value: Any) -> None:
    with pytest.raises(BadRequest) as refused:
        arguments.number("it", value, NEVER)
    assert len(refused.value.message) < 150
    with pytest.raises(BadRequest) as refused:
        arguments.seconds("it", value)
    assert len(refused.value.message) < 150


@pytest.mark.parametrize(
    ("given_s", "ms"), [(None, 77), (0, 0), (1.5, 1_500), (Fraction(1, 4), 250), (1e9, 10**12)]
)
def test_a_timeout_in_milliseconds(given_s: Any, ms: int) -> None:
    assert arguments.milliseconds(given_s, 77) == ms


@pytest.mark.parametrize("value", [-0.001, 1e9 + 1, float("inf"), float("nan"), True, Decimal(1)])
def test_a_timeout_that_cant_be_meant_is_refused(value: Any) -> None:
    with pytest.raises(BadRequest, match="a timeout"):
        arguments.milliseconds(value, 77)
