"""Commits are done once, however late a second copy of one comes (spec D4)."""

from itertools import pairwise
from random import Random

import pytest

from anabranch.core.bolt.protocol.commands import (
    Batch,
    CommitObject,
    Committed,
    CreateLog,
    Entry,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.replica import COMMITS_APART_MAX, COMMITS_REMEMBERED
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import LogId

LOG = LogId(1)


@pytest.fixture
def state() -> State:
    made = State("test", Limits())
    for command in (RegisterBroker("b"), CreateLog("orders")):
        made.apply(Entry(1, b"", command))
    return made


def commit(state: State, number: int) -> Committed | Refused:
    rows = [Row(LOG, 0, [Batch(100, 1)])]
    command = CommitObject("b", object_id(1, number), rows, number)
    outcome = state.apply(Entry(1, b"", command))
    assert isinstance(outcome, Committed | Refused)
    return outcome


def fingerprint(state: State) -> bytes:
    """All but the count of what was applied."""
    state.replica.applied = 0
    return snapshot.save(state.replica)


def test_a_copy_that_comes_after_its_answer_was_forgotten_is_refused(state: State) -> None:
    first = [commit(state, number) for number in range(3 * COMMITS_REMEMBERED)]
    before = fingerprint(state)
    for number, outcome in enumerate(first):
        again = commit(state, number)
        if number > 3 * COMMITS_REMEMBERED - 1 - COMMITS_APART_MAX:
            assert again == outcome
        elif again != outcome:
            assert isinstance(again, Refused)
            assert again.code == "late-commit"
        assert fingerprint(state) == before
    assert state.replica.forest.tail(state.replica.forest.logs[LOG]) == 3 * COMMITS_REMEMBERED


def test_a_snapshot_remembers_which_commits_are_late(state: State) -> None:
    for number in range(2 * COMMITS_REMEMBERED):
        commit(state, number)
    state.replica = snapshot.load(snapshot.save(state.replica), state.replica.limits)
    late = commit(state, 0)
    assert isinstance(late, Refused)
    assert late.code == "late-commit"


def test_another_life_begins_to_count_anew(state: State) -> None:
    for number in range(2 * COMMITS_REMEMBERED):
        commit(state, number)
    state.apply(Entry(1, b"", RegisterBroker("b")))
    rows = [Row(LOG, 0, [Batch(100, 1)])]
    outcome = state.apply(Entry(1, b"", CommitObject("b", object_id(2, 0), rows, 0)))
    assert isinstance(outcome, Committed)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_overtakes_and_is_repeated_each_commit_is_done_once(
    state: State, seed: int
) -> None:
    """A broker as it is: unanswered commits near each other, copies as late as they like."""
    rng = Random(seed)
    unanswered: dict[int, None] = {}
    copies: list[int] = []
    applied: list[int] = []
    sent = 0
    while sent < 1_500:
        while sent - next(iter(unanswered), sent) < COMMITS_APART_MAX and rng.random() < 0.9:
            unanswered[sent] = None
            sent += 1
        waiting = list(unanswered)[: None if rng.random() < 0.5 else 3]
        if not waiting:
            continue
        number = rng.choice(waiting[::-1][: rng.choice((1, 8, 200))])
        del unanswered[number]
        copies += [number] * rng.choice((0, 0, 1, 2))
        outcome = commit(state, number)
        assert isinstance(outcome, Committed)
        applied += [row for row in outcome.rows if isinstance(row, int)]
        if copies and rng.random() < 0.3:
            again = commit(state, copies.pop(rng.randrange(len(copies))))
            assert isinstance(again, Committed) or again.code == "late-commit"
    assert all(b == a + 1 for a, b in pairwise(applied))
    assert state.replica.forest.tail(state.replica.forest.logs[LOG]) == len(applied)
