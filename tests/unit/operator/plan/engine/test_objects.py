"""What is looked at of objects, and when one of ours is as it is wanted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_operator.plan.engine.objects import contains

AS_WANTED: list[tuple[Any, Any]] = [
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [1, 2]}}),
    ([{"name": "x", "protocol": "TCP"}], [{"name": "x"}]),
    ({"endpoints": None}, {"endpoints": []}),
    ({}, {"endpoints": []}),
    ({}, {"labels": {}}),
    ({"labels": None}, {"labels": {}}),
    ({"a": None}, {"a": None}),
]
OTHERWISE: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 2}),
    ({}, {"a": 1}),
    ({"a": [1]}, {"a": [1, 2]}),
    ({"a": [1]}, {"a": []}),
    ({"a": None}, {"a": [1]}),
    ({"a": "text"}, {"a": {}}),
    ({"a": "text"}, {"a": []}),
    ({"a": {}}, {"a": {"b": 1}}),
]


@pytest.mark.parametrize(("observed", "desired"), AS_WANTED)
def test_what_others_added_doesnt_count(observed: Any, desired: Any) -> None:
    assert contains(observed, desired)


@pytest.mark.parametrize(("observed", "desired"), OTHERWISE)
def test_what_is_missing_or_different_does(observed: Any, desired: Any) -> None:
    assert not contains(observed, desired)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_what_is_there_holds_itself(document: Any) -> None:
    assert contains(document, document)


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("xyz"), JSON))
def test_what_others_added_does_not_count(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert contains({**ours, **theirs}, ours)


@given(st.dictionaries(st.sampled_from("abc"), JSON, min_size=1), JSON)
def test_a_field_that_says_something_else_is_missed(ours: dict[str, Any], other: Any) -> None:
    name = min(ours)
    changed = {**ours, name: other}
    assert contains(changed, ours) == contains(other, ours[name])
