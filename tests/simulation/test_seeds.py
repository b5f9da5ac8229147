"""Whole clusters under faults, two thousand seeds of them; `make simulate` runs any number."""

import pytest

from anabranch_sim.__main__ import CLUSTERS
from anabranch_sim.bolt.simulation import simulate

SEEDS = 2_000
IN_ONE_TEST = 20


@pytest.mark.parametrize("first", range(0, SEEDS, IN_ONE_TEST))
def test_seeds_from(first: int) -> None:
    reports = [simulate(seed) for seed in range(first, first + IN_ONE_TEST)]
    failed = [CLUSTERS.told(report) for report in reports if report.failed]
    assert not failed, "\n".join(failed)
    assert sum(report.calls for report in reports) > 50 * IN_ONE_TEST
