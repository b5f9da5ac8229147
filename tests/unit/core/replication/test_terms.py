"""What two replicas find that their logs share, against a comparison place by place."""

from random import Random

import pytest

from anabranch.core.replication.terms import Term, Terms, epoch_of, next_number


class History:
    """A log as one replica may have it: by place, the term that wrote it."""

    def __init__(self, written: list[int], terms: list[Term]) -> None:
        self.written = written
        self.terms = terms

    def lead(self, number: int, count: int) -> "History":
        """A primary begins a term on top of this, and writes so many places."""
        first = len(self.written)
        return History(
            [*self.written, *[number] * count], [*self.terms, Term(number=number, first=first)]
        )

    def cut(self, to: int) -> "History":
        """The part that a replica had copied when the primary crashed."""
        return History(self.written[:to], [term for term in self.terms if term.first <= to])

    @property
    def known(self) -> Terms:
        return Terms(self.terms)


def shared_places(one: History, other: History) -> int:
    both = zip(one.written, other.written, strict=False)
    return next(
        (place for place, (mine, theirs) in enumerate(both) if mine != theirs),
        min(len(one.written), len(other.written)),
    )


@pytest.mark.parametrize("seed", range(60))
def test_logs_with_a_common_term_are_the_same_exactly_as_far_as_they_say(seed: int) -> None:
    chance = Random(seed)
    logs = [History([], []).lead(1, chance.randint(0, 3))]
    for number in range(2, 12):
        base = chance.choice(logs)
        kept = base.cut(chance.randint(base.terms[-1].first, len(base.written)))
        logs.append(kept.lead(number, chance.randint(0, 3)))
    one, other = chance.choice(logs), chance.choice(logs)
    common, shared = one.known.shared(len(one.written), other.known.all, len(other.written))
    assert common == max(
        {term.number for term in one.terms} & {term.number for term in other.terms}
    )
    assert shared <= shared_places(one, other), "what differs is never taken for the same"
    if common in {one.terms[-1].number, other.terms[-1].number}:
        assert shared == shared_places(one, other), "one log is behind the other: nothing is cut"


def test_logs_without_a_common_term_share_nothing() -> None:
    assert Terms([Term(number=1, first=0)]).shared(5, (Term(number=2, first=0),), 5) == (0, 0)


def test_a_replayed_term_is_added_once_and_cut_terms_are_gone() -> None:
    terms = Terms()
    for _ in range(2):
        terms.add(Term(number=1, first=0))
    terms.add(Term(number=2, first=4, view=3))
    assert (terms.last, terms.view, len(terms.all)) == (2, 3, 2)
    terms.cut(1)
    assert (terms.last, terms.view) == (1, 0)


def test_views_never_fall_along_a_log() -> None:
    terms = Terms([Term(number=1, first=0, view=2)])
    with pytest.raises(AssertionError, match="views"):
        terms.add(Term(number=2, first=0, view=1))


def test_terms_below_the_first_place_are_forgotten_but_for_the_one_that_holds_it() -> None:
    terms = Terms([Term(number=1, first=0), Term(number=2, first=4), Term(number=3, first=8)])
    terms.forget(5)
    assert [term.number for term in terms.all] == [2, 3]
    assert [terms.at(place) for place in (3, 4, 8, 9)] == [0, 2, 3, 3]


def test_numbers_grow_within_an_epoch_and_from_one_to_the_next() -> None:
    first = next_number(0, 1)
    assert first < next_number(first, 1) < next_number(first, 2)
    assert epoch_of(next_number(first, 1)) == 1
    assert epoch_of(next_number(next_number(first, 1), 2)) == 2
