"""A cursor shows what was committed last, in the log or in a fork that was promoted into it."""

from typing import Any

import pytest

from anabranch.core.history.calls import Fate, MarkCursor, Promote, ReadCursor, Verdict
from anabranch.core.history.cursors import cursor_violations
from anabranch.core.history.family import Family
from anabranch.core.types import NEVER, LogId

ROOT, FORK, RIVAL = (LogId(n) for n in range(1, 4))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN

Tale = Any
"""Of conftest: test modules don't import one another."""


def says(tale: Tale) -> list[str]:
    return [each.says for each in cursor_violations(Family(tale.history))]


def mark(tale: Tale, position: int, log: LogId = ROOT, verdict: Verdict = OK) -> MarkCursor:
    made = MarkCursor(**tale.at(log, verdict), name="c", position=position)
    tale.say(made)
    return made


def seen(tale: Tale, position: int | None, log: LogId = ROOT) -> ReadCursor:
    made = ReadCursor(**tale.at(log), name="c", position=position)
    tale.say(made)
    return made


def promoted(tale: Tale, log: LogId = FORK) -> None:
    tale.say(Promote(**tale.at(log)))
    tale.end(ROOT)
    tale.end(log, fate=Fate.PROMOTED)


@pytest.mark.parametrize(("position", "right"), [(2, True), (1, False), (3, False), (None, False)])
def test_the_last_of_two_commits_is_seen(tale: Tale, position: int | None, right: bool) -> None:
    mark(tale, 1)
    mark(tale, 2)
    seen(tale, position)
    assert says(tale) == (
        [] if right else [f"cursor c of root(1) gave {position}, which isn't its latest"]
    )


def test_a_cursor_that_nobody_committed_has_no_position(tale: Tale) -> None:
    seen(tale, None)
    assert says(tale) == []
    seen(tale, 0)
    assert len(says(tale)) == 1


@pytest.mark.parametrize("position", [1, 2])
def test_of_two_commits_at_one_time_either_may_be_seen(tale: Tale, position: int) -> None:
    first, second = mark(tale, 1), mark(tale, 2)
    second.invoked = first.returned
    seen(tale, position)
    assert says(tale) == []


@pytest.mark.parametrize("position", [None, 1])
def test_a_commit_that_is_on_its_way_may_be_seen_or_not(tale: Tale, position: int | None) -> None:
    on_its_way = mark(tale, 1)
    look = seen(tale, position)
    on_its_way.returned = look.returned + 1
    assert says(tale) == []


@pytest.mark.parametrize("position", [1, 2])
def test_a_commit_without_an_answer_may_be_seen_for_ever(tale: Tale, position: int) -> None:
    mark(tale, 1)
    lost = mark(tale, 2, verdict=UNKNOWN)
    assert lost.returned == NEVER
    seen(tale, position)
    assert says(tale) == []


def test_a_refused_commit_is_never_seen(tale: Tale) -> None:
    mark(tale, 1, verdict=REFUSED)
    seen(tale, 1)
    assert len(says(tale)) == 1


def test_cursors_of_other_names_and_logs_are_others(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.end(FORK)
    mark(tale, 1, FORK)
    tale.say(MarkCursor(**tale.at(ROOT), name="other", position=1))
    seen(tale, None)
    assert says(tale) == []


@pytest.mark.parametrize(("position", "right"), [(2, True), (None, False), (1, False)])
def test_a_promotion_brings_a_forks_cursor(tale: Tale, position: int | None, right: bool) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    mark(tale, 2, FORK)
    promoted(tale)
    seen(tale, position)
    assert bool(says(tale)) is not right


@pytest.mark.parametrize("position", [None, 2])
def test_a_promotion_without_an_answer_may_bring_it_or_not(
    tale: Tale, position: int | None
) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    mark(tale, 2, FORK)
    tale.say(Promote(**tale.at(FORK, UNKNOWN)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    seen(tale, position)
    assert says(tale) == []


@pytest.mark.parametrize(("position", "right"), [(1, True), (2, False)])
def test_a_parents_own_cursor_goes_before_a_forks(tale: Tale, position: int, right: bool) -> None:
    mark(tale, 1)
    tale.fork(FORK, ROOT, 0, promotable=True)
    mark(tale, 2, FORK)
    promoted(tale)
    seen(tale, position)
    assert bool(says(tale)) is not right


@pytest.mark.parametrize("position", [1, 2])
def test_in_a_log_that_may_be_promoted_itself_either_may_be_seen(tale: Tale, position: int) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    mark(tale, 1, FORK)
    tale.fork(RIVAL, FORK, 0, promotable=True)
    mark(tale, 2, RIVAL)
    tale.say(Promote(**tale.at(RIVAL)))
    tale.end(ROOT)
    tale.end(FORK)
    tale.end(RIVAL, fate=Fate.PROMOTED)
    seen(tale, position, FORK)
    assert says(tale) == []


def test_a_cursor_is_brought_through_two_promotions(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.fork(RIVAL, FORK, 0, promotable=True)
    mark(tale, 2, RIVAL)
    tale.say(Promote(**tale.at(RIVAL)))
    tale.say(Promote(**tale.at(FORK)))
    seen(tale, 2)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.PROMOTED)
    assert says(tale) == []


def test_a_commit_after_the_promotion_may_not_have_come_along(tale: Tale) -> None:
    """Its answer came after the promotion had begun: the parent may have been told nothing."""
    tale.fork(FORK, ROOT, 0, promotable=True)
    late = mark(tale, 2, FORK)
    promoted(tale)
    late.returned = tale.now
    tale.now += 10
    seen(tale, None)
    assert says(tale) == []
