"""Which primary wrote which part of a replicated log: what two replicas compare to find out how
much of their logs is the same.

A term is one primary's time within one epoch, one life of that primary and one view of its
writers. Within a term a primary gives each place to one item only. So where two replicas know the
same term, their logs are the same up to its first place, and from there up to where the shorter
log leaves the term (Kafka calls terms leader epochs).
"""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from anabranch.core.types import LocalSequence
from anabranch.core.wire.numbers import Bounded

_LIFE_BITS = 32


class Term(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="reign", gc=False):
    number: Bounded
    """The epoch in the upper half, and a count of the epoch's terms below: compared as a whole."""
    first: Bounded
    """Where the term's part of the log begins."""
    view: Bounded = 0
    """The primary takes nothing from writers of an earlier view. Never falls along a log."""


def epoch_of(number: int) -> int:
    return number >> _LIFE_BITS


def next_number(highest: int, epoch: int) -> int:
    """The first number of this epoch that is higher."""
    assert 0 <= epoch < 1 << _LIFE_BITS
    return max(highest + 1, epoch << _LIFE_BITS)


class Terms:
    """The terms of one replica's log, in order.

    A term without items counts too: a replica that knows it has everything that the term's primary
    had at its beginning (Raft, 5.4.2).
    """

    def __init__(self, known: Sequence[Term] = ()) -> None:
        self._known = list(known)

    @property
    def all(self) -> tuple[Term, ...]:
        return tuple(self._known)

    @property
    def last(self) -> int:
        """The last term's number; 0 before the first term."""
        return self._known[-1].number if self._known else 0

    @property
    def view(self) -> int:
        return self._known[-1].view if self._known else 0

    def add(self, term: Term) -> None:
        """A term that is known already comes from a replay, and is ignored."""
        if term.number > self.last:
            assert term.view >= self.view, "views never fall along a log"
            self._known.append(term)

    def holds(self, term: Term) -> bool:
        """True for this very object: another term of the same number is void."""
        return any(known is term for known in self._known)

    def cut(self, number: int) -> None:
        """Forget the terms after this one."""
        while self.last > number:
            self._known.pop()

    def since(self, number: int) -> tuple[Term, ...]:
        return tuple(term for term in self._known if term.number > number)

    def at(self, sequence: LocalSequence) -> int:
        """The number of the last term that begins at this place or before; 0 if none does."""
        index = bisect_right(self._known, sequence, key=lambda term: term.first)
        return self._known[index - 1].number if index else 0

    def forget(self, first: LocalSequence) -> None:
        """Forget the terms that end at or below the log's first place: no comparison needs them."""
        while len(self._known) > 1 and self._known[1].first <= first:
            self._known.pop(0)

    def shared(
        self, end: LocalSequence, theirs: Sequence[Term], their_end: LocalSequence
    ) -> tuple[int, LocalSequence]:
        """The last term that both logs know, and up to where they are the same because of it."""
        mine = {term.number for term in self._known}
        common = max((term.number for term in theirs if term.number in mine), default=0)
        if not common:
            return 0, 0
        return common, min(_end(self._known, common, end), _end(theirs, common, their_end))


def _end(terms: Sequence[Term], number: int, end: LocalSequence) -> LocalSequence:
    return next((term.first for term in terms if term.number > number), end)
