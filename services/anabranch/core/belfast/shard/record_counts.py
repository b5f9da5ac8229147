"""Which places of a shard's local log hold records, and which no-ops, as numbers."""

from bisect import bisect_right
from operator import itemgetter

import msgspec

from anabranch.core.replication.entries import Item
from anabranch.core.types import LocalSequence

_FORGET_FROM = 1_024


class Counted(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A tally, as an image holds it."""

    last: LocalSequence
    records: int
    stretches: list[tuple[LocalSequence, int, bool]]
    """First place, records before it, and whether there are records there."""
    uncounted: LocalSequence = 0


_first = itemgetter(0)


class Tally:
    """Kept by stretches, from the last forgotten place on."""

    def __init__(self) -> None:
        self.last: LocalSequence = 0
        self.records = 0
        """Below `last`."""
        self.uncounted: LocalSequence = 0
        """Places below `last` that were never logged here: neither are their records counted."""
        self._stretches: list[tuple[LocalSequence, int, bool]] = []

    def logged(self, item: Item) -> None:
        assert item.first == self.last, "a local log has no gaps"
        real = bool(item.batch)
        if not self._stretches or self._stretches[-1][2] != real:
            self._stretches.append((item.first, self.records, real))
        self.last = item.end
        self.records += item.count if real else 0

    def below(self, local: LocalSequence) -> int:
        """Records below this place; one that is forgotten counts as the oldest that isn't."""
        index = bisect_right(self._stretches, local, key=_first) - 1
        if index < 0:
            return self._stretches[0][1] if self._stretches else self.records
        first, before, real = self._stretches[index]
        return before + (min(local, self.last) - first if real else 0)

    def noops_below(self, local: LocalSequence) -> int:
        """Of the places whose records are counted."""
        return max(0, local - self.uncounted - self.below(local))

    def cut_back(self, to: LocalSequence) -> None:
        if to >= self.last:
            return
        self.records = self.below(to)
        assert self.records <= to - self.uncounted, "no place holds two records"
        self.last = to
        while self._stretches and self._stretches[-1][0] >= to:
            self._stretches.pop()

    def skip(self, to: LocalSequence) -> None:
        """The log begins anew here; what it held was counted."""
        self.uncounted += to - self.last
        self.last = to
        self._stretches = []

    def image(self) -> Counted:
        return Counted(
            last=self.last,
            records=self.records,
            stretches=list(self._stretches),
            uncounted=self.uncounted,
        )

    def restore(self, counted: Counted) -> None:
        assert not self._stretches, "an image comes before all items"
        self.last, self.records = counted.last, counted.records
        self.uncounted = counted.uncounted
        self._stretches = list(counted.stretches)

    def forget(self, below: LocalSequence) -> None:
        """Nobody asks for less, and nothing below is cut back."""
        gone = bisect_right(self._stretches, below, key=_first) - 1
        if gone >= _FORGET_FROM:
            del self._stretches[:gone]
