"""Which items a replica holds: where each is in its journal, and the recent ones themselves.

There may be millions: of each there are three numbers in arrays, and no object but in the cache.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from anabranch.core.replication.entries import Item
from anabranch.core.types import LocalSequence

_OVERHEAD_BYTES = 100
"""Of an item in memory, besides its batch."""


class Holdings:
    """From `first` up to `last`, without a gap. Only what is in the journal leaves the cache."""

    def __init__(self, cache_bytes: int, first: LocalSequence = 0) -> None:
        self.first = first
        self.last = first
        self._cache_bytes = cache_bytes
        self._firsts = array("Q")
        self._bytes = array("I")
        self._indices = array("Q")
        """In the journal; of the items that are in it, which are the first so many."""
        self._recent: list[Item] = []
        """The last so many."""
        self._recent_bytes = 0

    @property
    def stored(self) -> LocalSequence:
        """Up to here it is all in the journal."""
        count = len(self._indices)
        return self._firsts[count] if count < len(self._firsts) else self.last

    def add(self, item: Item) -> None:
        assert item.first == self.last
        assert item.count > 0
        self._firsts.append(item.first)
        self._bytes.append(len(item.batch) + _OVERHEAD_BYTES)
        self._recent.append(item)
        self._recent_bytes += self._bytes[-1]
        self.last = item.end
        self._evict()

    def store(self, item: Item, index: int) -> None:
        """It is in the journal, as this entry. Items that were cut away meanwhile don't count."""
        nth = len(self._indices)
        if nth < len(self._firsts) and self._recent[nth - self._forgotten] is item:
            self._indices.append(index)
            self._evict()

    def cut(self, to: LocalSequence) -> None:
        """Let go of the items from here on."""
        assert self.first <= to <= self.last
        keep = bisect_left(self._firsts, to)
        assert keep == len(self._firsts) or self._firsts[keep] == to, "items are cut as a whole"
        gone = len(self._firsts) - keep
        if not gone:
            return
        del self._recent[max(0, len(self._recent) - gone) :]
        del self._firsts[keep:], self._bytes[keep:], self._indices[keep:]
        self._recent_bytes = sum(self._bytes[self._forgotten :])
        self.last = to

    def trim(self, below: LocalSequence) -> None:
        """Let go of journaled items that end here or before."""
        gone = len(self._firsts) if below >= self.last else bisect_right(self._firsts, below) - 1
        gone = min(gone, len(self._indices))
        if gone <= 0:
            return
        forgotten = self._forgotten
        if gone > forgotten:
            self._drop(gone - forgotten)
        del self._firsts[:gone], self._bytes[:gone], self._indices[:gone]
        self.first = self._firsts[0] if self._firsts else self.last

    def boundary(self, sequence: LocalSequence) -> LocalSequence:
        """The end of an item: here, or behind."""
        nth = bisect_left(self._firsts, sequence)
        return self._firsts[nth] if nth < len(self._firsts) else self.last

    def index(self, sequence: LocalSequence) -> int | None:
        """Of the entry in the journal that holds it, if one does."""
        nth = bisect_right(self._firsts, sequence) - 1
        return self._indices[nth] if 0 <= nth < len(self._indices) else None

    def items(self, low: LocalSequence, high: LocalSequence, bytes_max: int) -> list[Item] | None:
        """From memory: as many as have so many bytes, at least one; None if they aren't there."""
        start, end = self._span(low, high, bytes_max, len(self._firsts))
        nth = start - self._forgotten
        return self._recent[nth : end - self._forgotten] if nth >= 0 and low >= self.first else None

    def indices(self, low: LocalSequence, high: LocalSequence, bytes_max: int) -> Sequence[int]:
        """The same as entries of the journal; none if none is in it."""
        if not self.first <= low < self.stored:
            return ()
        start, end = self._span(low, high, bytes_max, len(self._indices))
        return self._indices[start:end]

    @property
    def _forgotten(self) -> int:
        """How many aren't in the cache."""
        return len(self._firsts) - len(self._recent)

    def _span(
        self, low: LocalSequence, high: LocalSequence, bytes_max: int, count: int
    ) -> tuple[int, int]:
        start = max(0, bisect_right(self._firsts, low) - 1)
        end = max(start, min(count, bisect_left(self._firsts, high)))
        total = 0
        for nth in range(start, end):
            total += self._bytes[nth]
            if total > bytes_max and nth > start:
                return start, nth
        return start, end

    def _evict(self) -> None:
        """Down to seven eighths at once, so that it is rarely done."""
        if self._recent_bytes <= self._cache_bytes:
            return
        aim = self._cache_bytes - self._cache_bytes // 8
        forgotten = self._forgotten
        total, nth = self._recent_bytes, forgotten
        while nth < len(self._indices) and total > aim:
            total -= self._bytes[nth]
            nth += 1
        self._drop(nth - forgotten)

    def _drop(self, count: int) -> None:
        forgotten = self._forgotten
        self._recent_bytes -= sum(self._bytes[forgotten : forgotten + count])
        del self._recent[:count]
