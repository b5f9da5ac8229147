"""Filters that are claimed keep exactly the positions for which they hold."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_spark.source.predicates import ALL, Comparison, Filter, narrowed

HOLDS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
comparisons = st.lists(st.tuples(st.sampled_from(sorted(HOLDS)), st.integers(-5, 25)), max_size=5)


@given(comparisons)
def test_positions_within_are_those_for_which_all_filters_hold(
    filters: list[tuple[Comparison, int]],
) -> None:
    within = ALL
    for comparison, value in filters:
        found = narrowed(within, Filter(("position",), comparison, value))
        assert found is not None
        within = found
    kept = [position for position in range(20) if within.low <= position < within.high]
    assert kept == [
        position
        for position in range(20)
        if all(HOLDS[comparison](position, value) for comparison, value in filters)
    ]


@pytest.mark.parametrize(
    "found",
    [
        Filter(("timestamp",), ">=", 5),
        Filter(("origin_position",), ">", 5),
        Filter(("headers", "position"), ">", 5),
        Filter(("position",), "=", None),
        Filter(("position",), "<", 2.5),
        Filter(("position",), "<", True),
    ],
)
def test_what_a_range_of_positions_does_not_say_is_left_to_spark(found: Filter) -> None:
    assert narrowed(ALL, found) is None


def test_every_record_has_a_position() -> None:
    assert narrowed(ALL, Filter(("position",), "not null")) == ALL
    assert narrowed(ALL, Filter(("key",), "not null")) is None
