"""Which extents are worth copying together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.metadata.compaction import COPIED_MAX, FULL_ROWS, SCANNED_MAX, find
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.compaction import Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.letters import CopyExtents
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import NEVER, LogId
from anabranch_sim.bolt.twins import BROKER, Twins


class Stage:
    """One log, and searches of it."""

    def __init__(self, **limits: Any) -> None:
        known = {"compact_extents_min": 4, "object_bytes_max": 1_000, "compact_span_ms": 10_000}
        self.limits = Limits(**{**known, **limits})
        self.twins = Twins(self.limits)
        self.log = self.twins.root("orders")
        self.since = 0

    @property
    def index(self) -> Any:
        return self.twins.state.replica.forest.logs[self.log].index

    def append(self, *sizes: int, log: LogId | None = None) -> None:
        for size in sizes:
            self.twins.commit([(log or self.log, [Batch(size, 1)])])

    def find(self, before: int = NEVER, log: LogId | None = None) -> CopyExtents | None:
        replica = self.twins.state.replica
        found = find(replica, replica.forest.logs[log or self.log], self.since, before, self.limits)
        self.since = found.since
        return found.copy

    def copy(self, asked: CopyExtents) -> int:
        """As a broker does; how many bytes."""
        since = self.index.at_or_before(asked.extents[0].first)
        outcome = self.twins.swap(self.twins.copied(self.log, since, asked.joined))
        assert not outcome.why
        return sum(extent.length for extent in asked.extents)

    def sizes(self) -> list[int]:
        return [*self.index.length]


def found(copy: CopyExtents | None) -> list[int]:
    """First positions of what is to be copied: with a record an extent, which extents."""
    return [extent.first for extent in copy.extents] if copy else []


def test_enough_small_neighbours_are_found() -> None:
    stage = Stage()
    stage.append(10, 10, 10)
    assert stage.find() is None
    stage.append(10)
    copy = stage.find()
    assert found(copy) == [0, 1, 2, 3]
    assert copy is not None
    assert copy.joined == [4]


def test_large_ones_divide_them() -> None:
    stage = Stage(compact_extent_bytes_max=50)
    stage.append(10, 10, 10, 50, 10, 10, 50, 10, 10, 10, 10)
    assert found(stage.find()) == [7, 8, 9, 10]


def test_no_more_than_an_object_holds() -> None:
    stage = Stage()
    stage.append(*[100] * 25)
    copy = stage.find()
    assert found(copy) == [*range(10)]
    assert copy is not None
    stage.copy(copy)
    assert found(stage.find()) == [*range(10, 20)]


def test_few_that_fill_an_object_are_left() -> None:
    stage = Stage()
    stage.append(400, 400, 400, 400, 400, 400, 10)
    assert stage.find() is None


def test_only_what_is_old_enough() -> None:
    stage = Stage()
    stage.append(*[10] * 6)
    assert stage.find(before=stage.index.at[3]) is None
    assert found(stage.find(before=stage.index.at[4])) == [0, 1, 2, 3]


def test_only_what_is_settled() -> None:
    stage = Stage()
    stage.append(*[10] * 3)
    fork = stage.twins.cfork(stage.log, promotable=True)
    stage.append(*[10] * 3)
    assert stage.find() is None
    stage.append(*[10] * 4, log=fork)
    stage.since = 0
    assert found(stage.find(log=fork)) == [6, 7, 8, 9], "a fork's own are settled in it"


def test_what_an_orphan_took_over_divides_them() -> None:
    stage = Stage()
    stage.append(10, 10)
    fork = stage.twins.cfork(stage.log)
    stage.append(10)
    stage.twins.sfork(fork)
    stage.append(10, 10, 10, 10)
    stage.twins.apply(Squash(fork))
    assert found(stage.find()) == [3, 4, 5, 6]


def test_one_extent_grows_no_larger_than_a_small_one() -> None:
    stage = Stage(compact_extent_bytes_max=25)
    stage.append(*[10] * 5)
    copy = stage.find()
    assert copy is not None
    assert copy.joined == [2, 2, 1]
    stage.copy(copy)
    assert stage.sizes() == [20, 20, 10]
    assert stage.find() is None, "in one object they are one piece, and no longer small"


@pytest.mark.parametrize(("span", "joined"), [(0, 6), (1, 6), (4, 3)])
def test_one_extent_lasts_no_longer_than_an_interval(span: int, joined: int) -> None:
    stage = Stage(compact_span_ms=span)
    stage.twins.now = 4_000  # a commit takes 2 ms
    stage.append(*[10] * 6)
    copy = stage.find()
    assert copy is not None
    assert len(copy.joined) in (joined, joined + 1)
    stage.copy(copy)
    stage.twins.compare()
    assert stage.twins.spans < max(1, span)


def test_what_was_inherited_between_divides_extents_but_not_the_object() -> None:
    stage = Stage()
    fork = stage.twins.cfork(stage.log)
    for _ in range(4):
        stage.append(10, 10, log=fork)
        stage.append(10)
    copy = stage.find(log=fork)
    assert copy is not None
    assert copy.joined == [2, 2, 2, 2]


def test_what_was_copied_is_copied_again_when_it_has_doubled() -> None:
    stage = Stage(object_bytes_max=100_000, compact_extent_bytes_max=10_000)
    written = 0
    for _ in range(600):
        stage.append(10)
        copy = stage.find()
        if copy is not None:
            written += stage.copy(copy)
    assert len(stage.index) <= 20
    assert written <= 6_000 * 7
    stage.twins.compare()


def test_an_object_of_many_extents_is_left_alone() -> None:
    """However small they are: to find it again and again would cost more than it can save."""
    stage = Stage(object_bytes_max=1_000_000, compact_span_ms=0)
    stage.append(*[10] * (FULL_ROWS + 8))
    copy = stage.find()
    assert copy is not None
    stage.copy(copy)
    stage.append(*[10] * 3)
    assert stage.find() is None


def test_a_copy_names_so_many_extents_at_most() -> None:
    stage = Stage(object_bytes_max=1_000_000)
    index = stage.index
    for turn in range(COPIED_MAX + 50):
        index.append(turn, 1, object_id(1, turn), 0, 10, 1)
    forest = stage.twins.state.replica.forest
    forest.tails.append(forest.logs[stage.log].place, len(index))
    copy = stage.find()
    assert copy is not None
    assert len(copy.extents) == COPIED_MAX


def test_a_search_ends_and_goes_on_from_there() -> None:
    stage = Stage(compact_extent_bytes_max=5)
    index = stage.index
    for turn in range(SCANNED_MAX + 50):
        index.append(turn, 1, object_id(1, turn), 0, 10 if turn < SCANNED_MAX else 1, 1)
    forest = stage.twins.state.replica.forest
    log = forest.logs[stage.log]
    forest.tails.append(log.place, len(index))
    first = find(stage.twins.state.replica, log, 0, NEVER, stage.limits)
    assert (first.copy, first.since, first.scanned) == (None, SCANNED_MAX, SCANNED_MAX)
    second = find(stage.twins.state.replica, log, first.since, NEVER, stage.limits)
    assert second.copy is not None


def test_a_search_begins_where_the_last_left_the_small_ones() -> None:
    stage = Stage(compact_extent_bytes_max=50)
    stage.append(10, 50, 10, 10)
    assert stage.find() is None
    assert stage.since == 2
    stage.append(10, 10)
    assert found(stage.find()) == [2, 3, 4, 5]


def test_a_trimmed_log_is_searched_from_its_first_extent() -> None:
    stage = Stage()
    stage.append(*[10] * 8)
    stage.twins.apply(Trim(stage.log, 3))
    assert found(stage.find()) == [3, 4, 5, 6, 7]


def test_two_is_the_least() -> None:
    stage = Stage(compact_extents_min=1)
    stage.append(10)
    assert stage.find() is None
    stage.append(10)
    assert found(stage.find()) == [0, 1]


@given(
    sizes=st.lists(st.integers(1, 400), max_size=60),
    least=st.integers(2, 6),
    small=st.integers(1, 500),
    span=st.sampled_from((0, 1, 7, 10_000)),
)
def test_searching_and_copying_comes_to_an_end_and_changes_no_record(
    sizes: list[int], least: int, small: int, span: int
) -> None:
    stage = Stage(compact_extents_min=least, compact_extent_bytes_max=small, compact_span_ms=span)
    stage.append(*sizes)
    for _ in range(len(sizes) + 1):
        copy = stage.find()
        if copy is None:
            break
        assert len(copy.extents) >= least
        assert stage.copy(copy) <= stage.limits.object_bytes_max
    assert stage.find() is None
    stage.twins.compare()
    stage.since = 0
    assert stage.find() is None, "whoever begins anew finds nothing more"


def test_a_broker_can_swap_what_was_found() -> None:
    stage = Stage()
    stage.append(10, 20, 30, 40)
    copy = stage.find()
    assert copy is not None
    object = object_id(stage.twins.epoch, 50)
    stage.twins.objects[object] = {0: Batch(100, 4)}
    command = SwapExtents(BROKER, object, copy.log, copy.extents, [Joined(4, 0, 100)])
    assert stage.twins.apply(command) == Swapped(3)
