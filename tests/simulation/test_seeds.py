"""Whole clusters under faults; `make simulate` runs any number."""

import pytest
from tests.simulation.chunks import IN_ONE_TEST, chunks

from anabranch_sim.__main__ import CLUSTERS
from anabranch_sim.bolt.simulation import simulate

SEEDS = 2_000


@pytest.mark.parametrize("first", chunks(SEEDS))
def test_seeds_from(first: int) -> None:
    reports = [simulate(seed) for seed in range(first, first + IN_ONE_TEST)]
    failed = [CLUSTERS.told(report) for report in reports if report.failed]
    assert not failed, "\n".join(failed)
    assert sum(report.calls for report in reports) > 50 * IN_ONE_TEST
