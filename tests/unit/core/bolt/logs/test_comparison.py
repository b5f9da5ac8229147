"""Two logs compared, where something was trimmed, promoted, squashed or taken over."""

from __future__ import annotations

import pytest

from anabranch.core.bolt.logs import comparison
from anabranch.core.bolt.protocol.commands import Promote, Squash, Trim
from anabranch.core.bolt.protocol.queries import Compare, Comparison, Mark, together
from anabranch.core.errors import BadRequest
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.types import LogId
from anabranch_sim.bolt.twin_questions import compare_two
from anabranch_sim.bolt.twins import Twins


@pytest.fixture
def twins() -> Twins:
    return Twins(Limits())


def compare(twins: Twins, a: LogId, b: LogId) -> Comparison:
    compare_two(twins, a, b)
    answer = twins.state.answer(Compare(a, b))
    assert isinstance(answer, Comparison)
    return answer


def test_what_is_trimmed_is_not_said_to_be_shared(twins: Twins) -> None:
    root = twins.root("a")
    twins.append(root, 4)
    past = twins.sfork(root, past=0)
    twins.append(past, 4)
    twins.apply(Trim(root, 2))
    assert compare(twins, root, past) == Comparison(
        shared=2, only_a=[(2, 4)], only_b=[(1, 5)], complete=True, since=2, trimmed_b=[(0, 1)]
    )


def test_an_answer_does_not_depend_on_what_was_asked_before(twins: Twins) -> None:
    root = twins.root("a")
    twins.append(root, 6)
    fork = twins.cfork(root)
    twins.append(fork, 1)
    compare(twins, root, fork)
    twins.apply(Trim(fork, 4))
    asked = compare(twins, root, fork)
    twins.restart()
    assert compare(twins, root, fork) == asked
    assert asked == Comparison(
        shared=6, only_a=[], only_b=[(6, 7)], complete=True, since=4, trimmed_a=[(0, 4)]
    )


def test_a_severed_fork_that_was_trimmed_whole_leaves_what_it_never_had_apart(twins: Twins) -> None:
    root = twins.root("a")
    twins.append(root, 3)
    past = twins.sfork(root, past=1)
    twins.append(root, 2)
    twins.apply(Trim(past, 2))
    answer = compare(twins, root, past)
    assert (answer.trimmed_a, answer.only_a) == ([(0, 2)], [(2, 5)])


def test_what_an_orphan_took_over_is_what_its_twin_took_over(twins: Twins) -> None:
    root = twins.root("a")
    twins.append(root, 2)
    lost = twins.cfork(root)
    twins.append(lost, 2)
    one, other = twins.sfork(lost), twins.sfork(lost)
    twins.append(one, 1)
    twins.apply(Squash(lost))
    assert compare(twins, one, other) == Comparison(4, [(4, 5)], [], complete=True)
    assert compare(twins, root, one) == Comparison(2, [], [(2, 5)], complete=True)
    twins.apply(Trim(other, 4))
    answer = compare(twins, one, other)
    assert (answer.trimmed_a, answer.only_a) == ([(0, 4)], [(4, 5)])


def test_a_promoted_record_is_the_same_in_a_fork_that_was_made_before(twins: Twins) -> None:
    root = twins.root("a")
    twins.append(root, 1)
    fork = twins.cfork(root, promotable=True)
    twins.append(fork, 2)
    kept = twins.sfork(fork)
    twins.append(root, 1)
    twins.apply(Promote(fork))
    assert compare(twins, root, kept) == Comparison(3, [(3, 4)], [], complete=True)


def test_pages_end_where_they_did_when_the_first_was_asked_for(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended, compacted and trimmed between two pages makes none of them wrong."""
    monkeypatch.setattr(comparison, "EXTENTS_MAX", 3)
    root = twins.root("a")
    twins.append(root, 2)
    fork = twins.cfork(root, "fork")
    for _ in range(8):
        twins.append(fork, 1)
        twins.append(root, 1)
    past = twins.sfork(root, "past", past=4)
    pages = [twins.state.answer(Compare(fork, past))]
    while isinstance(pages[-1], Comparison) and pages[-1].next is not None:
        twins.append(past, 1)
        twins.append(fork, 1)
        if len(pages) == 2:
            twins.swap(twins.copied(root, 0, [5]))
        pages.append(twins.state.answer(Compare(fork, past, pages[-1].next)))
    assert len(pages) > 3
    whole = together([page for page in pages if isinstance(page, Comparison)])
    assert (whole.shared, whole.complete) == (2, True)
    own = [(2, 3), (4, 5), (6, 7)]
    assert (whole.only_a, whole.only_b) == ([*own, (8, 18)], [])


def test_a_mark_that_is_no_page_of_these_logs_is_refused(twins: Twins) -> None:
    root = twins.root("a")
    twins.append(root, 2)
    for mark in (Mark(0, 0, 3, 2, 0, 0, met=False), Mark(2, 0, 1, 2, 0, 0, met=False)):
        assert isinstance(twins.state.answer(Compare(root, root, mark)), Refused)
    mark = Mark(1, 2, 3, 4, 0, 1, met=True)
    assert Mark.parse(mark.text) == mark
    for text in ("", "1.2.3", "1.2.3.4.0.1.x", f"{10**20}.2.3.4.0.1.1"):
        with pytest.raises(BadRequest):
            Mark.parse(text)
