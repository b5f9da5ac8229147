"""A leader, written to letter by letter: what it commits, and what it sends again."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.consensus.alone import leader, read

from anabranch.core.consensus.letters import (
    Accepted,
    Offer,
)


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


@given(st.lists(st.tuples(st.sampled_from("bc"), st.integers(0, 2)), max_size=12))
def test_committed_is_what_a_majority_has_on_disk_with_an_entry_of_the_own_term(
    letters: list[tuple[str, int]],
) -> None:
    """The first entry is of an earlier term, and the second its own."""
    council, alone = leader()
    council.run(10)
    durable = {"a": 2, "b": 0, "c": 0}
    for sender, held in letters:
        read(alone, sender, Accepted(2, durable=held, matched=held, fresh=False))
        durable[sender] = max(durable[sender], held)
        agreed = sorted(durable.values())[1]
        assert alone.consensus.committed == (agreed if agreed == 2 else 0)
        assert alone.leads == (agreed == 2)
