"""Why an append waits for all members of its view (docs/decisions/0065)."""

import pytest
from tests.models.supermajority import Group, World, supermajority, worst

RECORDS = (1, 2, 3)


@pytest.mark.parametrize("failures", [1, 2])
def test_with_all_members_every_view_change_can_keep_real_time_order(failures: int) -> None:
    assert worst(Group(failures, 2 * failures + 1), RECORDS) is None


def test_a_supermajority_of_three_is_all_of_them() -> None:
    assert supermajority(1) == 3


def test_a_supermajority_of_five_leaves_logs_that_no_order_suits() -> None:
    """Each record is behind another in two of three logs, in a ring. Whichever of the three was
    sent when the one before it had been acknowledged, these followers can't know.
    """
    assert supermajority(2) == 4
    found = worst(Group(2, supermajority(2)), RECORDS)
    assert found is not None
    logs, worlds = found
    assert set(logs) == {(1, 2, 3), (2, 3, 1), (3, 1, 2)}
    assert worlds == [World(1, 2), World(2, 3), World(3, 1)]


@pytest.mark.parametrize("failures", [1, 2])
def test_any_number_below_all_is_too_few(failures: int) -> None:
    for needed in range(failures + 1, 2 * failures + 1):
        assert worst(Group(failures, needed), RECORDS) is not None
