"""Belfast under faults; `make simulate-belfast` runs any number."""

import os
import subprocess
import sys

import pytest
from tests.simulation.chunks import IN_ONE_TEST, chunks

from anabranch_sim.belfast.__main__ import BELFAST
from anabranch_sim.belfast.exhaustive import explore
from anabranch_sim.belfast.mutants import BY_ORDER, SPECULATIONS
from anabranch_sim.belfast.simulation import simulate
from anabranch_sim.bolt.mutants import Breakage
from anabranch_sim.mutants import broken, hunt

SEEDS = 2_000

QUICK = (
    "a quota changes within its window",
    "acknowledged before its cut",
    "speculates beyond what is published",
    "confirmed without a cut",
    "a cut waits for the first alone",
    "logs that differ stay so",
    "a batch sent again is logged again",
    "a piece is not split at the edge",
    "predictions don't bound final",
    "a Confirm at hand counts as given",
)
"""Each is found within a few seeds; `make mutants` finds the others too."""

SCHEDULES = 1_500


@pytest.mark.parametrize("first", chunks(SEEDS))
def test_seeds_from(first: int) -> None:
    reports = [simulate(seed) for seed in range(first, first + IN_ONE_TEST)]
    failed = [BELFAST.told(report) for report in reports if report.failed]
    assert not failed, "\n".join(failed)
    assert sum(report.records for report in reports) > 20 * IN_ONE_TEST


def trace_of(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "anabranch_sim.belfast", str(seed), "--digest"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()[-1]


@pytest.mark.parametrize("seed", [7, 88])
def test_the_same_seed_gives_the_same_trace_under_any_hash_seed(seed: int) -> None:
    first = trace_of(seed, "1")
    assert first.startswith("trace")
    assert trace_of(seed, "1") == first
    assert trace_of(seed, "2") == first


def test_another_seed_gives_another_trace() -> None:
    assert trace_of(7, "1") != trace_of(8, "1")


def test_the_rules_that_are_broken_are_different_ones() -> None:
    assert len(SPECULATIONS) >= 25
    assert len({breakage.name for breakage in SPECULATIONS}) == len(SPECULATIONS)


@pytest.mark.parametrize(
    "breakage",
    [each for each in SPECULATIONS if each.name in QUICK],
    ids=lambda breakage: breakage.name,
)
def test_a_broken_rule_is_found(breakage: Breakage) -> None:
    found = hunt(breakage, 60, simulate)
    assert found.seed is not None, f"{found.mutant} survived {found.seeds} seeds"


@pytest.mark.parametrize("quotas", [(1, 1), (1, 2)])
def test_whatever_the_order_two_windows_of_a_small_deployment_come_right(
    quotas: tuple[int, int],
) -> None:
    found = explore(quotas, SCHEDULES)
    assert not found.violation, f"{found.violation} by {found.schedule}"
    assert found.complete >= 1


def test_a_broken_rule_is_found_among_all_orders() -> None:
    with broken(BY_ORDER):
        found = explore((1, 2), SCHEDULES)
    assert found.violation
