"""Seeds of fault campaigns: fixed, so that a change is judged by the same ones everywhere."""

import os

import pytest

SEEDS = tuple(int(seed) for seed in os.environ.get("FAULT_SEEDS", "1").split(","))
"""More for the night: `FAULT_SEEDS=2,3,4 .venv/bin/python -m pytest tests/integration/faults`."""


@pytest.fixture(params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    return request.param
