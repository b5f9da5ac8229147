"""How logs end: each for a reason, the first promotion alone, and trims by those who asked."""

from collections.abc import Callable
from typing import Any

import pytest

from anabranch.core.history.calls import (
    UNTOLD,
    Append,
    Delete,
    Fate,
    Fork,
    Promote,
    Squash,
    Trim,
    Verdict,
)
from anabranch.core.history.family import Family
from anabranch.core.history.fates import fate_violations
from anabranch.core.types import NEVER, Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN

Tale = Any
"""Of conftest: test modules don't import one another."""


def says(tale: Tale) -> list[str]:
    return [str(each) for each in fate_violations(Family(tale.history))]


def nobody_knows_a_log_in_the_end(tale: Tale) -> None:
    pass


def promoted_unasked(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)


def promoted_though_not_promotable(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Promote(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)


def deleted_for_no_reason(tale: Tale) -> None:
    tale.end(ROOT, fate=Fate.DELETED)


def alive_after_its_promotion(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.say(Promote(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK)


def severed_survivor_of_a_cascade(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.fork(SEVERED, FORK, 0, kind=Kind.SEVERED, cascades=True)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)
    tale.end(SEVERED, kind=Kind.SEVERED)


def said_to_be_squashed_while_it_lives(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Append(**tale.at(FORK, REFUSED, "squashed"), records=[1]))
    tale.end(ROOT)
    tale.end(FORK)


def said_to_be_squashed_before_anybody_asked(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Append(**tale.at(FORK, REFUSED, "squashed"), records=[1]))
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def a_rival_that_is_named_among_the_squashed_and_was_deleted(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.fork(RIVAL, ROOT, 0)
    tale.say(Promote(**tale.at(FORK), squashed=["fork-3"]))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL)


def trimmed_after_its_squash(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Squash(**tale.at(FORK)))
    tale.say(Trim(**tale.at(FORK), before=0))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def forked_after_its_squash(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Squash(**tale.at(FORK)))
    tale.fork(SEVERED, FORK, 0, kind=Kind.SEVERED)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)
    tale.end(SEVERED, kind=Kind.SEVERED)


def starts_below_its_trim(tale: Tale) -> None:
    tale.say(Trim(**tale.at(ROOT), before=2))
    tale.end(ROOT, start=1)


def starts_above_its_trim(tale: Tale) -> None:
    tale.say(Trim(**tale.at(ROOT), before=2))
    tale.end(ROOT, start=3)


def takes_a_trim_of_its_parent_that_came_after_the_fork(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 3)
    tale.say(Trim(**tale.at(ROOT), before=2))
    tale.end(ROOT, start=2)
    tale.end(FORK, start=2, kind=Kind.CONTINUOUS)


VIOLATIONS: list[tuple[Callable[[Tale], None], str]] = [
    (nobody_knows_a_log_in_the_end, "1 acknowledged: root(1) was made, and nobody knows of it"),
    (promoted_unasked, "8 promote: fork-2(2) was promoted, which nobody asked for"),
    (promoted_though_not_promotable, "8 promote: fork-2(2) was promoted, but isn't promotable"),
    (deleted_for_no_reason, "8 squash: root(1) was squashed for no reason"),
    (alive_after_its_promotion, "8 ended: fork-2(2) was promoted or squashed, and is still alive"),
    (severed_survivor_of_a_cascade, "8 squash: fork-2 was squashed, its fork fork-4 wasn't"),
    (
        said_to_be_squashed_while_it_lives,
        "8 ended: fork-2(2) was said to be squashed, and is alive",
    ),
    (
        said_to_be_squashed_before_anybody_asked,
        "8 squash: fork-2(2) was squashed before anything could have done it",
    ),
    (
        a_rival_that_is_named_among_the_squashed_and_was_deleted,
        "8 promote: fork-2 is said to have squashed fork-3: it didn't",
    ),
    (trimmed_after_its_squash, "8 ended: fork-2(2) had ended, but took a trim"),
    (forked_after_its_squash, "8 ended: fork-2(2) had ended, but took a fork"),
    (starts_below_its_trim, "D8 trim: root was trimmed up to 2, but starts at 1"),
    (starts_above_its_trim, "D8 trim: root starts at 3, it was trimmed up to 2"),
    (
        takes_a_trim_of_its_parent_that_came_after_the_fork,
        "D8 trim: fork-2 starts at 2, it was trimmed up to 0",
    ),
]


@pytest.mark.parametrize(
    ("tell", "said"), VIOLATIONS, ids=[tell.__name__ for tell, _ in VIOLATIONS]
)
def test_exactly_this_violation_is_found(
    tale: Tale, tell: Callable[[Tale], None], said: str
) -> None:
    tell(tale)
    (violation,) = says(tale)
    assert violation.startswith(said)


def squashed_by_its_age(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, lives=20)
    tale.now += 20
    tale.say(Append(**tale.at(FORK, REFUSED, "squashed"), records=[1]))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED, expired=True)


def squashed_with_its_parents_parent(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.fork(BESIDE, FORK, 0)
    tale.say(Delete(**tale.at(ROOT)))
    tale.end(ROOT, fate=Fate.DELETED)
    tale.end(FORK, fate=Fate.SQUASHED)
    tale.end(BESIDE, fate=Fate.SQUASHED)


def squashed_by_a_call_that_was_never_answered(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Squash(**tale.at(FORK, UNKNOWN)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def squashed_by_a_rival_of_a_rival_that_won(tale: Tale) -> None:
    """The winner's fork became the parent's fork; a later promotion of it squashes its rivals."""
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.fork(BESIDE, FORK, 0, promotable=True)
    tale.say(Promote(**tale.at(FORK)))
    tale.fork(RIVAL, ROOT, 0, promotable=True)
    tale.say(Promote(**tale.at(BESIDE), squashed=["fork-3"]))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(BESIDE, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.SQUASHED)


def promoted_one_after_the_other(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.say(Promote(**tale.at(FORK)))
    tale.fork(RIVAL, ROOT, 0, promotable=True)
    tale.say(Promote(**tale.at(RIVAL)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.PROMOTED)


def a_severed_fork_that_outlives_its_parent(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.fork(SEVERED, FORK, 0, kind=Kind.SEVERED)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)
    tale.end(SEVERED, kind=Kind.SEVERED)


def a_fork_of_what_was_trimmed_before(tale: Tale) -> None:
    tale.say(Trim(**tale.at(ROOT), before=2))
    tale.fork(FORK, ROOT, 3)
    tale.end(ROOT, start=2)
    tale.end(FORK, start=2, kind=Kind.CONTINUOUS)


def a_trim_that_was_never_answered_and_was_not_done(tale: Tale) -> None:
    tale.say(Trim(**tale.at(ROOT, UNKNOWN), before=2))
    tale.end(ROOT)


def a_trim_that_was_never_answered_and_was_done(tale: Tale) -> None:
    tale.say(Trim(**tale.at(ROOT, UNKNOWN), before=2))
    tale.end(ROOT, start=2)


def a_refused_fork_of_what_is_squashed_says_so(tale: Tale) -> None:
    """Its own `log` was never made; what it says is of its parent."""
    tale.fork(FORK, ROOT, 0)
    refused = tale.at(FORK, REFUSED, "squashed") | {"name": "x", "parent": FORK}
    tale.say(Fork(**refused, kind=Kind.CONTINUOUS))
    tale.end(ROOT)
    tale.end(FORK)


def a_call_on_a_log_that_nobody_made(tale: Tale) -> None:
    tale.say(Append(**tale.at(UNTOLD, REFUSED, "unknown-log"), records=[1]))
    tale.end(ROOT)


def a_read_below_a_trim_that_came_at_the_same_time(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    read = tale.read(ROOT, 0, 10, 11)
    trim = tale.say(Trim(**tale.at(ROOT), before=1))
    trim.invoked, trim.returned = read.invoked, read.returned
    tale.end(ROOT, 11, start=1)


@pytest.mark.parametrize(
    "tell",
    [
        squashed_by_its_age,
        squashed_with_its_parents_parent,
        squashed_by_a_call_that_was_never_answered,
        squashed_by_a_rival_of_a_rival_that_won,
        promoted_one_after_the_other,
        a_severed_fork_that_outlives_its_parent,
        a_fork_of_what_was_trimmed_before,
        a_trim_that_was_never_answered_and_was_not_done,
        a_trim_that_was_never_answered_and_was_done,
        a_refused_fork_of_what_is_squashed_says_so,
        a_call_on_a_log_that_nobody_made,
        a_read_below_a_trim_that_came_at_the_same_time,
    ],
)
def test_a_correct_history_is_accepted(tale: Tale, tell: Callable[[Tale], None]) -> None:
    tell(tale)
    assert says(tale) == []


@pytest.mark.parametrize(("returned", "wrong"), [(200, False), (205, False), (NEVER, False)])
def test_rivals_that_never_lived_together_may_both_be_promoted(
    tale: Tale, returned: int, wrong: bool
) -> None:
    """The second was asked for while the first promotion was on its way."""
    tale.fork(FORK, ROOT, 0, promotable=True)
    promote = tale.say(Promote(**tale.at(FORK)))
    promote.invoked, promote.returned = 100, 210
    if returned == NEVER:
        promote.verdict, promote.returned = UNKNOWN, NEVER
    late = tale.fork(RIVAL, ROOT, 0, promotable=True)
    late.invoked, late.returned = 190, 200
    tale.now = 300
    tale.say(Promote(**tale.at(RIVAL)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.PROMOTED)
    assert bool(says(tale)) is wrong


def test_a_read_after_a_trim_gives_nothing_below_it(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, 12, position=0)
    tale.say(Trim(**tale.at(ROOT), before=2))
    tale.read(ROOT, 2, 12)
    tale.end(ROOT, 12, start=2)
    assert says(tale) == []
    tale.read(ROOT, 1, 11, 12)
    assert says(tale) == ["D8 trim: root(1) gave 1, trimmed up to 2"]
