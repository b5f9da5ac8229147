"""Operators under faults; `make simulate-operator` runs any number."""

import os
import subprocess
import sys

import pytest
from tests.simulation.chunks import IN_ONE_TEST, chunks

from anabranch_sim.bolt.mutants import Breakage
from anabranch_sim.kubernetes.__main__ import OPERATORS
from anabranch_sim.kubernetes.mutants import MISRULES
from anabranch_sim.kubernetes.simulation import simulate
from anabranch_sim.mutants import hunt

SEEDS = 1_000

QUICK = (
    "logs without resources stay",
    "what was to end is released",
    "a fork is made for nobody",
    "the lease isn't looked at",
    "two brokers go at once",
    "a gate's Job needn't end",
    "what is so is written again",
    "pods go before their shard has left",
    "the leader is rolled before others",
    "two replicas of a shard are rolled at once",
)
"""Each is found within a few seeds; `make mutants` finds the others too."""


@pytest.mark.parametrize("first", chunks(SEEDS))
def test_seeds_from(first: int) -> None:
    reports = [simulate(seed) for seed in range(first, first + IN_ONE_TEST)]
    failed = [OPERATORS.told(report) for report in reports if report.failed]
    assert not failed, "\n".join(failed)
    assert sum(report.writes for report in reports) > 20 * IN_ONE_TEST


def trace_of(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "anabranch_sim.kubernetes", str(seed), "--digest"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()[-1]


@pytest.mark.parametrize("seed", [7, 20, 29])
def test_the_same_seed_gives_the_same_trace_under_any_hash_seed(seed: int) -> None:
    first = trace_of(seed, "1")
    assert first.startswith("trace")
    assert trace_of(seed, "1") == first
    assert trace_of(seed, "2") == first


def test_another_seed_gives_another_trace() -> None:
    assert trace_of(7, "1") != trace_of(8, "1")


def test_the_rules_that_are_broken_are_different_ones() -> None:
    assert len(MISRULES) >= 20
    assert len({breakage.name for breakage in MISRULES}) == len(MISRULES)


@pytest.mark.parametrize(
    "breakage",
    [each for each in MISRULES if each.name in QUICK],
    ids=lambda breakage: breakage.name,
)
def test_a_broken_rule_is_found(breakage: Breakage) -> None:
    found = hunt(breakage, 100, simulate)
    assert found.seed is not None, f"{found.mutant} survived {found.seeds} seeds"
