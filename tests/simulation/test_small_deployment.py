"""Two windows of a Belfast deployment so small that every order of events can be tried."""

import pytest

from anabranch_sim.belfast.exhaustive import explore
from anabranch_sim.belfast.mutants import BY_ORDER
from anabranch_sim.world.mutants import broken

SCHEDULES = 1_500


@pytest.mark.parametrize("quotas", [(1, 2), pytest.param((1, 1), marks=pytest.mark.nightly)])
def test_whatever_the_order_two_windows_of_a_small_deployment_come_right(
    quotas: tuple[int, int],
) -> None:
    found = explore(quotas, SCHEDULES)
    assert not found.violation, f"{found.violation} by {found.schedule}"
    assert found.complete >= 1


def test_a_broken_rule_is_found_among_all_orders() -> None:
    with broken(BY_ORDER) as planted:
        found = explore((1, 2), SCHEDULES)
    assert found.violation
    assert not planted.unreached
