"""Rates of logs, from two looks at them."""

from tests.unit.cli.render.test_tree import described

from anabranch.cli.render.rates import LogRates, Look, Rated


def rated(found: list[Rated]) -> list[tuple[str, float | None]]:
    return [(each.look.log.name, each.records_per_s) for each in found]


def test_a_rate_is_what_came_since_the_last_look() -> None:
    rates, a, b = LogRates(), described(1, "a", None), described(2, "b", None)
    first = list(rates.step([Look(a, 5), Look(b, 0)], 10.0))
    assert rated(first) == [("a", None), ("b", None)]
    then = list(rates.step([Look(a, 5), Look(b, 30)], 12.0))
    assert rated(then) == [("b", 15.0), ("a", 0.0)]
    again = list(rates.step([Look(b, 30)], 12.0))
    assert rated(again) == [("b", None)]
    assert again[0].document()["tail"] == 30


def test_a_log_whose_tail_is_not_known_has_no_rate_until_it_is_known_twice() -> None:
    rates, a = LogRates(), described(1, "a", None)
    looks = (Look(a, 5), Look(a, None, "a is away"), Look(a, 7), Look(a, 9))
    found = [next(rates.step([look], float(at))) for at, look in enumerate(looks)]
    assert [each.records_per_s for each in found] == [None, None, None, 2.0]
    assert found[1].document()["obstacle"] == "a is away"
