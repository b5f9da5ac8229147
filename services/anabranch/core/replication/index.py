"""Which items a replica holds: where each is in its journal, and the recent items themselves.

There may be millions of items: each takes three numbers in arrays, and an object only while it is
cached.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from anabranch.core.replication.entries import Item
from anabranch.core.types import LocalSequence

_OVERHEAD_BYTES = 100
"""What an item takes in memory besides its batch."""


class Index:
    """Items from `first` up to `last`, without a gap. The cache drops only what is journaled."""

    def __init__(self, *, cache_bytes: int, first: LocalSequence = 0) -> None:
        self.first = first
        self.last = first
        self._cache_bytes = cache_bytes
        self._firsts = array("Q")
        self._bytes = array("I")
        self._entries = array("Q")
        """Where the items are in the journal. Those that are not stored yet are the last items, and
        have no number here.
        """
        self._recent: list[Item] = []
        """The cache: the last items."""
        self._recent_bytes = 0

    @property
    def stored(self) -> LocalSequence:
        """The end of what the journal holds."""
        count = len(self._entries)
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

    def store(self, item: Item, entry: int) -> None:
        """The journal holds the item as this entry. An item that was cut off meanwhile is none of
        those that are held any more, and is passed over.
        """
        nth = len(self._entries)
        if nth < len(self._firsts) and self._recent[nth - self._uncached] is item:
            self._entries.append(entry)
            self._evict()

    def cut(self, to: LocalSequence) -> None:
        """Drop the items from here on."""
        assert self.first <= to <= self.last
        keep = bisect_left(self._firsts, to)
        assert keep == len(self._firsts) or self._firsts[keep] == to, "items are cut as a whole"
        gone = len(self._firsts) - keep
        if not gone:
            return
        del self._recent[max(0, len(self._recent) - gone) :]
        del self._firsts[keep:], self._bytes[keep:], self._entries[keep:]
        self._recent_bytes = sum(self._bytes[self._uncached :])
        self.last = to

    def trim(self, below: LocalSequence) -> None:
        """Drop journaled items that end here or before."""
        assert len(self._entries) <= len(self._firsts)
        gone = len(self._firsts) if below >= self.last else bisect_right(self._firsts, below) - 1
        gone = min(gone, len(self._entries))
        if gone <= 0:
            return
        uncached = self._uncached
        if gone > uncached:
            self._drop(gone - uncached)
        del self._firsts[:gone], self._bytes[:gone], self._entries[:gone]
        self.first = self._firsts[0] if self._firsts else self.last

    def boundary(self, sequence: LocalSequence) -> LocalSequence:
        """The first end of an item at this place or behind it."""
        nth = bisect_left(self._firsts, sequence)
        return self._firsts[nth] if nth < len(self._firsts) else self.last

    def entry(self, sequence: LocalSequence) -> int | None:
        """The journal entry that holds this place, if it is journaled."""
        nth = bisect_right(self._firsts, sequence) - 1
        return self._entries[nth] if 0 <= nth < len(self._entries) else None

    def items(self, low: LocalSequence, high: LocalSequence, bytes_max: int) -> list[Item] | None:
        """From the cache: as many items as fit into so many bytes, at least one. None if they are
        not all cached.
        """
        start, end = self._span(low, high, bytes_max, len(self._firsts))
        nth = start - self._uncached
        return self._recent[nth : end - self._uncached] if nth >= 0 and low >= self.first else None

    def entries(self, low: LocalSequence, high: LocalSequence, bytes_max: int) -> Sequence[int]:
        """The journal entries of the same items; none if the first of them isn't journaled."""
        if not self.first <= low < self.stored:
            return ()
        start, end = self._span(low, high, bytes_max, len(self._entries))
        return self._entries[start:end]

    @property
    def _uncached(self) -> int:
        return len(self._firsts) - len(self._recent)

    def _span(
        self, low: LocalSequence, high: LocalSequence, bytes_max: int, count: int
    ) -> tuple[int, int]:
        assert low <= high
        start = max(0, bisect_right(self._firsts, low) - 1)
        end = max(start, min(count, bisect_left(self._firsts, high)))
        total = 0
        for nth in range(start, end):
            total += self._bytes[nth]
            if total > bytes_max and nth > start:
                return start, nth
        return start, end

    def _evict(self) -> None:
        """Evict down to seven eighths of the limit, so that eviction is rare."""
        if self._recent_bytes <= self._cache_bytes:
            return
        aim = self._cache_bytes - self._cache_bytes // 8
        uncached = self._uncached
        total, nth = self._recent_bytes, uncached
        while nth < len(self._entries) and total > aim:
            total -= self._bytes[nth]
            nth += 1
        self._drop(nth - uncached)

    def _drop(self, count: int) -> None:
        assert 0 <= count <= len(self._recent)
        uncached = self._uncached
        self._recent_bytes -= sum(self._bytes[uncached : uncached + count])
        del self._recent[:count]
