"""One member of a sequencing group, written to letter by letter."""

from collections.abc import Callable

import msgspec
import pytest
from tests.unit.core.consensus.council import Council, Councillor

from anabranch.core.consensus.disk import Ballot, Joined, Record, Written
from anabranch.core.consensus.letters import (
    Accepted,
    AskVote,
    ConsensusLetter,
    Entry,
    Offer,
    Vote,
)
from anabranch.core.types import MS
from anabranch_sim.belfast.mutants import CONSENSUS_MUTANTS
from anabranch_sim.world.mutants import Mutant, broken


def member(*records: Record, snapshot_entries: int = 10_000) -> tuple[Council, Councillor]:
    """Alone among three, with this on its disk."""
    council = Council(snapshot_entries=snapshot_entries)
    alone = council.members["a"]
    alone.paper.entries = [msgspec.msgpack.encode(each) for each in records]
    alone.start()
    return council, alone


def read(reader: Councillor, sender: str, letter: ConsensusLetter) -> None:
    reader.step(lambda: reader.consensus.received(sender, letter))


def leader() -> tuple[Council, Councillor]:
    """Of term 2, with an entry of term 1 before its own first."""
    council, alone = member(Joined(), Ballot(1, "b"), Written(1, Entry(1, b"old")))
    council.run(500)
    read(alone, "b", Vote(2, granted=True, probing=True, fresh=False))
    council.run(10)
    read(alone, "b", Vote(2, granted=True, probing=False, fresh=False))
    council.run(10)
    assert alone.consensus.leader == "a"
    assert alone.consensus.last == 2
    return council, alone


def test_an_entry_of_an_earlier_term_is_not_committed_by_counting_its_copies() -> None:
    """Raft, 5.4.2: another leader may still cut it off."""
    _, alone = leader()
    read(alone, "b", Accepted(2, durable=1, matched=1, fresh=False))
    assert alone.consensus.committed == 0
    assert not alone.leads
    read(alone, "b", Accepted(2, durable=2, matched=2, fresh=False))
    assert alone.consensus.committed == 2
    assert alone.leads


def test_what_a_fresh_member_holds_counts_when_it_has_joined() -> None:
    council, alone = leader()
    council.letters.clear()
    read(alone, "c", Accepted(2, durable=2, matched=2, fresh=True))
    assert alone.consensus.committed == 0
    assert alone.consensus.last == 3, (
        "an entry by which the others show that this leader is the last"
    )
    read(alone, "c", Accepted(2, durable=3, matched=3, fresh=True))
    council.run(100)
    assert alone.consensus.committed == 0
    assert not any(isinstance(each, Offer) and each.joined for _, _, each in council.letters)
    read(alone, "b", Accepted(2, durable=3, matched=3, fresh=False))
    assert alone.consensus.committed == 3
    council.run(100)
    assert {to for _, to, each in council.letters if isinstance(each, Offer) and each.joined} == {
        "c"
    }


def test_a_disk_that_was_lost_is_filled_again_from_its_beginning() -> None:
    council, alone = leader()
    read(alone, "c", Accepted(2, durable=2, matched=2, fresh=False))
    read(alone, "c", Accepted(2, durable=0, matched=0, fresh=True))
    alone.step(lambda: alone.consensus.linked("c"))
    offer = [each for _, to, each in council.letters if to == "c" and isinstance(each, Offer)][-1]
    assert offer.previous == 0


def test_a_follower_promises_nothing_in_a_term_that_its_disk_does_not_remember() -> None:
    council, alone = member(Joined(), Ballot(1, "b"), Written(1, Entry(1, b"x")))
    council.conditions.disk_ms = (50, 50)
    read(alone, "c", Offer(2, 1, 1, [], committed=0, joined=False))
    council.run(40)
    assert not council.letters
    council.run(20)
    assert council.letters == [("a", "c", Accepted(2, durable=1, matched=1, fresh=False))]


def test_what_is_cut_off_does_not_count_as_durable() -> None:
    council, alone = member(
        Joined(), Ballot(1, "b"), Written(1, Entry(1, b"x")), Written(2, Entry(1, b"y"))
    )
    read(alone, "c", Offer(2, 1, 1, [], committed=0, joined=False))
    council.run(10)
    council.letters.clear()
    council.conditions.disk_ms = (50, 50)
    read(alone, "c", Offer(2, 1, 1, [Entry(2, b"z")], committed=0, joined=False))
    read(alone, "c", Offer(2, 2, 2, [], committed=0, joined=False))
    assert council.letters == [("a", "c", Accepted(2, durable=1, matched=2, fresh=False))]
    council.run(60)
    assert council.letters[1:] == [("a", "c", Accepted(2, durable=2, matched=2, fresh=False))]


def test_a_write_that_was_cut_off_under_way_does_not_count_as_durable() -> None:
    council, alone = member(Joined(), Ballot(2, "b"), Written(1, Entry(1, b"x")))
    council.conditions.disk_ms = (50, 50)
    read(alone, "b", Offer(2, 1, 1, [Entry(2, b"y"), Entry(2, b"z")], committed=0, joined=False))
    council.run(10)
    read(alone, "c", Offer(3, 1, 1, [Entry(3, b"new")], committed=0, joined=False))
    council.run(45)
    assert alone.consensus.last == 2
    assert not any(
        isinstance(each, Accepted) and each.durable > 1 for _, _, each in council.letters
    )
    council.run(60)
    assert council.letters[-1] == ("a", "c", Accepted(3, durable=2, matched=2, fresh=False))


def restarted_from_a_snapshot() -> tuple[Council, Councillor]:
    """It has voted for b in term 2, and its journal holds nothing but a snapshot."""
    council, alone = member(Joined(), snapshot_entries=1)
    read(alone, "b", AskVote(2, 0, 0, probing=False, bidden=False))
    council.run(10)
    assert council.letters == [("a", "b", Vote(2, granted=True, probing=False, fresh=False))]
    assert alone.paper.snapshot is not None
    assert not alone.paper.entries
    alone.crash()
    council.letters.clear()
    alone.start()
    return council, alone


def test_a_vote_survives_a_snapshot_and_a_restart() -> None:
    council, alone = restarted_from_a_snapshot()
    read(alone, "c", AskVote(2, 0, 0, probing=False, bidden=False))
    council.run(10)
    told = [(to, each.granted) for _, to, each in council.letters if isinstance(each, Vote)]
    assert told == [("c", False)], "it voted for b in this term"


def test_a_member_that_has_joined_isnt_fresh_after_a_snapshot_and_a_restart() -> None:
    council, alone = restarted_from_a_snapshot()
    read(alone, "b", AskVote(2, 0, 0, probing=False, bidden=False))
    assert council.letters == [("a", "b", Vote(2, granted=True, probing=False, fresh=False))]


def test_entries_cut_off_while_in_flight_with_the_new_term_do_not_count_as_durable() -> None:
    """The old leader's entries and the new term's ballot are one write. What the new leader puts
    in the entries' place is on no disk yet when that write is done.
    """
    council, alone = member(Joined(), Ballot(2, "b"), Written(1, Entry(1, b"x")))
    council.conditions.disk_ms = (50, 50)
    read(alone, "b", Offer(2, 1, 1, [Entry(2, b"w")], committed=0, joined=False))
    read(alone, "b", Offer(2, 2, 2, [Entry(2, b"y"), Entry(2, b"z")], committed=0, joined=False))
    read(alone, "c", AskVote(3, 2, 4, probing=False, bidden=True))
    council.run(60)
    read(alone, "c", Offer(3, 1, 1, [Entry(3, b"new")], committed=0, joined=False))
    council.run(45)
    told = [each for _, _, each in council.letters if isinstance(each, Accepted)]
    assert told[-1:] == [Accepted(3, durable=1, matched=2, fresh=False)]
    council.run(60)
    assert council.letters[-1] == ("a", "c", Accepted(3, durable=2, matched=2, fresh=False))


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


def test_a_member_whose_disk_refuses_is_silent_until_the_disk_is_back() -> None:
    """A leader that heard from it would count it as reachable, and lead a majority that can't
    commit anything.
    """
    council, alone = member(Joined(), Ballot(2, "b"))
    read(alone, "b", Offer(2, 0, 0, [], committed=0, joined=False))
    council.letters.clear()
    council.conditions.disk_failures = 1.0
    read(alone, "b", Offer(2, 0, 0, [Entry(2, b"x")], committed=0, joined=False))
    council.run(10)
    assert alone.consensus.last == 1
    read(alone, "b", Offer(2, 1, 2, [], committed=1, joined=False))
    read(alone, "c", AskVote(3, 2, 1, probing=True, bidden=True))
    council.run(2_000)
    assert council.letters == []
    assert alone.consensus.committed == 0
    council.conditions.disk_failures = 0.0
    council.run(1_000)
    read(alone, "b", Offer(2, 1, 2, [], committed=1, joined=False))
    told = [each for _, _, each in council.letters if isinstance(each, Accepted)]
    assert told == [Accepted(2, durable=1, matched=1, fresh=False)]


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


FINDS: dict[str, Callable[[], None]] = {
    "a snapshot forgets the vote": test_a_vote_survives_a_snapshot_and_a_restart,
    "a snapshot forgets joined": (
        test_a_member_that_has_joined_isnt_fresh_after_a_snapshot_and_a_restart
    ),
    "what is cut off counts as written": (
        test_entries_cut_off_while_in_flight_with_the_new_term_do_not_count_as_durable
    ),
    "a probe's term is ignored": test_a_probe_of_a_term_that_has_begun_is_refused,
    "the term of a probe's answer is ignored": (
        test_an_answer_to_an_earlier_probe_is_no_vote_in_a_later_one
    ),
    "a faulty disk's member speaks": (
        test_a_member_whose_disk_refuses_is_silent_until_the_disk_is_back
    ),
}


@pytest.mark.parametrize("mutant", CONSENSUS_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_rule_of_the_consensus_is_found(mutant: Mutant) -> None:
    with broken(mutant), pytest.raises(AssertionError):
        FINDS[mutant.name]()
