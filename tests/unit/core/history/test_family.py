"""Who begat whom, how each log ended, and in which log a position lies for good."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.history.calls import (
    UNTOLD,
    Append,
    Create,
    Fate,
    Final,
    Fork,
    History,
    Promote,
    Squash,
    Verdict,
)
from anabranch.core.history.family import Family, Latest, Violation
from anabranch.core.types import Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN

Tale = Any
"""Of conftest: test modules don't import one another."""


def family(tale: Tale) -> Family:
    return Family(tale.history)


def test_a_violation_reads_as_its_rule_and_what_broke_it() -> None:
    assert str(Violation("8 squash", "it was squashed")) == "8 squash: it was squashed"


def test_a_log_that_nobody_made_is_a_violation(tale: Tale) -> None:
    tale.end(ROOT)
    tale.end(FORK)
    (violation,) = family(tale).violations
    assert violation.rule == "2 nothing unasked"
    assert "fork-2" in violation.says


def test_a_refused_fork_has_made_nothing(tale: Tale) -> None:
    fork = tale.fork(FORK, ROOT, 0)
    fork.verdict, fork.log = REFUSED, UNTOLD
    tale.end(ROOT)
    assert set(family(tale).members) == {ROOT}
    tale.end(FORK)
    assert [each.rule for each in family(tale).violations] == ["2 nothing unasked"]


def test_a_fork_without_an_answer_is_found_by_its_name_and_has_the_final_fork_point(
    tale: Tale,
) -> None:
    untold = tale.at(UNTOLD, UNKNOWN) | {"name": "fork-2", "parent": ROOT}
    tale.say(Fork(**untold, kind=Kind.CONTINUOUS))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED, fork_point=3)
    member = family(tale).members[FORK]
    assert (member.kind, member.parent, member.fork_point) == (Kind.CONTINUOUS, ROOT, 3)
    assert not member.measured, "nobody was told its fork point before it ended"


def test_a_root_has_no_parent_and_no_fork_point(tale: Tale) -> None:
    tale.end(ROOT)
    member = family(tale).members[ROOT]
    assert (member.kind, member.parent, member.fork_point) == (Kind.ROOT, None, 0)
    assert not member.promotable
    assert member.alive


def test_a_log_without_a_final_counts_as_squashed(tale: Tale) -> None:
    member = family(tale).members[ROOT]
    assert (member.fate, member.alive) == (Fate.SQUASHED, False)


def test_calls_that_may_have_ended_a_log_are_kept_with_it(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.say(Promote(**tale.at(FORK, REFUSED, "overloaded")))
    unsure = tale.say(Promote(**tale.at(FORK, UNKNOWN)))
    squash = tale.say(Squash(**tale.at(FORK)))
    tale.say(Squash(**tale.at(LogId(99))))
    member = family(tale).members[FORK]
    assert member.promotes == [unsure]
    assert member.squashes == [squash]


def test_a_record_that_was_sent_twice_makes_no_history(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.append(ROOT, 10)
    with pytest.raises(AssertionError, match="10 was sent twice"):
        family(tale)


def promoted_in_a_chain(tale: Tale) -> Family:
    """FORK of ROOT and RIVAL of FORK, both promoted; BESIDE is a living fork of RIVAL."""
    tale.fork(FORK, ROOT, 2, promotable=True)
    tale.fork(RIVAL, FORK, 4, promotable=True)
    tale.fork(BESIDE, RIVAL, 6)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.PROMOTED)
    tale.end(BESIDE, kind=Kind.CONTINUOUS, parent=RIVAL, fork_point=6)
    return family(tale)


def test_what_was_promoted_lives_on_in_the_last_log_of_the_chain(tale: Tale) -> None:
    found = promoted_in_a_chain(tale)
    assert [found.survivor(log) for log in (ROOT, FORK, RIVAL, BESIDE)] == [
        ROOT,
        ROOT,
        ROOT,
        BESIDE,
    ]
    assert found.survivor(LogId(99)) == LogId(99)


def test_a_lineage_names_survivors_up_to_the_root(tale: Tale) -> None:
    found = promoted_in_a_chain(tale)
    assert [member.log for member in found.lineage(BESIDE)] == [BESIDE, ROOT]
    assert [member.log for member in found.lineage(RIVAL)] == [ROOT]
    assert list(found.lineage(LogId(99))) == []
    parent = found.parent(BESIDE)
    assert parent is not None
    assert parent.log == ROOT
    assert found.parent(ROOT) is None


@pytest.mark.parametrize(
    ("position", "place"), [(0, (ROOT, 0)), (5, (ROOT, 5)), (6, (BESIDE, 6)), (9, (BESIDE, 9))]
)
def test_a_position_below_the_fork_point_is_the_parents(
    tale: Tale, position: int, place: tuple[LogId, int]
) -> None:
    assert promoted_in_a_chain(tale).place(BESIDE, position) == place


def test_a_squashed_rival_shares_only_what_the_winner_did_not_move(tale: Tale) -> None:
    """It was forked at 5, but the winner's records begin at 3: what it saw there has moved."""
    tale.fork(FORK, ROOT, 3, promotable=True)
    tale.fork(RIVAL, ROOT, 5, promotable=True)
    tale.say(Promote(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.SQUASHED)
    found = family(tale)
    assert found.members[RIVAL].stable == 3
    assert found.place(RIVAL, 2) == (ROOT, 2)
    assert found.place(RIVAL, 4) == (RIVAL, 4)


def test_a_promotion_before_a_fork_moves_nothing_that_the_fork_saw(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 3, promotable=True)
    tale.say(Promote(**tale.at(FORK)))
    tale.fork(RIVAL, ROOT, 5, promotable=True)
    tale.say(Squash(**tale.at(RIVAL)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.SQUASHED)
    assert family(tale).members[RIVAL].stable == 5


def test_records_are_found_where_they_are_from_the_start_on(tale: Tale) -> None:
    tale.end(ROOT, 20, 21, start=7)
    assert family(tale).where(ROOT) == {20: 7, 21: 8}


def test_names_are_shown_with_their_ids_and_unknown_logs_by_id_alone(tale: Tale) -> None:
    found = family(tale)
    assert found.name(ROOT) == "root(1)"
    assert found.name(LogId(9)) == "log 9"
    assert found.told(ROOT)
    assert not found.told(UNTOLD)
    assert not found.told(LogId(9))


def test_a_sender_is_known_for_every_record_of_a_batch(tale: Tale) -> None:
    append = tale.append(ROOT, 1, 2, 3)
    assert {record: call is append for record, call in family(tale).sender.items()} == {
        1: True,
        2: True,
        3: True,
    }


@given(
    known=st.lists(st.tuples(st.integers(0, 20), st.integers(-5, 5)), max_size=12),
    time=st.integers(-1, 22),
)
def test_the_latest_is_the_greatest_of_what_was_known_before(
    known: list[tuple[int, int]], time: int
) -> None:
    before = [value for at, value in known if at < time]
    assert Latest(list(known)).before(time) == (max(before) if before else None)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), min_size=1, max_size=12), st.data())
def test_survivors_are_what_walking_up_promotions_finds(
    shapes: list[tuple[bool, int]], data: st.DataObject
) -> None:
    """Of any forest, in whatever order its logs are asked for."""
    history = History([Create(client=1, log=LogId(0), invoked=0, verdict=OK, returned=1, name="0")])
    history.finals.append(Final(log=LogId(0), name="0"))
    parents: dict[int, int] = {}
    for number, (promoted, above) in enumerate(shapes, 1):
        parents[number] = above % number
        fork = Fork(
            client=1,
            log=LogId(number),
            invoked=2,
            returned=3,
            verdict=OK,
            name=str(number),
            parent=LogId(parents[number]),
            kind=Kind.CONTINUOUS,
            promotable=True,
        )
        history.calls.append(fork)
        fate = Fate.PROMOTED if promoted else Fate.ALIVE
        history.finals.append(Final(log=LogId(number), name=str(number), fate=fate))
    found = Family(history)
    for log in data.draw(st.permutations(range(len(shapes) + 1))):
        at = log
        while at and shapes[at - 1][0]:
            at = parents[at]
        assert found.survivor(LogId(log)) == at


def test_an_append_that_was_refused_has_still_sent_its_records(tale: Tale) -> None:
    refused = tale.say(Append(**tale.at(ROOT, REFUSED, "overloaded"), records=[5]))
    assert family(tale).sender[5] is refused
