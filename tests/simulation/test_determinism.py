"""The simulator's own promise, before any seed is believed: the same seed gives the same trace."""

import os
import subprocess
import sys
from functools import cache

import pytest


@cache
def trace_of(kind: str, seed: int, hash_seed: str) -> str:
    """The hash of every event of one run, made by an interpreter of its own."""
    command = [sys.executable, "-m", "anabranch_sim", kind, str(seed), "--digest"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("bolt", 7),
        pytest.param("bolt", 1332, marks=pytest.mark.nightly),
        ("belfast", 7),
        pytest.param("belfast", 88, marks=pytest.mark.nightly),
        ("erwin", 7),
        pytest.param("erwin", 8, marks=pytest.mark.nightly),
        pytest.param("operator", 7, marks=pytest.mark.nightly),
        ("consensus", 7),
        ("operator", 20),
        pytest.param("operator", 29, marks=pytest.mark.nightly),
    ],
)
def test_the_same_seed_gives_the_same_trace_under_any_hash_seed(kind: str, seed: int) -> None:
    first = trace_of(kind, seed, "1")
    assert first.startswith("trace")
    assert trace_of(kind, seed, "2") == first


@pytest.mark.parametrize("kind", ["bolt", "belfast", "erwin", "consensus", "operator"])
def test_another_seed_gives_another_trace(kind: str) -> None:
    assert trace_of(kind, 7, "1") != trace_of(kind, 8, "1")
