"""Promotable forks: what they withhold, what becomes of it (AgileLog, 4.1, 5.6; spec 6 to 8)."""

from __future__ import annotations

import pytest

from anabranch.core.bolt.protocol.commands import (
    Batch,
    Committed,
    DeleteLog,
    Description,
    Entry,
    ForkLog,
    Promote,
    Promotion,
    Receipt,
    Sequenced,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.queries import (
    Describe,
    Resolve,
    Resolved,
    ResolveReceipt,
    Settled,
)
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.types import Kind, LogId, OnParentDelete
from anabranch_sim.bolt.twins import Twins


@pytest.fixture
def twins() -> Twins:
    return Twins(Limits())


def code(outcome: object) -> str:
    assert isinstance(outcome, Refused), outcome
    return outcome.code


def row(outcome: object) -> object:
    """What a commit says of its only row."""
    assert isinstance(outcome, Committed)
    (result,) = outcome.rows
    return result


def describe(twins: Twins, log: LogId) -> Description:
    answer = twins.state.answer(Describe(log))
    assert isinstance(answer, Description)
    return answer


def settled_at(twins: Twins, receipt: object) -> object:
    assert isinstance(receipt, Receipt)
    answer = twins.state.answer(ResolveReceipt(receipt))
    return answer.position if isinstance(answer, Settled) else code(answer)


def test_agilelog_4_1_positions_past_the_fork_point_are_withheld_and_told_after_the_decision(
    twins: Twins,
) -> None:
    parent = twins.root("orders")
    assert row(twins.append(parent, 3)) == 0
    fork = twins.cfork(parent, "f", promotable=True)
    receipt = row(twins.append(parent, 2))
    assert receipt == Receipt(parent, 0, 3)
    assert row(twins.append(fork, 4)) == 5
    later = row(twins.append(parent, 1))
    assert settled_at(twins, receipt) == settled_at(twins, later) == "receipt-pending"
    outcome = twins.apply(Promote(fork))
    assert outcome == Promotion("orders", 3, 4, [])
    assert settled_at(twins, receipt) == 3
    assert settled_at(twins, later) == 9
    twins.compare()


def test_agilelog_4_1_the_first_promote_wins_and_squashes_the_others(twins: Twins) -> None:
    parent = twins.root("orders")
    first = twins.cfork(parent, "first", promotable=True)
    twins.append(parent, 1)
    second = twins.cfork(parent, "second", promotable=True)
    below = twins.cfork(second, "below")
    outcome = twins.apply(Promote(first))
    assert isinstance(outcome, Promotion)
    assert outcome.squashed == ["orders--second"]
    assert code(twins.apply(Promote(second))) == "squashed"
    assert code(twins.apply(Promote(first))) == "promoted"
    assert code(row(twins.append(below, 1))) == "squashed"
    twins.compare()


def test_agilelog_4_1_only_promotable_forks_are_promoted(twins: Twins) -> None:
    parent = twins.root("orders")
    for log in (parent, twins.cfork(parent), twins.sfork(parent)):
        assert code(twins.apply(Promote(log))) == "not-promotable"


def test_agilelog_5_6_earliest_fork_point_moves_up_when_its_fork_is_squashed(twins: Twins) -> None:
    parent = twins.root("orders")
    twins.append(parent, 2)
    first = twins.cfork(parent, promotable=True)
    twins.append(parent, 3)
    second = twins.cfork(parent, promotable=True)
    twins.append(parent, 4)
    settled = [describe(twins, parent).settled]
    for fork in (first, second):
        twins.apply(Squash(fork))
        settled.append(describe(twins, parent).settled)
        twins.compare()
    assert settled == [2, 5, 9]


def test_agilelog_5_6_reads_stop_at_the_earliest_fork_point_also_in_siblings(twins: Twins) -> None:
    parent = twins.root("orders")
    twins.append(parent, 2)
    sibling = twins.cfork(parent, "sibling")
    twins.append(sibling, 5)
    twins.append(parent, 1)
    twins.cfork(parent, "p", promotable=True)
    twins.append(parent, 4)
    answer = twins.state.answer(Resolve(sibling, 0, 100, 1 << 20))
    assert isinstance(answer, Resolved)
    assert (answer.settled, answer.tail, answer.undecided) == (8, 12, "orders--p")
    assert sum(piece.count for piece in answer.slices) == 8
    assert code(row(twins.append(sibling, 1))) == "append-blocked"
    twins.compare()


def test_spec_6_a_promotable_fork_below_a_held_one_is_held_by_what_is_above(twins: Twins) -> None:
    """The parent's own promotable forks don't hold each other; what holds the parent holds them."""
    root = twins.root("orders")
    twins.append(root, 1)
    middle = twins.cfork(root, "middle")
    below = twins.cfork(middle, "below", promotable=True)
    twins.append(root, 2)
    twins.append(below, 2)
    above = twins.cfork(root, "above", promotable=True)
    twins.append(root, 3)
    assert describe(twins, below).settled == 5
    assert describe(twins, below).append_blocked_by == "orders--above"
    twins.append(above, 7)
    twins.compare()
    twins.apply(Promote(above))
    twins.compare()
    assert describe(twins, below).settled == describe(twins, below).tail == 15
    twins.apply(Promote(below))
    twins.compare()


@pytest.mark.parametrize("inner_first", [True, False])
def test_spec_7_nested_promotions_meet_in_the_same_log(twins: Twins, inner_first: bool) -> None:
    root = twins.root("orders")
    twins.append(root, 1)
    outer = twins.cfork(root, "outer", promotable=True)
    receipts = [row(twins.append(root, 1))]
    twins.append(outer, 2)
    inner = twins.cfork(outer, "inner", promotable=True)
    twins.append(inner, 3)
    receipts += [row(twins.append(outer, 1)), row(twins.append(root, 1))]
    for fork in (inner, outer) if inner_first else (outer, inner):
        twins.apply(Promote(fork))
        twins.compare()
    assert [settled_at(twins, receipt) for receipt in receipts] == [1, 7, 8]


def test_spec_7_generations_never_fall_however_forks_are_promoted(twins: Twins) -> None:
    """A fork of a fork into which much was promoted changes parents, not generations."""
    root = twins.root("orders")
    outer = twins.cfork(root, promotable=True)
    heir = twins.cfork(outer)
    for _ in range(3):
        inner = twins.cfork(outer, promotable=True)
        twins.append(inner, 1)
        twins.apply(Promote(inner))
        twins.compare()
    twins.apply(Promote(outer))
    twins.compare()
    assert describe(twins, heir).parent == "orders"


def test_spec_7_depth_doesnt_grow_along_a_relay_of_promotions() -> None:
    """An agent that forks its fork before it promotes it never gets deeper than two."""
    twins = Twins(Limits(depth_max=2))
    root = twins.root("orders")
    ahead = twins.cfork(root, promotable=True)
    for _ in range(5):
        twins.append(ahead, 1)
        following = twins.cfork(ahead, promotable=True)
        twins.apply(Promote(ahead))
        assert describe(twins, following).depth == 1
        ahead = following
    twins.compare()


def test_spec_7_promoting_gives_up_what_only_the_fork_still_read(twins: Twins) -> None:
    parent = twins.root("orders")
    twins.append(parent, 2)
    twins.append(parent, 2)
    fork = twins.cfork(parent, promotable=True)
    twins.apply(Trim(parent, 2))
    assert not twins.state.replica.references.garbage
    twins.apply(Promote(fork))
    assert len(twins.state.replica.references.garbage) == 1
    twins.compare()


def test_spec_7_a_promotable_fork_keeps_all_it_adds(twins: Twins) -> None:
    parent = twins.root("orders")
    twins.append(parent, 2)
    fork = twins.cfork(parent, promotable=True)
    twins.append(fork, 2)
    assert code(twins.apply(Trim(fork, 3))) == "bad-request"
    twins.apply(Trim(fork, 2))
    twins.apply(Promote(fork))
    twins.compare()


def test_spec_d3_nothing_unsettled_is_inherited_for_good(twins: Twins) -> None:
    root = twins.root("orders")
    twins.append(root, 2)
    below = twins.cfork(root, "below")
    promotable = twins.cfork(root, promotable=True)
    twins.append(root, 3)
    now = twins.now + 1_000
    for refused in (
        ForkLog(root, Kind.CONTINUOUS),
        ForkLog(root, Kind.SEVERED),
        ForkLog(root, Kind.SEVERED, past=2),
        ForkLog(root, Kind.SEVERED, at=now),
        ForkLog(below, Kind.CONTINUOUS),
        ForkLog(below, Kind.CONTINUOUS, promotable=True),
        ForkLog(below, Kind.SEVERED, past=2),
    ):
        assert code(twins.apply(refused)) == "fork-blocked", refused
    for granted in (
        ForkLog(root, Kind.CONTINUOUS, promotable=True),
        ForkLog(root, Kind.SEVERED, past=1),
        ForkLog(root, Kind.SEVERED, at=1),
        ForkLog(below, Kind.SEVERED, past=1),
        ForkLog(promotable, Kind.SEVERED),
        ForkLog(promotable, Kind.CONTINUOUS),
    ):
        assert isinstance(twins.apply(granted), Description), granted
    twins.compare()


def test_spec_d3_a_squashed_forks_orphan_keeps_what_a_rival_may_still_move(twins: Twins) -> None:
    """Past the rival's fork point the parent's positions aren't the orphan's: it needs its own."""
    parent = twins.root("orders")
    twins.append(parent, 2)
    rival = twins.cfork(parent, promotable=True)
    twins.append(rival, 5)
    twins.append(parent, 2)
    fork = twins.cfork(parent, promotable=True)
    twins.append(parent, 2)
    orphan = twins.sfork(fork)
    twins.apply(Squash(fork))
    twins.compare()
    twins.apply(Promote(rival))
    twins.compare()
    assert describe(twins, orphan).tail == 6


@pytest.mark.parametrize("policy", [*OnParentDelete])
def test_spec_8_severed_forks_of_severed_forks_survive_any_order_of_deletion(
    twins: Twins, policy: OnParentDelete
) -> None:
    root = twins.root("orders")
    twins.append(root, 4)
    lost = twins.cfork(root)
    twins.append(lost, 3)
    first = twins.sfork(lost, past=5, policy=OnParentDelete.ORPHAN)
    second = twins.sfork(first, past=4, policy=policy)
    third = twins.sfork(second, past=2)
    for doomed in (Squash(lost), Squash(first), DeleteLog(root, force=True)):
        twins.append(root, 5)
        twins.apply(doomed)
        twins.compare()
    left = {third, second} if policy is OnParentDelete.ORPHAN else {third}
    assert twins.naive.logs.keys() == left


def test_spec_d9_an_orphan_takes_what_it_needs_and_no_more(twins: Twins) -> None:
    """What it had trimmed stays behind, and its parent may forget what only it was kept for."""
    root = twins.root("orders")
    twins.append(root, 3)
    lost = twins.cfork(root)
    twins.append(lost, 5)
    orphan = twins.sfork(lost)
    twins.append(orphan, 1)
    twins.apply(Trim(orphan, 5))
    twins.apply(Squash(lost))
    twins.compare()
    twins.append(root, 3)
    twins.append(root, 3)
    twins.apply(Trim(root, 9))
    twins.compare()
    assert len(twins.state.replica.references.garbage) == 3


def test_spec_4_a5_a_batch_sent_again_while_its_log_is_held_has_the_place_it_had(
    twins: Twins,
) -> None:
    root = twins.root("orders")
    fork = twins.cfork(root)
    sent = Batch(10, 2, producer=7)
    assert row(twins.commit([(fork, [sent])])) == 0
    twins.cfork(root, promotable=True)
    result = row(twins.commit([(fork, [sent, Batch(10, 1, producer=7, sequence=2)])]))
    assert isinstance(result, Sequenced)
    assert result.batches[0] == 0
    assert code(result.batches[1]) == "append-blocked"
    twins.compare()


def test_spec_4_a5_a_batch_sent_again_to_a_promoted_fork_is_where_the_promotion_put_it(
    twins: Twins,
) -> None:
    root = twins.root("orders")
    twins.append(root, 1)
    fork = twins.cfork(root, promotable=True)
    twins.append(root, 1)
    sent = Batch(10, 2, producer=7, epoch=3)
    assert row(twins.commit([(fork, [sent])])) == 2
    twins.apply(Promote(fork))
    other_life = Batch(10, 2, producer=7, epoch=2)
    result = row(twins.commit([(fork, [sent, other_life])]))
    assert isinstance(result, Sequenced)
    assert settled_at(twins, result.batches[0]) == 2
    assert code(result.batches[1]) == "promoted"
    twins.compare()


def test_a_receipt_older_than_the_promotions_remembered_is_refused_and_harms_no_other_batch() -> (
    None
):
    twins = Twins(Limits(promotions_remembered_max=1))
    root, other = twins.root("orders"), twins.root("other")
    fork = twins.cfork(root, promotable=True)
    sent = Batch(10, 2, producer=7)
    receipt = row(twins.commit([(root, [sent])]))
    twins.apply(Promote(fork))
    assert settled_at(twins, receipt) == 0
    twins.apply(Promote(twins.cfork(root, promotable=True)))
    assert settled_at(twins, receipt) == "receipt-expired"
    command = twins.laid_out([(other, [Batch(10, 1)]), (root, [sent])])
    outcome = twins.state.apply(Entry(twins.now, b"again", command))
    assert isinstance(outcome, Committed)
    assert outcome.rows[0] == 0
    assert isinstance(outcome.rows[1], Sequenced)
    assert code(outcome.rows[1].batches[0]) == "receipt-expired"
    assert broken(twins.state.replica) == []


def test_a_receipt_that_was_never_given_is_refused(twins: Twins) -> None:
    root = twins.root("orders")
    twins.append(root, 3)
    for made_up in (Receipt(root, 0, -1), Receipt(root, 0, 3)):
        assert settled_at(twins, made_up) == "bad-request"
    assert settled_at(twins, Receipt(root, 5, 0)) == "receipt-expired"
    assert settled_at(twins, Receipt(LogId(77), 0, 0)) == "unknown-log"
