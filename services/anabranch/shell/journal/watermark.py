"""How far a journal is known to have gone, noted in another place.

A journal that was put back from an older copy, or removed, looks whole by itself. The note of a
data directory's journal lies in the objects' folder, so that it stays with the objects whatever
happens to the journal; those of Belfast's nodes lie in a folder of their own.

The note follows the journal: it is written after an entry is durable, so it never names an entry
that a crash can lose. It is written without a sync of its own, which would make every append wait
for one more: `kill -9` loses nothing of it, and a power failure at most the last second.
"""

import os
import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from anabranch.core.errors import NoteDamaged, StorageFailed, StorageFull
from anabranch.ports import File, Journal, PromptJournal, RecordJournal, Recovered, Replayed
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.replay import PART

FILE = ".reached"
"""In the folder of objects, where no object's name begins with a dot."""
SYNC_S = 1.0
_SLOT_BYTES = 512
"""A sector: each of the two slots is written whole or not at all, and they are written in turn."""
_LINE = re.compile(
    rb"(anabranch journal reached: note (\d{20}), entry (\d{20}), lives (\d{10})), "
    rb"check ([0-9a-f]{8})\n"
)


@dataclass(frozen=True, slots=True)
class Watermark:
    """`lives`: no broker life up to this one may be given out again."""

    entry: int
    lives: int
    note: int = 0


class WatermarkFile:
    """The note itself, in two slots."""

    def __init__(self, folder: str, name: str = FILE) -> None:
        self._disk = RealDisk(folder)
        self._name = name
        self._file: File | None = None

    @property
    def path(self) -> str:
        return f"{self._disk.where}/{self._name}"

    def read(self) -> Watermark | None:
        """None if nothing was ever noted. Raises NoteDamaged if neither slot is whole."""
        if not os.path.exists(self.path):
            return None
        content = self._disk.read(self._name)
        found = [_read(content[at : at + _SLOT_BYTES]) for at in (0, _SLOT_BYTES)]
        notes = [each for each in found if each is not None]
        if not notes:
            raise NoteDamaged(self.path, "neither of its two lines is intact")
        return max(notes, key=lambda each: each.note)

    def create(self, mark: Watermark) -> None:
        """Replace whatever is noted, durably."""
        part = self._name + PART
        if part in self._disk.names():
            self._disk.remove(part)
        file = self._disk.create(part)
        try:
            file.write(_line(mark) * 2, 0)
            file.sync()
        finally:
            file.close()
        self._disk.rename(part, self._name)
        self._disk.sync()

    def note(self, mark: Watermark) -> None:
        if self._file is None:
            self._file = self._disk.open(self._name)
        self._file.write(_line(mark), mark.note % 2 * _SLOT_BYTES)

    def sync(self) -> None:
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class NotedJournal:
    """`ports.Journal` that notes how far it went; `now` counts seconds and never goes back."""

    def __init__(self, journal: Journal, file: WatermarkFile, now: Callable[[], float]) -> None:
        self._journal = journal
        self._file = file
        self._now = now
        self._mark: Watermark | None = None
        self._synced = now()

    def begin(self, mark: Watermark) -> None:
        """From here on every append is noted. A full disk keeps nobody from appending later."""
        with suppress(StorageFull):
            self._file.create(mark)
            self._mark = mark

    def recover(self) -> Recovered:
        return self._journal.recover()

    def append(self, entries: Sequence[bytes]) -> int:
        last = self._journal.append(entries)
        if self._mark is not None:
            self._mark = replace(self._mark, entry=last, note=self._mark.note + 1)
            # The entries are durable already. If the disk fails, the next append says it.
            with suppress(StorageFull, StorageFailed):
                self._file.note(self._mark)
                if self._is_sync_due:
                    self._sync()
        return last

    def save_snapshot(self, index: int, content: bytes) -> None:
        self._journal.save_snapshot(index, content)

    def close(self) -> None:
        self._journal.close()
        with suppress(StorageFull, StorageFailed):
            self._sync()
            self._file.close()

    @property
    def _is_sync_due(self) -> bool:
        return self._now() - self._synced >= SYNC_S

    def _sync(self) -> None:
        self._file.sync()
        self._synced = self._now()


class NotedRecordJournal(NotedJournal):
    """The same for a `ports.RecordJournal`, which is noted from its recovery on."""

    def __init__(
        self, journal: RecordJournal, file: WatermarkFile, now: Callable[[], float]
    ) -> None:
        super().__init__(journal, file, now)
        self._records = journal
        self._prompt = isinstance(journal, PromptJournal) and journal.prompt

    @property
    def prompt(self) -> bool:
        """Once in a while an append waits for the note."""
        return self._prompt and not self._is_sync_due

    def recover(self) -> Recovered:
        found = super().recover()
        self.begin(Watermark(found.last, lives=0))
        return found

    def recover_into(
        self, restore: Callable[[bytes | None], None], take: Callable[[int, bytes], None]
    ) -> Replayed:
        found = self._records.recover_into(restore, take)
        self.begin(Watermark(found.last, lives=0))
        return found

    def read(self, first: int, upto: int) -> list[bytes]:
        return self._records.read(first, upto)


def _line(mark: Watermark) -> bytes:
    said = f"anabranch journal reached: note {mark.note:020}, entry {mark.entry:020}, "
    summed = f"{said}lives {mark.lives:010}".encode()
    return (summed + f", check {zlib.crc32(summed):08x}\n".encode()).ljust(_SLOT_BYTES)


def _read(slot: bytes) -> Watermark | None:
    found = _LINE.match(slot)
    if found is None or zlib.crc32(found[1]) != int(found[5], 16):
        return None
    return Watermark(int(found[3]), int(found[4]), int(found[2]))
