"""What tests of SequencerSets and ShardGroups share."""

import pytest
from tests.unit.operator.belfast_log import BelfastHarness


@pytest.fixture
def harness() -> BelfastHarness:
    """Three sequencers and two shards of two copies, at rest."""
    made = BelfastHarness()
    made.settle()
    made.office.done.clear()
    return made
