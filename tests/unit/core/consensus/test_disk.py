"""What a disk holds after a crash, and what does not count as written."""

from tests.unit.core.consensus.alone import member, read, restarted_from_a_snapshot

from anabranch.core.consensus.disk import Ballot, Joined, Written
from anabranch.core.consensus.letters import (
    Accepted,
    AskVote,
    Entry,
    Offer,
    Vote,
)


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
