"""A follower, written to letter by letter: what it acknowledges, and when."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.consensus.alone import member, read

from anabranch.core.consensus.disk import Ballot, Joined, Written
from anabranch.core.consensus.letters import (
    Accepted,
    Entry,
    Install,
    Missed,
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


def test_an_image_below_what_was_offered_before_takes_that_back() -> None:
    """A leader that knows little of a slow disk sends an image, though offers had come further."""
    council, alone = member(Joined(), Ballot(1, "b"))
    entries = [Entry(1, b"%d" % nth) for nth in range(1, 6)]
    read(alone, "b", Offer(1, 0, 0, entries, committed=0, joined=False))
    image = msgspec.msgpack.encode(([b"1", b"2", b"3"], msgspec.msgpack.encode([b"1", b"2", b"3"])))
    read(alone, "b", Install(1, 3, 1, image))
    read(alone, "b", Offer(1, 3, 1, [], committed=5, joined=False))
    council.run(10)
    assert alone.consensus.committed == alone.consensus.last == 3
    assert council.letters[-1][2] == Accepted(1, durable=3, matched=3, fresh=False)


def terms(draw_from: list[int]) -> list[int]:
    """Terms never fall along a log."""
    return sorted(draw_from)


logs = st.lists(st.integers(1, 4), max_size=8).map(terms)


@given(logs, logs)
def test_a_follower_comes_to_have_its_leaders_log_whatever_it_had(
    mine: list[int], theirs: list[int]
) -> None:
    """Raft, 5.3: the leader goes back to where the logs part, a term at a time. Entries of one term
    at one place are the same in both, as they are in every group.
    """
    shared = 0
    while shared < min(len(mine), len(theirs)) and mine[shared] == theirs[shared]:
        shared += 1
    # Behind a first difference no two entries are of one term: one leader wrote each term.
    mine = [*mine[:shared], *(term for term in mine[shared:] if term not in theirs[shared:])]
    written = [Written(nth, Entry(term, b"%d" % nth)) for nth, term in enumerate(mine, 1)]
    council, alone = member(Joined(), Ballot(4, "b"), *written)
    entries = [Entry(term, b"%d" % nth) for nth, term in enumerate(theirs, 1)]
    known = [0, *theirs]
    previous, letters = len(entries), 0
    while True:
        council.letters.clear()
        offer = Offer(5, previous, known[previous], entries[previous:], committed=0, joined=False)
        read(alone, "b", offer)
        council.run(10)
        letters += 1
        missed = [each for _, _, each in council.letters if isinstance(each, Missed)]
        if not missed:
            break
        assert missed[-1].hint < previous, "an attempt there would be vain"
        previous = max(0, min(previous - 1, missed[-1].hint))
    answer = council.letters[-1][2]
    assert isinstance(answer, Accepted)
    assert answer.durable == answer.matched == len(entries)
    assert letters <= len(set(mine)) + 2
    read(alone, "b", Offer(5, len(entries), known[-1], [], committed=len(entries), joined=False))
    assert alone.consensus.entries(0, 100) == (1, [entry.content for entry in entries])
