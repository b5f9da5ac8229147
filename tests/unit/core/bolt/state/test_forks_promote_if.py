"""Promotions with a condition: a fork is promoted as it was judged, or not at all (decision 77)."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.core.bolt.protocol.commands import (
    Batch,
    Committed,
    Description,
    EngineSettings,
    Entry,
    Promote,
    PromoteIf,
    Promotion,
    RaiseFormat,
    Sequenced,
    SetAppends,
    Trim,
)
from anabranch.core.bolt.protocol.fronts import FrontEpoch, FrontMark, OpenFront
from anabranch.core.bolt.protocol.promotions import EXPECT_FORMAT
from anabranch.core.bolt.protocol.queries import Describe
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.types import LogId
from anabranch_sim.bolt.twins import Twins


@pytest.fixture
def twins() -> Twins:
    return Twins(Limits())


@pytest.fixture
def fork(twins: Twins) -> LogId:
    """A promotable fork with three records of its own, of a parent with two."""
    parent = twins.root("orders")
    twins.append(parent, 2)
    fork = twins.cfork(parent, "f", promotable=True)
    twins.append(fork, 1, 2)
    return fork


def code(outcome: object) -> str:
    assert isinstance(outcome, Refused), outcome
    return outcome.code


def row(outcome: object) -> Any:
    """What a commit says of its only row, or of its only batch."""
    assert isinstance(outcome, Committed)
    (result,) = outcome.rows
    if isinstance(result, Sequenced):
        (result,) = result.batches
    return result


def described(twins: Twins, log: LogId) -> Description:
    answer = twins.state.answer(Describe(log))
    assert isinstance(answer, Description)
    return answer


def test_it_is_promoted_with_exactly_the_records_that_were_expected(
    twins: Twins, fork: LogId
) -> None:
    assert twins.apply(PromoteIf(fork, 3)) == Promotion("orders", 2, 3, [])
    twins.compare()


@pytest.mark.parametrize("expected", [-1, 0, 2, 4, 1 << 60])
def test_any_other_count_is_refused_and_changes_nothing(
    twins: Twins, fork: LogId, expected: int
) -> None:
    refused = twins.apply(PromoteIf(fork, expected))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.facts["found"]) == ("fork-moved", 3)
    assert f"3 records of its own where {expected} were expected" in refused.message
    assert isinstance(twins.apply(PromoteIf(fork, 3)), Promotion)


def test_a_fork_without_records_of_its_own_is_promoted_as_such_or_not_at_all(twins: Twins) -> None:
    parent = twins.root("orders")
    empty, filled = (twins.cfork(parent, name, promotable=True) for name in "ab")
    twins.append(filled, 1)
    assert code(twins.apply(PromoteIf(filled, 0))) == "fork-moved"
    assert twins.apply(PromoteIf(empty, 0)) == Promotion("orders", 0, 0, ["orders--b"])


def test_what_the_parent_gets_meanwhile_moves_the_tail_and_not_the_count(
    twins: Twins, fork: LogId
) -> None:
    parent = twins.state.replica.forest.logs[fork].parent
    assert parent is not None
    before = described(twins, fork)
    twins.append(parent.id, 4)
    after = described(twins, fork)
    assert (after.tail - before.tail, after.own_records) == (4, before.own_records)
    assert isinstance(twins.apply(PromoteIf(fork, 3)), Promotion)
    twins.compare()


def test_an_append_that_comes_first_has_the_promotion_refused(twins: Twins, fork: LogId) -> None:
    twins.append(fork, 1)
    assert code(twins.apply(PromoteIf(fork, 3))) == "fork-moved"


def test_an_append_that_was_under_way_is_refused_after_the_promotion(
    twins: Twins, fork: LogId
) -> None:
    """Its object is durable already: the parent doesn't get its records."""
    under_way = twins.laid_out([(fork, [Batch(10, 1)])])
    assert isinstance(twins.apply(PromoteIf(fork, 3)), Promotion)
    assert code(row(twins.apply(under_way))) == "promoted"
    assert described(twins, LogId(1)).tail == 5
    twins.compare()


def test_an_append_that_is_repeated_counts_once(twins: Twins, fork: LogId) -> None:
    batch = Batch(10, 2, producer=7, epoch=0, sequence=0)
    twins.commit([(fork, [batch])])
    twins.commit([(fork, [batch])])
    assert isinstance(twins.apply(PromoteIf(fork, 5)), Promotion)


def test_appends_that_are_parked_are_no_records_of_the_fork(twins: Twins) -> None:
    """A fork below a blocked one takes nothing while its ancestor's promotable fork is undecided:
    what waits for that isn't counted, and is refused once the fork is promoted.
    """
    parent = twins.root("orders")
    between = twins.cfork(parent, "between")
    fork = twins.cfork(between, "fork", promotable=True)
    twins.append(fork, 2)
    rival = twins.cfork(parent, "rival", promotable=True)
    parked = twins.laid_out([(fork, [Batch(10, 1)])])
    assert code(row(twins.apply(parked))) == "append-blocked"
    assert isinstance(twins.apply(PromoteIf(fork, 2)), Promotion)
    assert isinstance(twins.apply(PromoteIf(rival, 0)), Promotion)
    again = twins.laid_out([(fork, [Batch(10, 1)])])
    assert code(row(twins.apply(again))) == "promoted"
    twins.compare()


def test_a_fork_that_is_promoted_into_it_counts(twins: Twins, fork: LogId) -> None:
    inner = twins.cfork(fork, "inner", promotable=True)
    twins.append(inner, 4)
    twins.apply(Promote(inner))
    assert described(twins, fork).own_records == 7
    assert code(twins.apply(PromoteIf(fork, 3))) == "fork-moved"
    assert isinstance(twins.apply(PromoteIf(fork, 7)), Promotion)


def test_a_trim_of_the_fork_leaves_its_count(twins: Twins, fork: LogId) -> None:
    outer = described(twins, fork)
    twins.apply(Trim(fork, outer.settled))
    assert described(twins, fork).own_records == 3
    assert isinstance(twins.apply(PromoteIf(fork, 3)), Promotion)


def test_what_the_parents_lazy_front_holds_is_the_parents(twins: Twins, fork: LogId) -> None:
    """A promotable fork has no front itself; the front's leader commits later to the parent."""
    parent = LogId(1)
    front = EngineSettings(sequencers=2, durability="memory")
    assert code(twins.apply(SetAppends(fork, front))) == "bad-request"
    twins.apply(SetAppends(parent, front))
    twins.apply(OpenFront(parent, FrontEpoch(1, 1)))
    assert isinstance(twins.apply(PromoteIf(fork, 3)), Promotion)
    held = [Batch(10, 2, producer=9, epoch=0, sequence=0)]
    assert row(twins.order(parent, held, FrontMark(FrontEpoch(1, 1), 1, 0))) == 5


def test_a_refusal_is_remembered_under_its_request_id(twins: Twins, fork: LogId) -> None:
    """A repetition whose first answer was lost isn't granted later, when the count fits."""
    entry = Entry(twins.now, b"a request", PromoteIf(fork, 4))
    assert code(twins.state.apply(entry)) == "fork-moved"
    twins.append(fork, 1)
    assert code(twins.state.apply(entry)) == "fork-moved"


def test_only_promotable_forks_are_promoted_whatever_the_count(twins: Twins) -> None:
    parent = twins.root("orders")
    for log in (parent, twins.cfork(parent), twins.sfork(parent)):
        assert code(twins.apply(PromoteIf(log, 0))) == "not-promotable"


def test_members_of_an_earlier_version_are_waited_for() -> None:
    twins = Twins(Limits())
    fork = twins.cfork(twins.root("orders"), promotable=True)
    state = State("c", Limits())
    for entry in twins.applied:
        older = isinstance(entry.command, RaiseFormat)
        state.apply(Entry(entry.at, b"", RaiseFormat(EXPECT_FORMAT - 1)) if older else entry)
    refused = state.apply(Entry(twins.now, b"", PromoteIf(fork, 0)))
    assert isinstance(refused, Refused)
    assert (refused.code, "upgrade" in refused.message) == ("unavailable", True)
