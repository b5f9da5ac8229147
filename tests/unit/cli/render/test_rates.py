"""Rates of logs, from two looks at them."""

from tests.unit.cli.render.test_tree import described

from anabranch.cli.render.rates import LogRates
from anabranch.cli.service.engines import Bounds


def test_a_rate_is_what_came_since_the_last_look() -> None:
    rates, a, b = LogRates(), described(1, "a", None), described(2, "b", None)
    first = list(rates.step([(a, Bounds(0, 5, 5)), (b, Bounds(0, 0, 0))], 10.0))
    assert [(each.log.name, each.records_per_s) for each in first] == [("a", None), ("b", None)]
    then = list(rates.step([(a, Bounds(0, 5, 5)), (b, Bounds(0, 30, 30))], 12.0))
    assert [(each.log.name, each.records_per_s) for each in then] == [("b", 15.0), ("a", 0.0)]
    again = list(rates.step([(b, Bounds(0, 30, 30))], 12.0))
    assert [(each.log.name, each.records_per_s) for each in again] == [("b", None)]
    assert again[0].document()["tail"] == 30
