"""How many brokers a pool wants, against the sum that a person would do."""

from math import ceil
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.operator.broker_pool import PoolHarness

from anabranch.core.bolt.protocol.commands import CreateLog

SPECS = st.fixed_dictionaries(
    {"min": st.integers(1, 3), "max": st.integers(3, 6), "spare": st.integers(0, 2)}
)


@settings(max_examples=12)
@given(SPECS, st.integers(0, 7), st.integers(1, 3))
def test_logs_want_brokers_and_spare_ones_beside_them(
    spec: dict[str, Any], logs: int, each: int
) -> None:
    harness = PoolHarness(scaling={"logsPerBroker": each}, **spec)
    harness.settle()
    for number in range(logs):
        harness.office.service.command(CreateLog(f"log-{number}"))
    harness.office.wait(11)
    harness.settle()
    needed = ceil(logs / each) + spec["spare"]
    wanted = max(spec["min"], min(spec["max"], needed))
    assert harness.status.desired == wanted
    assert harness.status.ready == wanted
    exhausted = harness.condition("PoolExhausted")
    assert (exhausted[0] == "True") == (needed > spec["max"])


@settings(max_examples=12)
@given(SPECS, st.lists(st.integers(0, 3_000), min_size=1, max_size=3), st.integers(500, 2_000))
def test_what_is_appended_wants_brokers_too(
    spec: dict[str, Any], rates: list[int], each: int
) -> None:
    harness = PoolHarness(scaling={"appendBytesPerBroker": each}, **spec)
    harness.settle()
    names = [name.replace("-", "_") for name in harness.names()]
    told = dict(zip(names, rates, strict=False))
    harness.measure(**{name: float(rate) for name, rate in told.items()})
    harness.office.wait(11)
    needed = ceil(sum(told.values()) / each) + spec["spare"]
    wanted = max(spec["min"], min(spec["max"], needed))
    assert harness.status.desired == wanted


@settings(max_examples=10)
@given(st.lists(st.integers(2, 6), max_size=4))
def test_a_number_that_is_given_is_followed_whatever_the_load(replicas: list[int]) -> None:
    harness = PoolHarness(min=2, max=6, scaling={"logsPerBroker": 1})
    harness.settle()
    for name in ("a", "b", "c"):
        harness.office.service.command(CreateLog(name))
    for count in replicas:
        harness.edit(replicas=count)
        harness.settle()
        assert (harness.status.desired, harness.status.ready) == (count, count)
        assert len(harness.names()) == count
