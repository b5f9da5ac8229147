"""A follower, written to letter by letter: what it acknowledges, and when."""

from tests.unit.core.consensus.alone import member, read

from anabranch.core.consensus.disk import Ballot, Joined, Written
from anabranch.core.consensus.letters import (
    Accepted,
    Entry,
    Offer,
)


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
