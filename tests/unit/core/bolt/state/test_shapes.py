"""Deep, wide, finely interleaved, cut through: shapes in which look-ups go wrong (spec 5)."""

from __future__ import annotations

import tracemalloc
from array import array

import pytest

from anabranch.core.bolt.logs import comparison
from anabranch.core.bolt.logs.lineage import descend, locate
from anabranch.core.bolt.protocol.commands import (
    Batch,
    CommitObject,
    Committed,
    CreateLog,
    Description,
    Entry,
    ForkLog,
    RegisterBroker,
    Row,
    Trim,
)
from anabranch.core.bolt.protocol.queries import (
    SLICES_MAX,
    Compare,
    Comparison,
    Resolve,
    Resolved,
)
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId
from anabranch_sim.bolt.twins import Twins


class Plain:
    """A state without its twin: for shapes too large to copy."""

    def __init__(self) -> None:
        self.state = State("c", Limits())
        self.sequence = 0
        self.tell(RegisterBroker("b"))

    def tell(self, command: CreateLog | ForkLog | CommitObject | RegisterBroker) -> object:
        self.sequence += 1
        return self.state.apply(Entry(self.sequence, b"", command))

    def root(self) -> LogId:
        outcome = self.tell(CreateLog("a"))
        assert isinstance(outcome, Description)
        return outcome.id

    def fork(self, of: LogId, promotable: bool = False) -> LogId:
        outcome = self.tell(ForkLog(of, Kind.CONTINUOUS, promotable=promotable))
        assert isinstance(outcome, Description)
        return outcome.id

    def append(self, log: LogId, count: int = 1) -> object:
        row = Row(log, 0, [Batch(10, count)])
        outcome = self.tell(CommitObject("b", object_id(1, self.sequence + 1), [row]))
        assert isinstance(outcome, Committed)
        return outcome.rows[0]


def test_agilelog_5_5_1_a_record_at_every_one_of_500_levels_is_found_from_the_lowest() -> None:
    plain = Plain()
    chain = [plain.root()]
    for _ in range(500):
        plain.append(chain[-1])
        chain.append(plain.fork(chain[-1]))
    for log in chain:
        plain.append(log)
    forest = plain.state.replica.forest
    lowest = forest.logs[chain[-1]]
    holders = [descend(lowest, position)[0].id for position in range(forest.tail(lowest))]
    assert holders == [*chain[:-1], *chain]
    flat = [locate(forest, lowest, position) for position in range(forest.tail(lowest))]
    assert flat == [descend(lowest, position)[:2] for position in range(forest.tail(lowest))]


def test_agilelog_5_5_2_one_append_moves_ten_thousand_forks() -> None:
    plain = Plain()
    root = plain.root()
    plain.append(root, 3)
    forks = [plain.fork(root) for _ in range(10_000)]
    for fork in forks[::1_000]:
        plain.append(fork, 2)
    assert plain.append(root, 5) == 3
    forest = plain.state.replica.forest
    tails = [forest.tail(forest.logs[fork]) for fork in forks]
    assert tails == [10 if turn % 1_000 == 0 else 8 for turn in range(10_000)]
    assert broken(plain.state.replica) == []


def test_agilelog_5_6_ten_thousand_siblings_are_held_by_one_promotable_fork() -> None:
    plain = Plain()
    root = plain.root()
    forks = [plain.fork(root) for _ in range(10_000)]
    promotable = plain.fork(root, promotable=True)
    forest = plain.state.replica.forest
    held = [forest.blocked_by(forest.logs[fork]) for fork in forks]
    assert held == [forest.logs[promotable]] * 10_000


def test_agilelog_5_4_a_fork_of_a_long_log_copies_nothing() -> None:
    """B13: what a fork takes doesn't grow with what it inherits."""
    taken: list[int] = []
    for extents in (1, 1_000_000):
        plain = Plain()
        root = plain.root()
        plain.append(root)
        index = plain.state.replica.forest.logs[root].index
        for column in ("first", "upto", "object", "offset", "length", "at"):
            filled: array[int] = getattr(index, column)
            filled.extend(filled * (extents - 1))
        plain.fork(root)
        tracemalloc.start()
        plain.fork(root)
        taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert taken[1] <= taken[0] + 1_000


def test_agilelog_4_1_a_severed_fork_may_begin_inside_a_batch() -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    twins.append(root, 5, 5)
    for past in range(10):
        severed = twins.sfork(root, past=past)
        twins.append(severed, 2, 1)
        below = twins.cfork(severed)
        twins.append(below, 1)
        twins.append(severed, 1)
        twins.sfork(below, past=past)
        twins.compare()


@pytest.mark.parametrize("start", range(9))
def test_a_read_may_begin_and_end_inside_a_batch(start: int) -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    twins.append(root, 3)
    below = twins.cfork(root)
    twins.append(below, 2)
    twins.append(root, 4)
    whole = twins.naive.logs[below].records
    for count in range(1, 10):
        answer = twins.state.answer(Resolve(below, start, count, 1 << 20))
        assert isinstance(answer, Resolved)
        expected = [(r.object, r.offset, r.nth) for r in whole[start : start + count]]
        assert twins.identify(answer.slices) == expected


def test_a_read_stops_when_its_bytes_are_spent_but_gives_one_extent_at_least() -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    for _ in range(4):
        twins.append(root, 2)
    for budget, extents in ((0, 1), (1, 1), (20, 1), (21, 2), (1_000, 4)):
        answer = twins.state.answer(Resolve(root, 0, 100, budget))
        assert isinstance(answer, Resolved)
        assert len(answer.slices) == extents, budget


def test_what_lies_ahead_is_what_the_next_read_would_be_told_and_never_past_what_is_settled() -> (
    None
):
    twins = Twins(Limits())
    root = twins.root("a")
    for _ in range(4):
        twins.append(root, 2)

    def told(start: int, bytes_max: int, ahead_bytes: int, records_max: int = 100) -> Resolved:
        query = Resolve(root, start, records_max, bytes_max, ahead_bytes=ahead_bytes)
        answer = twins.state.answer(query)
        assert isinstance(answer, Resolved)
        return answer

    every = told(0, 1_000, 0).slices
    assert told(0, 1, 0).ahead == []
    assert told(0, 1, 1_000).ahead == every[1:]
    assert told(0, 1, 21).ahead == every[1:3]
    assert told(2, 1, 21, records_max=2).ahead == every[2:4]
    assert told(0, 1_000, 1_000).ahead == []
    twins.cfork(root, promotable=True)
    twins.append(root, 2)
    assert told(0, 1, 1_000).ahead == every[1:]


def test_spec_d8_what_was_trimmed_cant_be_read_and_forks_keep_what_they_inherited() -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    for _ in range(4):
        twins.append(root, 3)
    kept = twins.cfork(root)
    severed = twins.sfork(root, past=4)
    twins.apply(Trim(root, 7))
    twins.compare()
    assert not twins.state.replica.references.garbage
    for fork in (kept, severed):
        twins.apply(Trim(fork, 4))
        twins.compare()
    assert len(twins.state.replica.references.garbage) == 1
    answer = twins.state.answer(Resolve(root, 6, 10, 100))
    assert "out-of-range" in repr(answer)


def test_what_was_trimmed_is_not_looked_for_by_a_look_up_that_had_not_come_so_far() -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    twins.append(root, 3)
    twins.compare()
    for _ in range(3):
        twins.append(root, 3)
    twins.apply(Trim(root, 9))
    twins.compare()


def test_one_answer_names_a_bounded_number_of_extents() -> None:
    plain = Plain()
    root = plain.root()
    for _ in range(SLICES_MAX + 1):
        plain.append(root)
    for start, named in ((1, SLICES_MAX), (0, SLICES_MAX)):
        answer = plain.state.answer(Resolve(root, start, 1 << 30, 1 << 30))
        assert isinstance(answer, Resolved)
        assert len(answer.slices) == named


def test_a_comparison_looks_at_a_bounded_number_of_extents(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Plain()
    root = plain.root()
    plain.append(root)
    fork = plain.fork(root)
    for _ in range(4):
        plain.append(fork)
    for extents_max, only_fork, complete in ((4, [(1, 5)], True), (3, [(1, 4)], False)):
        monkeypatch.setattr(comparison, "EXTENTS_MAX", extents_max)
        found = plain.state.answer(Compare(fork, root))
        assert isinstance(found, Comparison)
        assert (found.shared, found.only_a, found.complete) == (1, only_fork, complete)
