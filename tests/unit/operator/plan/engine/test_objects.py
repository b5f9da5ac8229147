"""What is looked at of objects, and when one of ours is as it is wanted."""

from typing import Any

import pytest

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
