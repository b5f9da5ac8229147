"""How many of a shard's places hold records, against a list of all places."""

import random

import pytest

from anabranch.core.belfast.shard.record_counts import Tally
from anabranch.core.replication.entries import Item

STRETCHES = 5_000


@pytest.mark.parametrize("seed", range(10))
def test_a_tally_counts_records_and_not_noops(seed: int) -> None:
    chance = random.Random(seed)
    tally, real = Tally(), list[bool]()
    start = counted = 0
    for _ in range(200):
        if real and chance.random() < 0.1:
            to = chance.randint(max(0, len(real) - 9), len(real))
            tally.cut_back(start + to)
            del real[to:]
        if chance.random() < 0.02:
            counted += sum(real)
            noops = tally.noops_below(start + len(real))
            start, real = start + chance.randint(0, len(real) + 99), []
            tally.skip(start)
            assert tally.noops_below(start) == noops
        count, batch = chance.randint(1, 4), chance.choice([b"", b"x"])
        tally.logged(Item(start + len(real), count, batch))
        real += [bool(batch)] * count
        if chance.random() < 0.1:
            kept = Tally()
            kept.restore(tally.image())
            tally = kept
        place = chance.randint(0, len(real))
        assert tally.below(start + place) == counted + sum(real[:place])
        assert tally.records == counted + sum(real)
        assert tally.last == start + len(real)


def by_turns() -> Tally:
    """A record and a no-op, again and again: as many stretches as there can be."""
    tally = Tally()
    for nth in range(STRETCHES):
        tally.logged(Item(nth, 1, b"x" if nth % 2 == 0 else b""))
    return tally


@pytest.mark.parametrize("below", [0, 1, 999, 3_000, STRETCHES])
def test_what_is_forgotten_costs_nothing_and_what_follows_is_counted_alike(below: int) -> None:
    tally = by_turns()
    tally.forget(below)
    for place in range(below, STRETCHES + 1):
        assert tally.below(place) == (place + 1) // 2
        assert tally.noops_below(place) == place // 2
    left = len(tally.image().stretches)
    assert left <= STRETCHES - below + 1_024


def test_places_are_forgotten_many_at_a_time() -> None:
    """Every cut forgets: taking one stretch off a long list each time would be slow."""
    tally = by_turns()
    tally.forget(1_000)
    assert len(tally.image().stretches) == STRETCHES
    tally.forget(2_000)
    assert len(tally.image().stretches) == STRETCHES - 2_000


def test_no_records_are_counted_twice_when_a_log_goes_on_elsewhere() -> None:
    tally = Tally()
    tally.logged(Item(0, 5, b"x"))
    tally.skip(100)
    tally.logged(Item(100, 2, b""))
    tally.logged(Item(102, 3, b"x"))
    assert tally.records == 8
    assert tally.below(102) == 5
    assert tally.noops_below(105) == 2
    tally.cut_back(103)
    assert tally.records == 6
