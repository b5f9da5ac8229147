"""SwapExtents: what it changes, what it doesn't, and what it refuses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.protocol.commands import (
    Batch,
    Entry,
    Promote,
    RegisterBroker,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.compaction import Copied, Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.queries import Resolve, Resolved
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import NEVER, LogId
from anabranch_sim.bolt.twin_questions import compare_two
from anabranch_sim.bolt.twins import BROKER, Twins, portrait


@pytest.fixture
def twins() -> Twins:
    return Twins(Limits())


def rows(twins: Twins, log: LogId) -> list[tuple[int, int]]:
    """First position and records of each extent of the log's own."""
    index = twins.state.replica.forest.logs[log].index
    return list(zip(index.first, index.counts(), strict=True))


def garbage(twins: Twins) -> set[int]:
    return {*twins.state.replica.references.garbage}


def filled(twins: Twins, extents: int = 4) -> LogId:
    log = twins.root("orders")
    for _ in range(extents):
        twins.append(log, 1, 2)
    return log


def told(twins: Twins, command: SwapExtents) -> object:
    """By the state machine alone, as a message come late would be."""
    return twins.state.apply(Entry(twins.now, b"", command))


def test_neighbours_become_one_extent_with_the_same_records(twins: Twins) -> None:
    log = filled(twins)
    swapped = twins.swap(twins.copied(log, 0, [3, 1]))
    assert swapped == Swapped(2)
    assert rows(twins, log) == [(0, 9), (9, 3)]
    twins.append(log, 5)
    assert rows(twins, log) == [(0, 9), (9, 3), (12, 5)]
    twins.compare()


def test_what_was_copied_is_garbage_then(twins: Twins) -> None:
    log = filled(twins)
    old = {*twins.state.replica.forest.logs[log].index.object}
    twins.swap(twins.copied(log, 0, [4]))
    assert garbage(twins) == old


def test_an_object_that_another_log_is_in_is_kept(twins: Twins) -> None:
    a, b = twins.root("a"), twins.root("b")
    for _ in range(3):
        twins.commit([(a, [Batch(20, 2)]), (b, [Batch(30, 1)])])
    twins.swap(twins.copied(a, 0, [3]))
    assert not garbage(twins)
    twins.swap(twins.copied(b, 0, [3]))
    assert len(garbage(twins)) == 3
    twins.compare()


def test_what_was_put_together_is_put_together_again(twins: Twins) -> None:
    log = filled(twins, 6)
    twins.swap(twins.copied(log, 0, [3]))
    twins.swap(twins.copied(log, 1, [1, 2]))
    twins.swap(twins.copied(log, 0, [3]))
    assert rows(twins, log) == [(0, 18)]
    twins.compare()


def test_every_fork_reads_the_same_through_its_parents_index(twins: Twins) -> None:
    log = filled(twins, 2)
    live = twins.cfork(log, "live")
    for _ in range(2):
        twins.append(log, 1)
        twins.append(live, 1)
    past = twins.sfork(log, "past", past=3)
    twins.swap(twins.copied(log, 0, [4]))
    assert rows(twins, log) == [(0, 8)]
    twins.compare()
    twins.append(live, 1)
    twins.append(past, 1)
    twins.compare()
    twins.restart()
    twins.compare()


def test_an_orphan_takes_over_what_lies_between_the_records_of_a_fork(twins: Twins) -> None:
    """One extent of the root is in three places of the orphan then."""
    log = filled(twins, 1)
    fork = twins.cfork(log, "fork")
    for _ in range(3):
        twins.append(log, 2)
        twins.append(fork, 1)
    orphan = twins.sfork(fork, "orphan")
    twins.swap(twins.copied(log, 0, [4]))
    twins.apply(Squash(fork))
    assert rows(twins, orphan) == [(3, 2), (5, 1), (6, 2), (8, 1), (9, 2), (11, 1)]
    twins.compare()
    compare_two(twins, log, orphan)
    twins.restart()
    twins.apply(Trim(orphan, 7))
    twins.compare()


def test_what_an_orphan_took_over_stays_where_it_is(twins: Twins) -> None:
    """Two logs with the same records know that they are the same by where they lie."""
    log = filled(twins, 1)
    fork = twins.cfork(log, "fork")
    twins.append(log, 2)
    twins.append(log, 2)
    orphan = twins.sfork(fork, "orphan")
    twins.append(log, 2)
    twins.append(log, 2)
    twins.apply(Squash(fork))
    why = "another log may come to need the extents as they are"
    assert twins.swap(twins.copied(log, 1, [2])) == Swapped(0, why)
    assert twins.swap(twins.copied(orphan, 0, [2])) == Swapped(0, why)
    assert twins.swap(twins.copied(log, 3, [2])) == Swapped(1)
    compare_two(twins, log, orphan)
    twins.compare()


def test_the_copied_records_of_a_fork_are_promoted_among_the_parents(twins: Twins) -> None:
    log = filled(twins, 2)
    fork = twins.cfork(log, "agent", promotable=True)
    twins.append(fork, 1)
    twins.append(fork, 2)
    twins.append(log, 1)
    twins.append(fork, 1)
    assert twins.swap(twins.copied(fork, 0, [2])) == Swapped(1)
    assert twins.swap(twins.copied(log, 0, [2])) == Swapped(1)
    twins.apply(Promote(fork))
    assert rows(twins, log) == [(0, 6), (6, 3), (9, 1), (10, 1)]
    twins.compare()


def test_nothing_moves_past_an_undecided_forks_point(twins: Twins) -> None:
    log = filled(twins, 2)
    fork = twins.cfork(log, "agent", promotable=True)
    twins.append(log, 1)
    twins.append(fork, 1)
    twins.append(log, 1)
    assert twins.swap(twins.copied(log, 2, [2])).why
    assert twins.swap(twins.copied(log, 1, [2])).why
    assert rows(twins, log) == [(0, 3), (3, 3), (6, 1), (7, 1)]
    twins.apply(Promote(fork))
    assert twins.swap(twins.copied(log, 2, [3])) == Swapped(2)
    twins.compare()


def test_records_between_which_inherited_ones_lie_dont_become_one(twins: Twins) -> None:
    log = filled(twins, 1)
    fork = twins.cfork(log, "fork")
    twins.append(fork, 1)
    twins.append(log, 1)
    twins.append(fork, 1)
    command = twins.copied(fork, 0, [2])
    outcome = twins.apply(command)
    assert outcome == Swapped(0, "records that the log inherited lie between")
    assert rows(twins, fork) == [(3, 1), (5, 1)]
    assert twins.swap(twins.copied(fork, 0, [1, 1])) == Swapped(0), "but lie in one object"
    twins.compare()


@pytest.mark.parametrize("change", ["trim", "swap", "delete", "promote"])
def test_what_changed_meanwhile_is_not_swapped(twins: Twins, change: str) -> None:
    log = filled(twins)
    late = twins.copied(log, 0, [2])
    match change:
        case "trim":
            twins.apply(Trim(log, 4))
        case "swap":
            late = replace(late, object=object_id(twins.epoch, 900))
            twins.objects[late.object] = {}
            twins.swap(twins.copied(log, 0, [3]))
        case "delete":
            twins.apply(Squash(twins.cfork(log)))
            fork = twins.cfork(log)
            twins.append(fork, 1)
            late = twins.copied(fork, 0, [1])
            twins.apply(Squash(fork))
        case _:
            fork = twins.cfork(log, promotable=True)
            twins.append(fork, 1)
            late = twins.copied(fork, 0, [1])
            twins.apply(Promote(fork))
    before = rows(twins, log)
    assert twins.swap(late).why
    assert rows(twins, log) == before
    assert late.object in garbage(twins)
    twins.compare()


@pytest.mark.parametrize(
    ("extents", "joined"),
    [
        ([], []),
        ([Copied(0, 3, object_id(1, 1), 0, 30)], []),
        ([Copied(0, 3, object_id(1, 1), 0, 30)], [Joined(1, 0, 29)]),
        ([Copied(0, 3, object_id(1, 1), 0, 30)], [Joined(2, 0, 30)]),
        ([Copied(0, 3, object_id(1, 1), 0, 30)], [Joined(0, 0, 0), Joined(1, 0, 30)]),
        ([Copied(0, 3, object_id(1, 1), 0, 30)], [Joined(1, 0, 30), Joined(1, 30, 0)]),
        ([Copied(-9, 3, object_id(1, 1), 0, 30)], [Joined(1, 0, 30)]),
        ([Copied(9, 3, object_id(1, 1), 0, 30)] * 2, [Joined(2, 0, 60)]),
    ],
)
def test_a_swap_that_makes_no_sense_changes_nothing(
    twins: Twins, extents: list[Copied], joined: list[Joined]
) -> None:
    log = filled(twins)
    before = rows(twins, log)
    object = object_id(twins.epoch, 77)
    outcome = told(twins, SwapExtents(BROKER, object, log, extents, joined))
    assert isinstance(outcome, Swapped)
    assert outcome.why
    assert rows(twins, log) == before
    assert garbage(twins) == {object}


def test_asked_again_it_answers_as_the_first_time(twins: Twins) -> None:
    log = filled(twins)
    command = twins.copied(log, 0, [2])
    first = twins.swap(command)
    twins.append(log, 1)
    assert told(twins, command) == first
    assert command.object not in garbage(twins)
    twins.restart()
    assert told(twins, command) == first
    twins.compare()


def test_one_that_was_refused_is_refused_for_ever(twins: Twins) -> None:
    """Its object may have been deleted by the time it comes again."""
    log = filled(twins)
    fork = twins.cfork(log, promotable=True)
    twins.append(log, 1)
    late = twins.copied(log, 4, [1])
    assert twins.swap(late).why
    twins.apply(Squash(fork))
    assert twins.swap(twins.copied(log, 0, [2])) == Swapped(1)
    before = portrait(twins.state)
    outcome = told(twins, late)
    assert isinstance(outcome, Refused)
    assert outcome.code == "bad-request"
    assert portrait(twins.state) == before


def test_an_earlier_life_of_the_broker_swaps_nothing(twins: Twins) -> None:
    log = filled(twins)
    late = twins.copied(log, 0, [2])
    twins.apply(RegisterBroker(BROKER))
    before = portrait(twins.state)
    outcome = told(twins, late)
    assert isinstance(outcome, Refused)
    assert outcome.code == "broker-fenced"
    assert portrait(twins.state) == before


def test_a_time_finds_all_that_was_committed_by_then(twins: Twins) -> None:
    """And a little more: what has become one extent has one time, the earliest."""
    log = filled(twins, 6)
    begun = twins.now
    for _ in range(4):
        twins.append(log, 1)
    ended = twins.now
    twins.swap(twins.copied(log, 6, [4]))
    for at in range(begun - 10, ended + 10):
        twins.compare_times(log, at)
    assert twins.spans == ended - begun - 2


def test_a_read_of_many_parts_of_one_extent_is_as_long_as_it_may(twins: Twins) -> None:
    """Between the parts lie a fork's own records: each part counts for its own bytes alone."""
    log = twins.root("orders")
    fork = twins.cfork(log, "fork")
    for _ in range(50):
        twins.append(log, 1)
        twins.append(fork, 1)
    twins.swap(twins.copied(log, 0, [50]))
    answer = twins.state.answer(Resolve(fork, 0, NEVER, 1_000))
    assert isinstance(answer, Resolved)
    assert len(answer.slices) == 100
