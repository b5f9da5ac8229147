"""Where a journal's entries stand on its disk, and how they are read back: by offset, while it is
written.

Of each segment a group is noted every so many bytes, and nothing of an entry is kept: gigabytes of
segments cost some hundred kilobytes of memory.
"""

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from threading import Lock

from anabranch.core.errors import JournalCorrupt, StorageFailed
from anabranch.core.storage import journal
from anabranch.core.storage.journal import HEADER_BYTES, Group
from anabranch.ports import Disk
from anabranch.shell.journal.replay import Kept

SPACING_BYTES = 64 << 10
"""Between groups that are noted: what is read at most beside what is wanted."""


@dataclass(slots=True)
class _Stretch:
    """A segment: the first entries of the groups noted, their offsets, and where the last ends."""

    kept: Kept
    firsts: "array[int]" = field(default_factory=lambda: array("Q"))
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    end: int = HEADER_BYTES


class Places:
    """One thread writes and notes, one forgets, any read."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._lock = Lock()
        self._stretches: list[_Stretch] = []

    def begin(self, kept: Kept) -> None:
        """What is noted from here on stands in this segment."""
        with self._lock:
            self._stretches.append(_Stretch(kept))

    def note(self, first: int, offset: int, end: int) -> None:
        """A durable group begins with this entry."""
        with self._lock:
            stretch = self._stretches[-1]
            if not stretch.offsets or offset - stretch.offsets[-1] >= SPACING_BYTES:
                stretch.firsts.append(first)
                stretch.offsets.append(offset)
            stretch.end = end

    def recall(self, kept: Kept, group: Group) -> None:
        """The same, of one that was found at recovery."""
        if not self._stretches or self._stretches[-1].kept is not kept:
            self.begin(kept)
        end = group.offset + journal.GROUP_HEADER_BYTES + journal.body_bytes(group.entries)
        self.note(group.first, group.offset, end)

    def forget(self, kept: Kept) -> None:
        with self._lock:
            self._stretches = [each for each in self._stretches if each.kept is not kept]

    def read(self, first: int, upto: int) -> list[bytes]:
        """As `ports.RecordJournal` has it."""
        entries: list[bytes] = []
        while first < upto:
            found = self._read_some(first, upto)
            entries += found
            first += len(found)
        return entries

    def _read_some(self, first: int, upto: int) -> list[bytes]:
        """As many as one segment holds, and at least one."""
        with self._lock:
            kept, start, end = self._place(first, upto)
        path = f"{self._disk.where}/{kept.name}"
        content = self._disk.read(kept.name, end - start, start)
        found: list[bytes] = []
        for group in journal.read_groups(content, path, kept.header, start, first):
            low = max(0, first + len(found) - group.first)
            found += group.entries[low : max(0, upto - group.first)]
            # Damage to what lies behind is none of this reader's business.
            if first + len(found) >= upto:
                break
        if not found:
            raise JournalCorrupt(path, start, f"entry {first} isn't where it was written")
        return found

    def _place(self, first: int, upto: int) -> tuple[Kept, int, int]:
        """From the group noted at or before `first` to the one noted at or behind `upto`."""
        at = bisect_right(self._stretches, first, key=lambda each: each.kept.header.extent) - 1
        if at < 0 or not self._stretches[at].firsts:
            raise StorageFailed(self._disk.where, f"entry {first} isn't kept")
        stretch = self._stretches[at]
        start = stretch.offsets[bisect_right(stretch.firsts, first) - 1]
        behind = bisect_left(stretch.firsts, upto)
        end = stretch.offsets[behind] if behind < len(stretch.offsets) else stretch.end
        return stretch.kept, start, end
