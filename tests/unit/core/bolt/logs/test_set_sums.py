"""Set sums of ranges: which records are in them, and which ranges are said not to be."""

from __future__ import annotations

import pytest

from anabranch.core.bolt.logs import set_sums
from anabranch.core.bolt.protocol.commands import Batch, Promote, Squash, Trim
from anabranch.core.bolt.protocol.compaction import Swapped
from anabranch.core.bolt.protocol.set_sums import ReadSetSum, SetSum
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.set_sum import UNKNOWN, combined
from anabranch.core.types import LogId
from anabranch_sim.bolt.batch_results import without_sums
from anabranch_sim.bolt.twin_questions import compare_sum
from anabranch_sim.bolt.twins import Twins


@pytest.fixture
def twins() -> Twins:
    return Twins(Limits())


def whole(twins: Twins, log: LogId) -> SetSum:
    of = twins.naive.logs[log]
    return compare_sum(twins, log, of.start, of.settled())


def unsummed_commit(twins: Twins, log: LogId, *counts: int) -> None:
    """As by a broker of an earlier version."""
    laid = twins.laid_out([(log, [Batch(10 * count, count) for count in counts])])
    twins.apply(without_sums(laid))


def test_parts_add_up_to_the_whole_however_extents_are_cut(twins: Twins) -> None:
    log = twins.root("orders")
    for _ in range(6):
        twins.append(log, 2, 1)
    before = whole(twins, log)
    assert (before.summed, before.unsummed) == (18, [])
    parts = [compare_sum(twins, log, first, first + 6) for first in (0, 6, 12)]
    assert combined(part.sum for part in parts) == before.sum
    assert twins.swap(twins.copied(log, 0, [4, 2])) == Swapped(4)
    assert whole(twins, log) == before, "compaction moves no sum"
    twins.restart()
    assert whole(twins, log) == before


def test_a_fork_has_its_ancestors_stretches_and_its_own(twins: Twins) -> None:
    """Also where compaction has joined what lay on both sides of its own records."""
    log = twins.root("orders")
    for _ in range(2):
        twins.append(log, 3)
    fork = twins.cfork(log, "fork")
    deeper = twins.cfork(fork, "deeper")
    for _ in range(2):
        twins.append(fork, 1, 1)
        twins.append(log, 2)
        twins.append(deeper, 1)
    before = [whole(twins, each) for each in (log, fork, deeper)]
    assert [each.unsummed for each in before] == [[], [], []]
    twins.swap(twins.copied(log, 0, [4]))
    assert [whole(twins, each) for each in (log, fork, deeper)] == before
    # A range that begins between two records of one extent leaves out what it has of the extent.
    part = compare_sum(twins, deeper, 7, twins.naive.logs[deeper].settled())
    assert part.unsummed
    assert part.summed == part.records - sum(end - first for first, end in part.unsummed)


def test_a_promotion_adds_the_forks_sum_to_its_parents(twins: Twins) -> None:
    log = twins.root("orders")
    twins.append(log, 3)
    fork = twins.cfork(log, "fork", promotable=True)
    for _ in range(3):
        twins.append(fork, 2, 2)
        twins.append(log, 1)
    twins.apply(Promote(fork))
    assert whole(twins, log).unsummed == []
    assert whole(twins, log).summed == 18


def test_what_nobody_summed_is_named_and_never_guessed(twins: Twins) -> None:
    log = twins.root("orders")
    twins.append(log, 2)
    unsummed_commit(twins, log, 1, 1)
    unsummed_commit(twins, log, 3)
    twins.append(log, 4)
    fork = twins.cfork(log, "fork")
    twins.append(fork, 1)
    twins.append(log, 1)
    assert whole(twins, fork).unsummed == [(2, 7)]
    assert whole(twins, fork).summed == 8
    twins.swap(twins.copied(log, 0, [2]))
    assert whole(twins, fork).unsummed == [(4, 7)], "what a copy verified has a sum from then on"


def test_a_part_of_an_extent_that_an_orphan_took_over_is_not_summed(twins: Twins) -> None:
    log = twins.root("orders")
    fork = twins.cfork(log, "fork")
    for _ in range(3):
        twins.append(fork, 2, 2)
    past = twins.sfork(fork, "past", past=5)
    twins.append(past, 1)
    assert whole(twins, past).unsummed == [(4, 6)], "the fork's point cuts an extent"
    twins.apply(Squash(fork))
    assert whole(twins, past).unsummed == [(4, 6)]
    twins.apply(Trim(past, 1))
    assert whole(twins, past).unsummed == [(1, 6)], "so does the beginning, once it is trimmed"


def test_a_batch_that_was_committed_before_leaves_the_others_sums(twins: Twins) -> None:
    log = twins.root("orders")
    first = Batch(10, 1, 7, 0, 0)
    twins.commit([(log, [first])])
    again = [Batch(30, 3), first, Batch(20, 2), Batch(40, 4)]
    twins.commit([(log, again)])
    twins.commit([(log, again)])
    found = whole(twins, log)
    assert (found.summed, found.unsummed) == (19, [])


@pytest.mark.parametrize("extents_max", [1, 3, 7])
def test_a_long_range_is_summed_by_page(
    twins: Twins, monkeypatch: pytest.MonkeyPatch, extents_max: int
) -> None:
    log = twins.root("orders")
    fork = twins.cfork(log, "fork")
    for turn in range(12):
        twins.append(fork if turn % 3 else log, 2)
    expected = whole(twins, fork)
    monkeypatch.setattr(set_sums, "EXTENTS_MAX", extents_max)
    pages: list[SetSum] = []
    while not pages or pages[-1].end < 24:
        pages.append(compare_sum(twins, fork, pages[-1].end if pages else 0, 24))
    assert len(pages) >= 12 // (extents_max + 1)
    assert combined(page.sum for page in pages) == expected.sum
    assert sum(page.summed for page in pages) == expected.summed, "no page cuts an extent"


def test_an_answer_names_so_many_ranges_and_ends_there(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_sums, "RANGES_MAX", 2)
    log = twins.root("orders")
    fork = twins.cfork(log, "fork")
    for _ in range(5):
        unsummed_commit(twins, log, 2)
        twins.append(fork, 1)
    first = compare_sum(twins, fork, 0, 15)
    assert (first.end, first.unsummed) == (5, [(0, 2), (3, 5)])
    assert compare_sum(twins, fork, 5, 15).end == 11


def test_a_range_outside_of_what_is_settled_is_refused(twins: Twins) -> None:
    log = twins.root("orders")
    twins.append(log, 3)
    twins.cfork(log, "fork", promotable=True)
    twins.append(log, 3)
    twins.apply(Trim(log, 1))
    for start, end in ((0, 3), (1, 4), (4, None), (3, 2)):
        assert isinstance(twins.state.answer(ReadSetSum(log, start, end)), Refused)
    assert compare_sum(twins, log, 1, 3).sum == UNKNOWN, "the only extent is cut"
    assert compare_sum(twins, log, 3, 3).records == 0
