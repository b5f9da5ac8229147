"""The examples' records are the same whenever they are made, and hold what is looked for."""

import json
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from anabranch_spark.analytics.events import ITEMS, SENSORS, orders, payments, readings


@pytest.mark.parametrize("make", [readings, payments, orders])
def test_records_are_the_same_each_time_and_of_any_number(
    make: Callable[[int], Iterator[bytes]],
) -> None:
    assert list(make(500)) == list(make(500))
    assert list(make(200)) == list(make(500))[:200]
    assert list(make(0)) == []


def test_a_reading_in_a_thousand_is_a_spike_of_a_degraded_sensor() -> None:
    found = [json.loads(each) for each in readings(10_000)]
    spikes = [each for each in found if each["status"] == "degraded"]
    assert len(spikes) == 10
    assert min(each["value"] for each in spikes) > 80
    assert max(each["value"] for each in found if each["status"] == "ok") < 58
    assert len({each["sensor"] for each in found}) == SENSORS


def test_now_and_then_a_user_pays_ten_times_within_ten_seconds() -> None:
    found = [json.loads(each) for each in payments(1_000)]
    first = [each for each in found if each["at"] < 10_000]
    assert {each["user"] for each in first} == {"u000"}
    assert len(first) == 10
    assert first[-1]["amount"] > 10 * max(each["amount"] for each in first[:-1]) / 2


def test_every_item_is_ordered_and_restocked() -> None:
    found = [json.loads(each) for each in orders(5_000)]
    for kind in ("order", "restock"):
        items = Counter(each["item"] for each in found if each["kind"] == kind)
        assert len(items) == ITEMS
