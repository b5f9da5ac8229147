"""Every interleaving of small lazy fronts: the protocol holds, and needs each of its rules."""

import pytest
from tests.models.lazy_front import Bounds, Broken, explore

ONE_AFTER_THE_OTHER = (1, 2)
CONCURRENT = (1, 3)


def check_nothing_goes_wrong(bounds: Bounds) -> None:
    states, found = explore(bounds)
    assert found is None, "\n".join([found.why, *found.trace])
    assert states > 1_500, "little was explored"


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(ONE_AFTER_THE_OTHER),
        Bounds(ONE_AFTER_THE_OTHER, forks=1),
        Bounds(ONE_AFTER_THE_OTHER, losses=2),
        Bounds(CONCURRENT),
    ],
)
def test_nothing_goes_wrong(bounds: Bounds) -> None:
    check_nothing_goes_wrong(bounds)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(ONE_AFTER_THE_OTHER, views=2),
        Bounds(ONE_AFTER_THE_OTHER, losses=2, forks=1),
        Bounds((1,), views=2, losses=2, forks=1),
        Bounds(CONCURRENT, forks=1),
        Bounds(CONCURRENT, losses=2),
    ],
)
def test_nothing_goes_wrong_with_more_of_everything(bounds: Bounds) -> None:
    check_nothing_goes_wrong(bounds)


NEEDS = {
    Broken.LIFE: Bounds(ONE_AFTER_THE_OTHER, losses=1),
    Broken.LOSS: Bounds(ONE_AFTER_THE_OTHER, losses=1),
    Broken.UNKNOWN: Bounds(ONE_AFTER_THE_OTHER, losses=2),
    Broken.PARK: Bounds(ONE_AFTER_THE_OTHER, forks=1),
    Broken.PARKED: Bounds(ONE_AFTER_THE_OTHER, forks=1),
}
"""What must happen for a rule to matter."""


@pytest.mark.parametrize("rule", Broken)
def test_a_rule_is_needed(rule: Broken) -> None:
    _, found = explore(NEEDS.get(rule, Bounds(ONE_AFTER_THE_OTHER)), rule)
    assert found is not None, f"nothing breaks without the rule that forbids that {rule.value}"
