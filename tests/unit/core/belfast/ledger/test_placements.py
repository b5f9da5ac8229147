"""Where a shard's records are, against a merge done by hand."""

import random
from itertools import pairwise

import pytest

from anabranch.core.belfast.ledger.decisions import Admit, ChangeView, CutFreely, CutTo, OpenWindow
from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.belfast.ledger.placements import Placements, Row, row_of, row_of_run
from anabranch.core.belfast.ledger.windows import Mode


def by_hand(ledger: Ledger, shard: int, merged: dict[int, int], position: int) -> int:
    """One slot after the other through the last window; says where it ends."""
    window = ledger.windows[-1]
    nth = {seat.shard: seat.base for seat in window.seats}
    for _ in range(window.rounds):
        for seat in sorted(window.seats, key=lambda each: (each.group, each.shard)):
            for _ in range(seat.quota):
                if seat.shard == shard:
                    merged[nth[shard]] = position
                nth[seat.shard] += 1
                position += 1
    return position


@pytest.mark.parametrize("seed", range(20))
def test_positions_are_those_of_a_merge(seed: int) -> None:
    """Spec 12, 1: random quotas, zero quotas, windows that continue each other."""
    chance = random.Random(seed)
    ledger, places = Ledger(), Placements()
    ledger.apply([Admit(name, (name,), 0) for name in "abc"])
    merged: dict[int, int] = {}
    position, quotas = 0, (2, 1, 3)
    for number in range(12):
        if chance.random() < 0.6:
            quotas = (chance.choice([0, 1, 2, 5]), chance.choice([0, 2]), chance.choice([0, 3]))
        taken = tuple((shard, quota) for shard, quota in enumerate(quotas) if quota)
        groups = chance.choice([1, 2])
        ledger.apply([OpenWindow(number, Mode.STEADY, chance.choice([1, 3]), groups, taken)])
        position = by_hand(ledger, 0, merged, position)
        window = ledger.windows[-1]
        assert position == window.end
        if 0 in window.by_shard:
            places.add(row_of(window, window.by_shard[0], window.rounds))
    assert places.end == len(merged)
    for local, place in merged.items():
        assert places.position(local) == place
        assert places.below(place) == local
        assert places.below(place + 1) == local + 1
    for _ in range(50):
        low = chance.randint(0, len(merged))
        high = chance.randint(low, len(merged))
        runs = places.runs(low, high)
        found = [run.first + nth for run in runs for nth in range(run.count)]
        assert found == [merged[local] for local in range(low, high)]
        assert all(run.end < after.first for run, after in pairwise(runs))
    cut = chance.randint(0, len(merged))
    assert places.cut_back(cut) == len(merged) - cut
    assert places.end == cut
    assert places.position(cut) is None


def test_windows_that_continue_each_other_are_one_row() -> None:
    ledger, places = Ledger(), Placements()
    ledger.apply([Admit(name, (name,), 0) for name in "ab"])
    for number in range(100):
        ledger.apply([OpenWindow(number, Mode.STEADY, 10, 1, ((0, 2), (1, 3)))])
        window = ledger.windows[-1]
        places.add(row_of(window, window.by_shard[1], window.rounds))
    assert len(places.rows) == 1
    places.forget(10)
    assert places.position(11) == 5 * 3 + 2 + 2


def test_cuts_of_free_will_are_rows_too() -> None:
    ledger, places = Ledger(), Placements()
    ledger.apply([Admit(name, (name,), 0) for name in "ab"])
    ledger.apply([OpenWindow(0, Mode.FREE_WILL, 10, 1, ((0, 1), (1, 1)))])
    ledger.apply([CutFreely(0, (2, 3)), CutFreely(0, (2, 7))])
    for shard, local, run in ledger.placements:
        if shard == 1:
            places.add(row_of_run(local, run))
    assert [places.position(local) for local in range(7)] == [2, 3, 4, 5, 6, 7, 8]
    assert len(places.rows) == 1


def test_what_isnt_known_is_learned_of_others() -> None:
    ledger, all_of_it, places = Ledger(), Placements(), Placements()
    ledger.apply([Admit(name, (name,), 0) for name in "ab"])
    for number in range(9):
        quota = 1 + number // 3
        ledger.apply([OpenWindow(number, Mode.STEADY, 2, 1, ((0, quota), (1, 1)))])
        window = ledger.windows[-1]
        row = row_of(window, window.by_shard[0], window.rounds)
        all_of_it.add(row)
        if number < 2 or number > 6:
            places.add(row)
    hole = places.missing(places.end)
    assert hole is not None
    assert hole == (4, 24)
    part = all_of_it.part(*hole, count_max=2)
    assert [(row.base, row.end) for row in part] == [(0, 6), (6, 18)]
    places.learn(part, min(hole[1], part[-1].end))
    assert places.missing(places.end) == (18, 24)
    places.learn(all_of_it.part(18, 24, 100), 24)
    assert places.missing(places.end) is None
    assert places.rows == all_of_it.rows
    assert places.missing(99) == (places.end, 99)


class Slots:
    """One place after the other: where it is, and whether that is known."""

    def __init__(self) -> None:
        self.true: list[int] = []
        self.known: list[bool] = []
        self.floor = 0

    def missing(self, upto: int) -> tuple[int, int] | None:
        for low in range(self.floor, upto):
            if low >= len(self.known) or not self.known[low]:
                known = (each for each in range(low, len(self.known)) if self.known[each])
                return low, min(upto, next(known, upto))
        return None

    def learn(self, low: int, high: int) -> None:
        self.known[low:high] = [True] * (high - low)

    def cut_back(self, to: int) -> None:
        del self.true[to:], self.known[to:]


def next_row(slots: Slots, chance: random.Random) -> Row:
    """A cut of free will, or some rounds of a window."""
    first = (slots.true[-1] if slots.true else 0) + chance.randint(1, 3)
    quota = chance.choice([1, 1, 2, 3])
    stride = quota if quota == 1 else quota + chance.randint(0, 2)
    return Row(
        base=len(slots.true),
        count=quota * chance.choice([1, 2, 5]),
        quota=quota,
        stride=stride,
        first=first,
    )


def agree(places: Placements, slots: Slots, chance: random.Random) -> None:
    for local in range(slots.floor, len(slots.true) + 2):
        known = local < len(slots.true) and slots.known[local]
        assert places.position(local) == (slots.true[local] if known else None)
    upto = chance.randint(slots.floor, len(slots.true) + 2)
    hole = slots.missing(upto)
    assert places.missing(upto) == hole
    end = places.known
    assert places.missing(end) is None
    assert end >= slots.floor
    assert not (end < len(slots.known) and slots.known[end])
    low = chance.randint(slots.floor, upto)
    if hole is None or low >= hole[1]:
        known = slots.missing(max(low, upto)) is None
    else:
        known = upto <= hole[0]
    if known:
        runs = places.runs(low, upto)
        found = [run.first + nth for run in runs for nth in range(run.count)]
        assert found == slots.true[low:upto]
    part = places.part(low, upto, 99)
    found = part[-1].end if part else low
    assert all(slots.known[low : min(found, upto)])
    assert not (found < min(upto, len(slots.known)) and slots.known[found])


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_learned_forgotten_and_void_what_is_known_is_where_it_is(seed: int) -> None:
    chance = random.Random(seed)
    slots, places, all_of_it = Slots(), Placements(), Placements()
    for _ in range(120):
        match chance.choice(["add", "add", "miss", "learn", "learn", "cut", "forget"]):
            case "add" | "miss" as what:
                row = next_row(slots, chance)
                all_of_it.add(row)
                slots.true += [row.position(each) for each in range(row.base, row.end)]
                slots.known += [what == "add"] * row.count
                if what == "add":
                    places.add(row)
            case "learn":
                hole = slots.missing(len(slots.true))
                part = all_of_it.part(*hole, chance.choice([1, 2, 9])) if hole else []
                if hole and part:
                    upto = min(part[-1].end, hole[1])
                    slots.learn(hole[0], upto)
                    places.learn(part, upto)
            case "cut" if slots.true and chance.random() < 0.4:
                row = all_of_it.rows[-1]
                rounds = row.count // row.quota
                to = max(slots.floor, row.base + chance.randint(0, rounds) * row.quota)
                voided = places.cut_back(to)
                assert voided == sum(slots.known[to:])
                all_of_it.cut_back(to)
                slots.cut_back(to)
            case "forget" if chance.random() < 0.4:
                slots.floor = min(len(slots.true), slots.floor + chance.randint(0, 9))
                places.forget(slots.floor)
            case _:
                pass
        agree(places, slots, chance)


def test_ten_thousands_of_rows_are_learned_as_fast_as_they_are_told() -> None:
    """Of free will each cut is a row: a comparison with all that is known would take hours."""
    count, told = 120_000, 4_096
    rows = [Row(base=nth * 3, count=3, quota=1, stride=1, first=nth * 5) for nth in range(count)]
    all_of_it, places = Placements(), Placements()
    for nth, row in enumerate(rows):
        all_of_it.add(row)
        if nth % 30_000 > 20_000:
            places.add(row)
    while (hole := places.missing(places.end)) is not None:
        part = all_of_it.part(*hole, told)
        places.learn(part, min(hole[1], part[-1].end))
        assert places.missing(hole[1]) != hole
    assert places.rows == all_of_it.rows


def test_of_a_shard_that_failed_only_what_was_cut_keeps_its_place() -> None:
    ledger, places = Ledger(), Placements()
    ledger.apply([Admit(name, (name,), 0) for name in "ab"])
    ledger.apply([OpenWindow(0, Mode.STEADY, 5, 1, ((0, 2), (1, 1))), CutTo(window=0, cut=2)])
    window = ledger.windows[-1]
    places.add(row_of(window, window.by_shard[0], window.rounds))
    ledger.apply([ChangeView(view=1, failed=(0,), stand_in=1)])
    member = ledger.members[0]
    assert (member.placed, member.void_view, member.void_from, member.void_upto) == (4, 1, 6, 15)
    assert places.cut_back(member.placed) == 6
    assert places.below(ledger.horizon) == member.placed
