"""Every interleaving of small Erwin logs: the protocol holds, and needs each of its rules."""

import pytest
from tests.models.erwin import Bounds, Broken, explore

ONE_AFTER_THE_OTHER = (1, 2)
CONCURRENT = (1, 3)


@pytest.mark.parametrize(
    ("records", "views"), [(ONE_AFTER_THE_OTHER, 1), (ONE_AFTER_THE_OTHER, 2), (CONCURRENT, 1)]
)
def test_nothing_goes_wrong(records: tuple[int, ...], views: int) -> None:
    states, found = explore(Bounds(records, views))
    assert found is None, "\n".join([found.why, *found.trace])
    assert states > 5_000, "little was explored"


@pytest.mark.parametrize("rule", Broken)
def test_a_rule_is_needed(rule: Broken) -> None:
    needs_two_orders = rule in {Broken.FENCE, Broken.BASE}
    records = CONCURRENT if needs_two_orders else ONE_AFTER_THE_OTHER
    _, found = explore(Bounds(records, 1), rule)
    assert found is not None, f"nothing breaks without the rule that forbids that {rule.value}"
