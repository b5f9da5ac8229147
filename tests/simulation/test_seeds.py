"""Whole deployments under faults; `make simulate` and its sisters run any number of seeds."""

import pytest
from tests.simulation.chunks import IN_ONE_TEST, chunks

from anabranch_sim.commands import described
from anabranch_sim.kinds import KINDS

SEEDS = {
    "bolt": 2_000,
    "belfast": 2_000,
    "erwin": 2_000,
    "lazy": 2_000,
    "consensus": 2_000,
    "operator": 1_000,
}
DONE_MIN = {"bolt": 50, "belfast": 20, "erwin": 12, "lazy": 12, "consensus": 50, "operator": 20}
"""Calls, records, appends, entries and writes of a seed, on average: less would try nothing."""


def check_seeds(kind: str, first: int) -> None:
    reports = [KINDS[kind].simulate(seed) for seed in range(first, first + IN_ONE_TEST)]
    failed = [described(kind, report) for report in reports if report.failed]
    assert not failed, "\n".join(failed)
    assert sum(report.done for report in reports) > DONE_MIN[kind] * IN_ONE_TEST


@pytest.mark.parametrize("first", chunks(SEEDS["bolt"]))
def test_bolt_comes_right_from(first: int) -> None:
    check_seeds("bolt", first)


@pytest.mark.parametrize("first", chunks(SEEDS["belfast"]))
def test_belfast_comes_right_from(first: int) -> None:
    check_seeds("belfast", first)


@pytest.mark.parametrize("first", chunks(SEEDS["erwin"]))
def test_erwin_comes_right_from(first: int) -> None:
    check_seeds("erwin", first)


@pytest.mark.parametrize("first", chunks(SEEDS["lazy"]))
def test_a_lazy_front_comes_right_from(first: int) -> None:
    check_seeds("lazy", first)


@pytest.mark.parametrize("first", chunks(SEEDS["consensus"]))
def test_a_consensus_group_comes_right_from(first: int) -> None:
    check_seeds("consensus", first)


@pytest.mark.parametrize("first", chunks(SEEDS["operator"]))
def test_operators_come_right_from(first: int) -> None:
    check_seeds("operator", first)
