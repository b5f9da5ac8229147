"""Who wrote which part of a shard's log: what two replicas compare to know what they share.

A reign is a primary's time, within one epoch and one life of that primary: it numbers each place
once. So where two replicas know of the same reign, their logs are the same up to its first place,
and from there on up to where the shorter of the two leaves it (Kafka calls them leader epochs;
Raft, terms).
"""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from anabranch.core.types import LocalSequence

_LIFE_BITS = 32


class Reign(msgspec.Struct, frozen=True, array_like=True, tag="reign", gc=False):
    number: int
    """Its epoch, then which of this epoch's it is: they are compared as they are."""
    first: LocalSequence
    """Where its part of the log begins."""


def epoch_of(reign: int) -> int:
    return reign >> _LIFE_BITS


def reign_after(reign: int, epoch: int) -> int:
    """The first of this epoch that is higher."""
    return max(reign + 1, epoch << _LIFE_BITS)


class Reigns:
    """Those of one replica's log, in order. One that wrote nothing counts: it is the last word on
    what came before (Raft, 5.4.2).
    """

    def __init__(self, known: Sequence[Reign] = ()) -> None:
        self._known = list(known)

    @property
    def all(self) -> tuple[Reign, ...]:
        return tuple(self._known)

    @property
    def last(self) -> int:
        """Its number; 0: nobody ever wrote."""
        return self._known[-1].number if self._known else 0

    def add(self, reign: Reign) -> None:
        """One that isn't new is one that is replayed."""
        if reign.number > self.last:
            self._known.append(reign)

    def holds(self, reign: Reign) -> bool:
        """And not another of its number, which is void."""
        return any(known is reign for known in self._known)

    def cut(self, number: int) -> None:
        """Forget those after this one."""
        while self.last > number:
            self._known.pop()

    def since(self, number: int) -> tuple[Reign, ...]:
        return tuple(reign for reign in self._known if reign.number > number)

    def at(self, sequence: LocalSequence) -> int:
        """The last that began here or before; 0: none."""
        index = bisect_right(self._known, sequence, key=lambda reign: reign.first)
        return self._known[index - 1].number if index else 0

    def forget(self, first: LocalSequence) -> None:
        """Those that ended below aren't asked for again."""
        while len(self._known) > 1 and self._known[1].first <= first:
            self._known.pop(0)

    def shared(
        self, end: LocalSequence, theirs: Sequence[Reign], their_end: LocalSequence
    ) -> tuple[int, LocalSequence]:
        """The last reign that both know, and up to where the two logs are the same by it."""
        mine = {reign.number for reign in self._known}
        common = max((reign.number for reign in theirs if reign.number in mine), default=0)
        if not common:
            return 0, 0
        return common, min(_end(self._known, common, end), _end(theirs, common, their_end))


def _end(reigns: Sequence[Reign], number: int, end: LocalSequence) -> LocalSequence:
    return next((reign.first for reign in reigns if reign.number > number), end)
