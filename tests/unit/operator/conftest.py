"""What tests of pools share."""

import pytest
from tests.unit.operator.harbour import Harbour


@pytest.fixture
def harbour() -> Harbour:
    """A pool of two brokers at rest, and nothing was asked of it yet."""
    made = Harbour()
    made.settle()
    made.office.done.clear()
    return made
