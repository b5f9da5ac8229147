"""Extents whose sums differ are found with few questions."""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.records.set_sum import combined
from anabranch_spark.audit.location import QUESTIONS_MAX, Weighed, differing
from anabranch_spark.audit.portions import Range

RECORDS = 3


class Kept(NamedTuple):
    sum: int
    summed: int
    unsummed: Sequence[Range]


class Keeper:
    """A service that keeps these sums of extents of three records."""

    def __init__(self, sums: list[int], joined: int = 0) -> None:
        self.sums, self.joined = sums, joined
        self.asked = 0

    def range_sum(self, start: int, end: int) -> Kept:
        self.asked += 1
        low, high = start // RECORDS, end // RECORDS
        unsummed: list[Range] = []
        if 0 < low < self.joined or (low < self.joined and high < self.joined):
            unsummed = [(start, min(end, self.joined * RECORDS))]
            low = min(high, self.joined)
        return Kept(combined(self.sums[low:high]), (high - low) * RECORDS, unsummed)


def weighed(sums: list[int]) -> list[Weighed]:
    return [Weighed(turn * RECORDS, each, RECORDS) for turn, each in enumerate(sums)]


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=40), st.data())
def test_every_extent_that_differs_is_found_and_no_other(
    sums: list[int], data: st.DataObject
) -> None:
    # One that differs can't make up for another: all are changed by powers of two.
    wrong = sorted(data.draw(st.sets(st.integers(0, len(sums) - 1), max_size=5)))
    changed = [*sums]
    for power, turn in enumerate(wrong):
        changed[turn] += 1 << power + 10
    found = differing(weighed(changed), len(sums) * RECORDS, Keeper(sums).range_sum)
    expected = [(turn * RECORDS, (turn + 1) * RECORDS) for turn in wrong]
    assert [*found] == (expected or [(0, len(sums) * RECORDS)])


def test_one_in_a_hundred_thousand_takes_a_few_dozen_questions() -> None:
    sums = [7] * 100_000
    changed = [*sums]
    changed[77_777] = 8
    keeper = Keeper(sums)
    found = [*differing(weighed(changed), 300_000, keeper.range_sum)]
    assert found == [(77_777 * RECORDS, 77_778 * RECORDS)]
    assert keeper.asked < 40


def test_extents_that_were_joined_since_are_named_together() -> None:
    sums = [1, 2, 3, 4, 5, 6, 7, 8]
    changed = [1, 9, 3, 4, 5, 6, 7, 8]
    found = [*differing(weighed(changed), 24, Keeper(sums, joined=4).range_sum)]
    assert found == [(0, 12)]


def test_questions_are_bounded_and_what_is_left_is_named_whole() -> None:
    sums = [1] * 4_000
    keeper = Keeper(sums)
    found = [*differing(weighed([2] * 4_000), 12_000, keeper.range_sum)]
    assert keeper.asked <= QUESTIONS_MAX + 2
    assert (found[0][0], found[-1][1]) == (0, 12_000)
    assert [end for _, end in found[:-1]] == [first for first, _ in found[1:]]
