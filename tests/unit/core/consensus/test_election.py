"""Which questions get a vote, and which votes count."""

import pytest
from tests.unit.core.consensus.alone import leader, member, read

from anabranch.core.consensus.disk import Ballot, Joined
from anabranch.core.consensus.letters import (
    Accepted,
    AskVote,
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
