"""Which places of a shard's local log hold records, and which no-ops, as numbers."""

from bisect import bisect_right

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


class Tally:
    """Kept by stretches, from the last forgotten place on."""

    def __init__(self) -> None:
        self.last: LocalSequence = 0
        self.records = 0
        """Below `last`."""
        self.uncounted: LocalSequence = 0
        """Places below `last` that were never logged here: neither are their records counted."""
        self._firsts: list[LocalSequence] = []
        self._before: list[int] = []
        """Records before each stretch."""
        self._real: list[bool] = []

    def logged(self, item: Item) -> None:
        assert item.first == self.last, "a local log has no gaps"
        real = bool(item.batch)
        if not self._real or self._real[-1] != real:
            self._firsts.append(item.first)
            self._before.append(self.records)
            self._real.append(real)
        self.last = item.end
        self.records += item.count if real else 0

    def below(self, local: LocalSequence) -> int:
        """Records below this place; one that is forgotten counts as the oldest that isn't."""
        index = bisect_right(self._firsts, local) - 1
        if index < 0:
            return self._before[0] if self._before else self.records
        extent = min(local, self.last) - self._firsts[index]
        return self._before[index] + (extent if self._real[index] else 0)

    def noops_below(self, local: LocalSequence) -> int:
        """Of the places whose records are counted."""
        return max(0, local - self.uncounted - self.below(local))

    def cut_back(self, to: LocalSequence) -> None:
        if to >= self.last:
            return
        self.records = self.below(to)
        assert self.records <= to - self.uncounted, "no place holds two records"
        self.last = to
        while self._firsts and self._firsts[-1] >= to:
            self._firsts.pop()
            self._before.pop()
            self._real.pop()

    def skip(self, to: LocalSequence) -> None:
        """The log begins anew here; what it held was counted."""
        self.uncounted += to - self.last
        self.last = to
        self._firsts, self._before, self._real = [], [], []

    def image(self) -> Counted:
        stretches = zip(self._firsts, self._before, self._real, strict=True)
        return Counted(
            last=self.last,
            records=self.records,
            stretches=list(stretches),
            uncounted=self.uncounted,
        )

    def restore(self, counted: Counted) -> None:
        assert not self._firsts, "an image comes before all items"
        self.last, self.records = counted.last, counted.records
        self.uncounted = counted.uncounted
        for first, before, real in counted.stretches:
            self._firsts.append(first)
            self._before.append(before)
            self._real.append(real)

    def forget(self, below: LocalSequence) -> None:
        """Nobody asks for less, and nothing below is cut back."""
        gone = bisect_right(self._firsts, below) - 1
        if gone >= _FORGET_FROM:
            del self._firsts[:gone], self._before[:gone], self._real[:gone]
