"""What nobody may be shown while a promotable fork is undecided."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.history.calls import (
    UNTOLD,
    Confirmation,
    Delivery,
    Fate,
    Fork,
    Look,
    Promote,
    Read,
    Redeem,
    Squash,
    Verdict,
)
from anabranch.core.history.family import Family, Member
from anabranch.core.history.settlement import (
    Hold,
    _Limits,  # pyright: ignore[reportPrivateUsage]
    decided_from,
    settlement_violations,
)
from anabranch.core.types import NEVER, Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN

Tale = Any
"""Of conftest: test modules don't import one another."""


def says(tale: Tale) -> list[str]:
    return [str(each) for each in settlement_violations(Family(tale.history))]


def held(tale: Tale) -> None:
    """A record at 0, a promotable fork behind it, and one more record with a receipt."""
    tale.append(ROOT, 10, position=0)
    tale.fork(FORK, ROOT, 1, promotable=True)
    tale.append(ROOT, 11)


def undecided(tale: Tale) -> None:
    root = tale.end(ROOT, 10)
    root.tail = 2
    tale.end(FORK, 10, 11, kind=Kind.CONTINUOUS, fork_point=1, promotable=True)


def squashed(tale: Tale) -> None:
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT, 10, 11)
    tale.end(FORK, fate=Fate.SQUASHED)


def reads(tale: Tale) -> None:
    tale.say(Read(**tale.at(ROOT), first=0, records=[10, 11]))


def sees_as_settled(tale: Tale) -> None:
    tale.say(Look(**tale.at(ROOT), tail=2, settled=2))


def reads_a_settled_position(tale: Tale) -> None:
    tale.say(Read(**tale.at(ROOT), first=0, records=[10], settled=2))


def redeems(tale: Tale) -> None:
    tale.say(Redeem(**tale.at(ROOT), records=[11], into=ROOT, position=1))


def is_given(tale: Tale) -> None:
    tale.stream(ROOT, Delivery(at=tale.now, first=0, records=[10, 11]))


def is_confirmed(tale: Tale) -> None:
    ahead = Delivery(at=tale.now, first=0, records=[10, 11], speculative=True)
    tale.stream(ROOT, ahead, Confirmation(tale.now, 2))


def appends_and_is_given_a_position(tale: Tale) -> None:
    tale.append(ROOT, 12, position=2)


def forks(tale: Tale) -> None:
    tale.fork(SEVERED, ROOT, 2, kind=Kind.SEVERED)


SHOWN = [
    (reads, "a read"),
    (sees_as_settled, "a description's settled position"),
    (reads_a_settled_position, "a read's settled position"),
    (redeems, "a redeemed receipt"),
    (is_given, "a subscription"),
    (is_confirmed, "a confirmation"),
    (appends_and_is_given_a_position, "an append's position"),
    (forks, "a fork's fork point"),
]
NAMES = [show.__name__ for show, _ in SHOWN]


@pytest.mark.parametrize(("show", "what"), SHOWN, ids=NAMES)
def test_nothing_past_the_fork_point_is_shown_before_the_decision(
    tale: Tale, show: Callable[[Tale], None], what: str
) -> None:
    held(tale)
    show(tale)
    undecided(tale)
    found = set(says(tale))
    assert found
    end = 3 if show is appends_and_is_given_a_position else 2
    assert found == {
        f"B9 hold: {what} of root(1) reached {end} while a promotable fork at 1 was undecided"
    }


@pytest.mark.parametrize("show", [show for show, _ in SHOWN], ids=NAMES)
def test_all_of_it_is_shown_after_the_decision(tale: Tale, show: Callable[[Tale], None]) -> None:
    held(tale)
    squashed(tale)
    show(tale)
    assert says(tale) == []


@pytest.mark.parametrize("show", [show for show, _ in SHOWN], ids=NAMES)
def test_a_squash_without_an_answer_may_have_decided_it(
    tale: Tale, show: Callable[[Tale], None]
) -> None:
    held(tale)
    tale.say(Squash(**tale.at(FORK, UNKNOWN)))
    tale.end(ROOT, 10, 11)
    tale.end(FORK, fate=Fate.SQUASHED)
    show(tale)
    assert says(tale) == []


def test_a_promotable_fork_shows_what_its_parent_withholds(tale: Tale) -> None:
    held(tale)
    tale.read(FORK, 0, 10, 11)
    undecided(tale)
    assert says(tale) == []


def test_what_came_before_the_fork_is_not_withheld(tale: Tale) -> None:
    held(tale)
    tale.read(ROOT, 0, 10)
    undecided(tale)
    assert says(tale) == []


def bystander(tale: Tale) -> None:
    """A fork that isn't promotable beside one that is."""
    tale.append(ROOT, 10, position=0)
    tale.fork(BESIDE, ROOT, 1)
    tale.fork(FORK, ROOT, 1, promotable=True)


def ends_of_bystander(tale: Tale, *records: int) -> None:
    root = tale.end(ROOT, 10, 11)
    root.settled = 2
    tale.end(BESIDE, 10, *records, kind=Kind.CONTINUOUS, fork_point=1)


def test_a_bystander_takes_no_appends_before_the_decision(tale: Tale) -> None:
    bystander(tale)
    tale.append(BESIDE, 50, position=1)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(FORK, fate=Fate.SQUASHED)
    ends_of_bystander(tale, 50)
    assert says(tale) == [
        "6.2 blocked: fork-5(5) took [50] while promotable fork fork-2 beside it was undecided"
    ]


def test_a_bystander_may_take_an_append_that_overlaps_the_decision(tale: Tale) -> None:
    bystander(tale)
    late = tale.append(BESIDE, 50, position=1)
    tale.say(Squash(**tale.at(FORK)))
    late.returned = tale.now
    tale.end(FORK, fate=Fate.SQUASHED)
    ends_of_bystander(tale, 50)
    assert says(tale) == []


def test_a_bystanders_fork_is_blocked_as_well(tale: Tale) -> None:
    bystander(tale)
    tale.fork(SEVERED, BESIDE, 1)
    tale.append(SEVERED, 60, position=1)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(FORK, fate=Fate.SQUASHED)
    ends_of_bystander(tale)
    tale.end(SEVERED, 10, 60, kind=Kind.CONTINUOUS, fork_point=1)
    assert [violation.split(":")[0] for violation in says(tale)] == ["6.2 blocked"]


def test_a_severed_fork_beside_it_takes_appends(tale: Tale) -> None:
    bystander(tale)
    tale.fork(SEVERED, ROOT, 1, kind=Kind.SEVERED)
    tale.append(SEVERED, 60, position=1)
    undecided(tale)
    tale.end(SEVERED, 10, 60, kind=Kind.SEVERED, fork_point=1)
    tale.end(BESIDE, 10, kind=Kind.CONTINUOUS, fork_point=1)
    assert says(tale) == []


def test_a_bystander_shows_nothing_that_its_parent_withholds(tale: Tale) -> None:
    bystander(tale)
    tale.append(ROOT, 11)
    tale.read(BESIDE, 0, 10, 11)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(FORK, fate=Fate.SQUASHED)
    ends_of_bystander(tale, 11)
    (said,) = says(tale)
    assert "a read of fork-5(5) showed root's position 1 while a promotable fork at 1" in said


def test_a_bystander_of_a_deleted_log_is_held_by_nothing_that_is_known(tale: Tale) -> None:
    bystander(tale)
    tale.append(ROOT, 11)
    tale.read(BESIDE, 0, 10, 11)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(FORK, fate=Fate.SQUASHED)
    tale.end(ROOT, fate=Fate.DELETED)
    tale.end(BESIDE, fate=Fate.SQUASHED)
    assert says(tale) == []


def test_a_log_without_promotable_forks_gives_no_receipts(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.end(ROOT, 10)
    assert says(tale) == ["10 receipt: root(1) never had a promotable fork, but gave a receipt"]


def test_a_fork_of_which_no_answer_came_may_be_why_a_receipt_was_given(tale: Tale) -> None:
    untold = tale.at(UNTOLD, UNKNOWN) | {"name": "x", "parent": ROOT, "kind": Kind.CONTINUOUS}
    tale.say(Fork(**untold, promotable=True))
    tale.append(ROOT, 10)
    tale.end(ROOT, 10)
    assert says(tale) == []


def test_a_promoted_forks_append_may_be_repeated_for_a_receipt(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.append(FORK, 20)
    tale.say(Promote(**tale.at(FORK)))
    tale.end(ROOT, 20)
    tale.end(FORK, fate=Fate.PROMOTED)
    assert says(tale) == []


def test_a_fork_that_nobody_knew_to_have_ended_holds_nowhere_that_is_known(tale: Tale) -> None:
    """Its fork point was told nobody: what it withheld can't be said."""
    untold = tale.at(UNTOLD, UNKNOWN) | {"name": "fork-2", "parent": ROOT}
    tale.say(Fork(**untold, kind=Kind.CONTINUOUS, promotable=True))
    tale.append(ROOT, 10, position=0)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT, 10)
    tale.end(FORK, fate=Fate.SQUASHED)
    assert says(tale) == []


def test_a_fork_of_a_promoted_fork_holds_the_log_that_it_became_a_fork_of(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.fork(RIVAL, FORK, 0, promotable=True)
    tale.say(Promote(**tale.at(FORK)))
    tale.append(ROOT, 10)
    tale.say(Look(**tale.at(ROOT), tail=1, settled=1))
    root = tale.end(ROOT)
    root.tail = 1
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, 10, kind=Kind.CONTINUOUS, promotable=True)
    assert len(says(tale)) == 1
    assert "promotable fork at 0 was undecided" in says(tale)[0]


def member(tale: Tale, log: LogId) -> tuple[Family, Member]:
    family = Family(tale.history)
    return family, family.members[log]


def test_a_living_fork_is_never_decided(tale: Tale) -> None:
    held(tale)
    undecided(tale)
    assert decided_from(*member(tale, FORK)) == NEVER


def test_a_promoted_fork_is_decided_when_the_first_call_for_it_began(tale: Tale) -> None:
    held(tale)
    first = tale.say(Promote(**tale.at(FORK, UNKNOWN)))
    tale.say(Promote(**tale.at(FORK)))
    tale.end(ROOT, 10, 11)
    tale.end(FORK, fate=Fate.PROMOTED)
    assert decided_from(*member(tale, FORK)) == first.invoked


def test_a_squashed_fork_is_decided_by_the_first_that_may_have_done_it(tale: Tale) -> None:
    fork = tale.fork(FORK, ROOT, 0, promotable=True, lives=500)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)
    assert decided_from(*member(tale, FORK)) == fork.invoked + 500
    squash = tale.say(Squash(**tale.at(FORK)))
    assert decided_from(*member(tale, FORK)) == squash.invoked
    rival = tale.fork(RIVAL, ROOT, 0, promotable=True)
    promote = tale.say(Promote(**tale.at(RIVAL)))
    promote.invoked, rival.invoked = squash.invoked - 2, squash.invoked - 5
    tale.end(RIVAL, fate=Fate.PROMOTED)
    assert decided_from(*member(tale, FORK)) == promote.invoked


@given(
    holds=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=8),
    time=st.integers(0, 21),
)
def test_the_limit_is_the_least_fork_point_of_all_that_are_undecided(
    holds: list[tuple[int, int]], time: int
) -> None:
    made: list[Hold] = []
    for until, fork_point in holds:
        hold = Hold.__new__(Hold)
        hold.fork, hold.since, hold.until, hold.fork_point = "f", 0, until, fork_point
        made.append(hold)
    naive = min((point for until, point in holds if time < until), default=NEVER)
    assert _Limits(made).at(time) == naive
