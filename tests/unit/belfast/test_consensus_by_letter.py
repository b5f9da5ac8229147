"""One member of a sequencing group, written to letter by letter."""

import msgspec
from tests.unit.belfast.council import Council, Councillor

from anabranch.core.belfast.consensus_disk import Ballot, Joined, Record, Written
from anabranch.core.belfast.consensus_letters import (
    Accepted,
    ConsensusLetter,
    Entry,
    Offer,
    Vote,
)


def member(*records: Record) -> tuple[Council, Councillor]:
    """Alone among three, with this on its disk."""
    council = Council()
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
