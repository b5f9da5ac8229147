"""The simulator's own promise, before any seed is believed: the same seed gives the same trace."""

import os
import subprocess
import sys

import pytest


def trace_of(seed: int, hash_seed: str) -> str:
    """The hash of every event of one run, made by an interpreter of its own."""
    command = [sys.executable, "-m", "anabranch_sim", str(seed), "--digest"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize("seed", [7, 1332])
def test_the_same_seed_gives_the_same_trace_under_any_hash_seed(seed: int) -> None:
    first = trace_of(seed, "1")
    assert "trace" in first
    assert trace_of(seed, "1") == first
    assert trace_of(seed, "2") == first


def test_another_seed_gives_another_trace() -> None:
    assert trace_of(7, "1").splitlines()[-1] != trace_of(8, "1").splitlines()[-1]
