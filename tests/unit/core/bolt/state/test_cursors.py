"""Cursors that a promotion takes along, leaves, or has no room for; quotas of logs and forks."""

from typing import Any

import pytest

from anabranch.core.bolt.protocol.commands import (
    CommitCursor,
    DeleteCursor,
    Description,
    Entry,
    ForkLog,
    Promote,
    Promotion,
    SetQuota,
    Squash,
)
from anabranch.core.bolt.protocol.queries import Cursors, Describe, ReadCursors
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.quota import Quota
from anabranch.core.types import Kind, LogId, OnPromote
from anabranch_sim.bolt.twins import Twins, portrait

FOLLOW, STAY = OnPromote.FOLLOW, OnPromote.STAY


def forked(limits: Limits | None = None) -> tuple[Twins, LogId, LogId]:
    """Two records, a promotable fork, and one record more in each."""
    twins = Twins(limits or Limits())
    root = twins.root("a")
    twins.append(root, 2)
    fork = twins.cfork(root, promotable=True)
    twins.append(root, 1)
    twins.append(fork, 1)
    return twins, root, fork


def mark(twins: Twins, log: LogId, name: str, at: int, choice: OnPromote | None = None) -> Any:
    return twins.apply(CommitCursor(log, name, at, choice))


def cursors(twins: Twins, log: LogId) -> dict[str, tuple[int, OnPromote]]:
    answer = twins.state.answer(ReadCursors(log))
    assert isinstance(answer, Cursors), answer
    return {name: (at, answer.on_promote[name]) for name, at in answer.positions.items()}


@pytest.mark.parametrize(
    ("parents", "forks", "after"),
    [
        (None, (4, None), (4, STAY)),
        (None, (4, FOLLOW), (4, FOLLOW)),
        (None, (1, None), (1, STAY)),
        (None, (4, STAY), None),
        ((2, None), (4, None), (2, STAY)),
        ((2, None), (4, FOLLOW), (2, STAY)),
        ((2, STAY), (4, None), (2, STAY)),
        ((2, FOLLOW), (4, None), (4, FOLLOW)),
        ((2, FOLLOW), (4, STAY), (2, FOLLOW)),
        ((2, FOLLOW), (1, None), (2, FOLLOW)),
        ((2, FOLLOW), None, (2, FOLLOW)),
        ((2, None), None, (2, STAY)),
    ],
)
def test_what_becomes_of_a_cursor_is_chosen(
    parents: tuple[int, OnPromote | None] | None,
    forks: tuple[int, OnPromote | None] | None,
    after: tuple[int, OnPromote] | None,
) -> None:
    twins, root, fork = forked()
    for log, cursor in ((root, parents), (fork, forks)):
        if cursor is not None:
            mark(twins, log, "c", *cursor)
    done = twins.apply(Promote(fork))
    assert isinstance(done, Promotion)
    assert cursors(twins, root).get("c") == after
    moved = after is not None and (parents is None or parents[0] != after[0])
    assert done.cursors == (["c"] if moved else [])
    twins.compare()
    twins.restart()
    twins.compare()


def test_a_choice_is_kept_by_whoever_only_moves_the_cursor_and_forgotten_with_it() -> None:
    twins, root, fork = forked()
    mark(twins, fork, "c", 1, STAY)
    mark(twins, fork, "c", 4)
    assert cursors(twins, fork) == {"c": (4, STAY)}
    mark(twins, root, "c", 1, FOLLOW)
    twins.apply(DeleteCursor(root, "c"))
    mark(twins, root, "c", 1)
    assert cursors(twins, root) == {"c": (1, STAY)}


def test_what_a_subscriber_got_as_speculative_it_can_not_commit() -> None:
    twins, root, fork = forked()
    outcome = mark(twins, root, "c", 3)
    assert isinstance(outcome, Refused)
    assert outcome.code == "out-of-range"
    twins.apply(Promote(fork))
    assert not isinstance(mark(twins, root, "c", 3), Refused)


def test_two_generations_of_promotion_take_a_cursor_all_the_way() -> None:
    twins, root, fork = forked()
    inner = twins.cfork(fork, promotable=True)
    twins.append(inner, 1)
    mark(twins, inner, "c", 5)
    twins.apply(Promote(inner))
    assert cursors(twins, fork) == {"c": (5, FOLLOW)}, "the fork may be promoted as well"
    twins.apply(Promote(fork))
    assert cursors(twins, root) == {"c": (5, STAY)}
    twins.compare()


def test_a_promotion_that_would_bring_too_many_cursors_changes_nothing() -> None:
    limits = Limits(cursors_per_log_max=3)
    twins, root, fork = forked(limits)
    for name in "ab":
        mark(twins, root, name, 1)
    for name in "bcd":
        mark(twins, fork, name, 1)
    before = portrait(twins.state)
    # Of the state machine alone: the naive one has no limits.
    refused = twins.state.apply(Entry(twins.now, b"", Promote(fork)))
    assert isinstance(refused, Refused)
    assert refused.code == "too-many"
    assert refused.facts["setting"] == "cursors_per_log_max"
    assert portrait(twins.state) == before
    mark(twins, fork, "d", 1, STAY)
    assert isinstance(twins.apply(Promote(fork)), Promotion)
    assert sorted(cursors(twins, root)) == ["a", "b", "c"]


def quota(twins: Twins, log: LogId) -> Quota | None:
    answer = twins.state.answer(Describe(log))
    assert isinstance(answer, Description), answer
    return answer.quota


def test_a_fork_begins_with_its_parents_quota_and_keeps_it_for_itself() -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    little, much = Quota(1_000), Quota(9_000, read_bytes_per_s=5)
    twins.apply(SetQuota(root, little))
    fork = twins.cfork(root, promotable=True)
    own = twins.apply(ForkLog(root, Kind.SEVERED, "own", quota=much))
    free = twins.apply(ForkLog(root, Kind.SEVERED, "free", quota=Quota()))
    assert isinstance(own, Description)
    assert isinstance(free, Description)
    assert (quota(twins, fork), own.quota, free.quota) == (little, much, None)
    twins.apply(SetQuota(root, much))
    assert quota(twins, fork) == little
    twins.restart()
    twins.compare()
    twins.apply(Promote(fork))
    assert quota(twins, root) == much, "a promotion brings records, not quotas"
    twins.apply(SetQuota(root, Quota(burst_ms=5)))
    assert quota(twins, root) is None
    twins.apply(Squash(own.id))
    twins.compare()
    assert not twins.state.replica.forest.quotas


def test_a_quota_that_no_log_can_be_held_to_is_refused_whoever_asks() -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    for command in (SetQuota(root, Quota(0)), ForkLog(root, Kind.SEVERED, quota=Quota(0))):
        outcome = twins.state.apply(Entry(twins.now, b"", command))
        assert isinstance(outcome, Refused)
        assert outcome.code == "bad-request"
    assert quota(twins, root) is None
