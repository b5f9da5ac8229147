"""Which questions get a vote, and which votes count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.consensus.alone import leader, member, read

from anabranch.core.consensus.disk import Ballot, Joined, Written
from anabranch.core.consensus.election import Poll
from anabranch.core.consensus.letters import (
    Accepted,
    AskVote,
    Entry,
    Offer,
    Vote,
)
from anabranch.core.types import MS


def test_a_probe_of_a_term_that_has_begun_is_refused() -> None:
    """A candidate that is told yes begins the term: it must be one in which votes are free."""
    council, alone = member(Joined(), Ballot(2, "b"))
    read(alone, "c", AskVote(2, 0, 0, probing=True, bidden=False))
    read(alone, "c", AskVote(3, 0, 0, probing=True, bidden=False))
    assert [each for _, _, each in council.letters] == [
        Vote(2, granted=False, probing=True, fresh=False),
        Vote(3, granted=True, probing=True, fresh=False),
    ]
    assert alone.consensus.term == 2, "a probe begins no term"


def test_an_answer_to_an_earlier_probe_is_no_vote_in_a_later_one() -> None:
    council, alone = member(Joined(), Ballot(1, "b"))
    council.run(500)
    assert council.letters[-1][2] == AskVote(2, 0, 0, probing=True, bidden=False)
    read(alone, "c", Offer(2, 0, 0, [], committed=0, joined=False))
    council.run(1_000)
    assert council.letters[-1][2] == AskVote(3, 0, 0, probing=True, bidden=False)
    read(alone, "b", Vote(2, granted=True, probing=True, fresh=False))
    council.run(10)
    assert alone.consensus.term == 2, "one that could win term 2 may not win term 3"
    read(alone, "b", Vote(3, granted=True, probing=True, fresh=False))
    council.run(10)
    assert alone.consensus.term == 3


@pytest.mark.parametrize("told", [True, False])
def test_a_leader_that_itself_did_not_run_doesnt_take_that_for_others_silence(told: bool) -> None:
    council, alone = leader()
    read(alone, "b", Accepted(2, durable=2, matched=2, fresh=False))
    assert alone.leads
    council.now += 2_000 * MS
    if told:
        alone.step(lambda: alone.consensus.was_away(2_000 * MS))
    alone.ring()
    assert alone.leads is told


def test_a_follower_that_itself_did_not_run_doesnt_stand_against_its_leader() -> None:
    council, alone = member(Joined(), Ballot(2, "b"))
    read(alone, "b", Offer(2, 0, 0, [], committed=0, joined=False))
    council.letters.clear()
    council.now += 2_000 * MS
    alone.step(lambda: alone.consensus.was_away(2_000 * MS))
    alone.ring()
    assert council.letters == []
    council.run(2_000)
    assert any(isinstance(each, AskVote) for _, _, each in council.letters)


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=8),
)
def test_fresh_votes_count_only_where_everybody_voted(
    members: int, votes: list[tuple[int, bool]]
) -> None:
    poll = Poll(term=1, members=members, probing=False, bidden=False)
    counted: dict[str, bool] = {}
    for voter, fresh in votes:
        poll.votes[f"member-{voter % members}"] = counted[f"member-{voter % members}"] = fresh
    kept = [voter for voter, fresh in counted.items() if not fresh]
    assert poll.is_plain == (2 * len(kept) > members)
    assert poll.is_unanimous == (len(counted) == members)
    assert poll.is_won == (poll.is_plain or poll.is_unanimous)


LOG = [Joined(), Ballot(3, "b"), Written(1, Entry(1, b"x")), Written(2, Entry(3, b"y"))]


@pytest.mark.parametrize(
    ("last_term", "last", "granted"),
    [(3, 2, True), (3, 3, True), (4, 1, True), (3, 1, False), (2, 9, False), (1, 2, False)],
)
@pytest.mark.parametrize("probing", [True, False])
def test_only_who_has_as_much_gets_a_vote(
    last_term: int, last: int, granted: bool, probing: bool
) -> None:
    """Raft, 5.4.1: the later last term, and the longer log where these are the same."""
    council, alone = member(*LOG)
    read(alone, "c", AskVote(4, last_term, last, probing=probing, bidden=False))
    council.run(10)
    ((_, to, vote),) = council.letters
    assert to == "c"
    assert isinstance(vote, Vote)
    assert (vote.granted, vote.probing) == (granted, probing)
    assert alone.consensus.term == (3 if probing else 4)


@given(st.lists(st.tuples(st.sampled_from("bc"), st.integers(1, 6)), max_size=10))
def test_a_member_votes_for_one_candidate_in_a_term_and_never_goes_back(
    asks: list[tuple[str, int]],
) -> None:
    council, alone = member(Joined())
    term, granted = 0, dict[int, str]()
    for candidate, asked in asks:
        council.letters.clear()
        read(alone, candidate, AskVote(asked, 9, 9, probing=False, bidden=False))
        council.run(10)
        term = max(term, asked)
        assert alone.consensus.term == term
        for _, to, vote in council.letters:
            assert isinstance(vote, Vote)
            assert (to, vote.term) == (candidate, term)
            if vote.granted:
                assert granted.setdefault(vote.term, to) == to
        if asked == term:
            assert term in granted
