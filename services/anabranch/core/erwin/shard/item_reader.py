"""Reading items: from memory, or back from the journal, a few at a time."""

from collections import deque
from collections.abc import Callable
from functools import partial

from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.items import ShardItem
from anabranch.core.replication.entries import Item
from anabranch.core.types import LocalSequence

FETCHES_MAX = 16
"""Reads of the journal at once, a MiB each; others take turns."""
ROWS_KEPT_MAX = 65_536
"""Rows of decoded items: readers of the tail decode an item once."""

Then = Callable[[list[ShardItem]], None]


class ItemReader:
    def __init__(self, contents: Contents, counters: ErwinShardCounters) -> None:
        self._contents = contents
        self._counters = counters
        self._decoded: dict[LocalSequence, ShardItem] = {}
        self._rows = 0
        self._fetching = 0
        self._queue: deque[tuple[LocalSequence, LocalSequence, int, Then]] = deque()

    def cached(
        self, low: LocalSequence, high: LocalSequence, bytes_max: int
    ) -> list[ShardItem] | None:
        """Items from `low` on, as many as fit, at least one; None if they have to be fetched."""
        assert low < high
        found = self._contents.storage.items(low, high, bytes_max)
        return None if found is None else list(map(self._decode, found))

    def fetch(self, low: LocalSequence, high: LocalSequence, bytes_max: int, then: Then) -> None:
        """The same in a later step; nothing if `low` isn't held any more by then."""
        assert low < high
        assert self._contents.map.first <= low, "what is trimmed isn't asked for"
        if self._fetching >= FETCHES_MAX:
            self._queue.append((low, high, bytes_max, then))
        else:
            self._fetch(low, high, bytes_max, then)

    def _fetch(self, low: LocalSequence, high: LocalSequence, bytes_max: int, then: Then) -> None:
        """What has waited its turn may be trimmed by now: the storage then gives nothing."""
        self._fetching += 1
        self._counters.journal_reads += 1
        self._contents.storage.fetch(low, high, bytes_max, partial(self._fetched, then))

    def _fetched(self, then: Then, items: list[Item]) -> None:
        self._fetching -= 1
        assert self._fetching >= 0
        then([ShardItem(item.first, item.batch) for item in items])
        if self._queue and self._fetching < FETCHES_MAX:
            self._fetch(*self._queue.popleft())

    def _decode(self, item: Item) -> ShardItem:
        known = self._decoded.get(item.first)
        if known is not None and known.content is item.batch:
            return known
        if known is not None:
            self._rows -= len(known.rows)  # its place was given to another item
        found = self._decoded[item.first] = ShardItem(item.first, item.batch)
        self._rows += len(found.rows)
        while self._rows > ROWS_KEPT_MAX and len(self._decoded) > 1:
            oldest = next(iter(self._decoded))
            self._rows -= len(self._decoded.pop(oldest).rows)
        return found
