"""What tests of pools share."""

import pytest
from tests.unit.operator.broker_pool import PoolHarness


@pytest.fixture
def harness() -> PoolHarness:
    """A pool of two brokers at rest, and nothing was asked of it yet."""
    made = PoolHarness()
    made.settle()
    made.office.done.clear()
    return made
