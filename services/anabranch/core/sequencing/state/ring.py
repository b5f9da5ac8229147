"""The appends that a sequencing replica holds and that aren't ordered yet."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import msgspec

from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import NEVER, Nanoseconds
from anabranch.core.wire.numbers import Bounded

ENTRY_BYTES = 256
"""What an entry takes in memory beside its batch."""


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One append: its record batch, or the shard that has it (LazyLog, 5.1)."""

    id: AppendId
    count: Annotated[int, msgspec.Meta(ge=1, le=NEVER)]
    """Records of the batch."""
    size: Bounded
    """Bytes of the batch."""
    batch: bytes = b""
    """Empty if a shard has it."""
    shard: str = ""
    """Empty if the batch is here."""
    digest: int = 0
    """Of the records of a request, if a shard has them (`core/records/digest.py`)."""

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return ENTRY_BYTES + len(self.batch) + len(self.shard)


class Announcement(NamedTuple):
    """How an append came to this member; known until it leaves the ring, and in this life only."""

    who: int
    """The principal of the client that sent it (`core/askers.py`)."""
    at: Nanoseconds


class Ring:
    """In the order in which the appends came. An append that was acknowledged before another one
    was sent comes before it in every ring of the view (LazyLog, 4.2).
    """

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self._entries: dict[AppendId, Entry] = {}
        self._announcements: dict[AppendId, Announcement] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, id: AppendId) -> bool:
        return id in self._entries

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def add(self, entry: Entry, announced: Announcement | None = None) -> None:
        assert entry.id not in self._entries, "an append is in a ring once"
        assert entry.count > 0
        self._entries[entry.id] = entry
        if announced is not None:
            self._announcements[entry.id] = announced
        self.records += entry.count
        self.bytes += entry.cost

    def get(self, id: AppendId) -> Entry | None:
        return self._entries.get(id)

    def announcement(self, id: AppendId) -> Announcement | None:
        """None: another member or an earlier life had it first, or it isn't here."""
        return self._announcements.get(id)

    def remove(self, id: AppendId) -> Entry | None:
        """None if it isn't here."""
        entry = self._entries.pop(id, None)
        self._announcements.pop(id, None)
        if entry is not None:
            self.records -= entry.count
            self.bytes -= entry.cost
            assert self.records >= 0
            assert self.bytes >= 0
        return entry
