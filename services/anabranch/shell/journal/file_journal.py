"""The file journal: append-only segments and snapshots (docs/decisions/0004-file-journal.md).

One append is one write and one fdatasync, into a region filled with zeros before, so that the
file system has no metadata of its own to write. A segment in which anything failed is never
written again: the next append begins a new one, whose header says where it goes on, and that
cuts off whatever the failed write left behind.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Buffer
from anabranch.core.storage import journal
from anabranch.core.storage.journal import HEADER_BYTES, SEAL_BYTES, Group, Header
from anabranch.ports import Disk, File, Recovered, Replayed
from anabranch.shell.journal.readback import Places
from anabranch.shell.journal.replay import PART, Kept, Replay, Tail, groups, look
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk

SEGMENT_BYTES = 64 << 20
AHEAD_BYTES = 256 << 10
SNAPSHOTS_KEPT = 2
_REFUSED = (StorageFull, StorageFailed)


class FileJournal:
    """`ports.RecordJournal` in one directory, which it must have for itself."""

    def __init__(
        self,
        disk: Disk,
        cluster: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        ahead_bytes: int = AHEAD_BYTES,
        noted: int = 0,
    ) -> None:
        """`noted`: entries up to this one are known to have been durable, from outside."""
        assert segment_bytes > 0
        assert ahead_bytes > 0
        self.prompt = isinstance(disk, UnsyncedDisk)
        """Entries go to the page cache, and nobody waits until they are on the disk."""
        self._disk = disk
        self._cluster = cluster
        self._segment_bytes = segment_bytes
        self._ahead_bytes = ahead_bytes
        self._noted = noted
        self._open = False
        self._last = 0
        self._mark = 0
        self._serial = 0
        self._active: _Segment | None = None
        self._segments: deque[Kept] = deque()
        self._snapshots: list[int] = []
        self._places = Places(disk)

    def recover(self) -> Recovered:
        found = look(self._disk, self._cluster, self._noted)
        entries: list[bytes] = []
        for kept, group in groups(self._disk, found):
            self._places.recall(kept, group)
            entries.extend(found.behind(group))
        replayed = self._begin_life(found, found.first + len(entries) - 1)
        return Recovered(found.snapshot, found.first, entries, replayed.repairs)

    def recover_into(
        self, restore: Callable[[bytes | None], None], take: Callable[[int, bytes], None]
    ) -> Replayed:
        found = look(self._disk, self._cluster, self._noted)
        restore(found.snapshot.content if found.snapshot else None)
        following = found.first
        for kept, group in groups(self._disk, found):
            self._places.recall(kept, group)
            for entry in found.behind(group):
                take(following, entry)
                following += 1
        return self._begin_life(found, following - 1)

    def _begin_life(self, found: Replay, last: int) -> Replayed:
        """Put right what was found, and go on behind entry `last`."""
        assert not self._open
        repairs = [f"{damage.message} (replayed without it)" for damage in found.unreadable]
        if found.tail is not None:
            repairs += self._settle(found.tail)
        for name in found.unfinished:
            self._disk.remove(name)
            repairs.append(f"{self._disk.where}/{name} was never finished: removed")
        self._disk.sync()
        self._last = last
        self._mark = found.mark
        self._segments.extend(found.segments)
        self._serial = found.segments[-1].header.number if found.segments else 0
        self._snapshots = found.snapshots
        self._open = True
        if found.tail is not None and found.tail.doubtful is not None:
            self._repeat(found.tail, found.tail.doubtful)
        return Replayed(last, tuple(repairs))

    def append(self, entries: Sequence[bytes]) -> int:
        assert self._open
        assert entries
        if self._active is not None and self._active.end >= self._segment_bytes:
            self._leave()
        if self._active is None:
            self._active = self._begin()
        offset = self._active.end
        try:
            self._active.append(self._last + 1, entries)
        except _REFUSED:
            # After a failed sync the pages count as clean: nothing in this file can be believed.
            self._leave()
            raise
        self._places.note(self._last + 1, offset, self._active.end)
        self._last += len(entries)
        self._mark = self._active.mark
        # Durable already: should this fail, so will the next append, and that one says it.
        with suppress(*_REFUSED):
            self._active.seal(self._last + 1)
        return self._last

    def read(self, first: int, upto: int) -> list[bytes]:
        assert self._open
        assert 0 < first <= upto <= self._last + 1
        return self._places.read(first, upto)

    def save_snapshot(self, index: int, content: bytes) -> None:
        """Written aside and renamed, so that a snapshot is whole or not there."""
        assert self._open
        assert 0 < index <= self._last
        if self._snapshots and index <= self._snapshots[-1]:
            return
        name = journal.snapshot_name(index)
        header = journal.snapshot_header(index, content, self._cluster)
        self._write_aside(name, header, content)
        self._disk.rename(name + PART, name)
        # Before anything is removed, so that there are never fewer than are to be kept.
        self._disk.sync()
        self._snapshots.append(index)
        self._forget()

    def close(self) -> None:
        assert self._open
        self._open = False
        if self._active is not None:
            self._leave()

    def _begin(self) -> "_Segment":
        """A new segment, durable before the first group is: a bad header with groups is damage."""
        self._serial += 1
        name = journal.segment_name(self._serial)
        head = journal.segment_header(self._serial, self._last + 1, self._mark, self._cluster)
        header = journal.read_header(head, name, self._cluster)
        assert header is not None
        file = self._disk.create(name)
        try:
            segment = _Segment(file, header, self._ahead_bytes)
            segment.start(head)
            self._disk.sync()
        except _REFUSED:
            with suppress(*_REFUSED):
                file.close()
                self._disk.remove(name)
            raise
        self._keep(Kept(name, header))
        return segment

    def _keep(self, kept: Kept) -> None:
        self._segments.append(kept)
        self._places.begin(kept)

    def _leave(self) -> None:
        """Give back what the segment doesn't use; the next one's header says where it ended."""
        assert self._active is not None
        segment, self._active = self._active, None
        with suppress(*_REFUSED):
            segment.finish(self._last + 1)
        with suppress(*_REFUSED):
            segment.close()

    def _settle(self, tail: Tail) -> list[str]:
        """Make the last segment's end what it looks like."""
        path = f"{self._disk.where}/{tail.segment.name}"
        file = self._disk.open(tail.segment.name)
        try:
            file.truncate(tail.end)
            file.sync()
            if tail.doubtful is None:
                with suppress(*_REFUSED):  # worth having, but a full disk must not stop us
                    file.write(tail.seal, tail.end)
                    file.sync()
        finally:
            file.close()
        return [f"{path} was cut at byte {tail.end}: what followed was never finished"] * tail.torn

    def _repeat(self, tail: Tail, group: Group) -> None:
        """Make sure of the last group before it is called durable.

        If its sync failed before the process ended, it may stand in the page cache and no further.
        It goes into a new segment, which takes its place whole or not at all: where it stands it
        may be durable and acknowledged, and writing over that could lose it. Only a disk without
        room leaves no other way.
        """
        try:
            self._replace(tail.base, group)
        except StorageFull:
            file = self._disk.open(tail.segment.name)
            try:
                file.write(tail.content, group.offset)
                file.sync()
            finally:
                file.close()

    def _replace(self, base: int, group: Group) -> None:
        self._serial += 1
        name = journal.segment_name(self._serial)
        head = journal.segment_header(self._serial, group.first, base, self._cluster)
        header = journal.read_header(head, name, self._cluster)
        assert header is not None
        content, mark = journal.group(header, header.mark, group.first, group.entries)
        self._write_aside(name, head, content, journal.seal(header, mark, self._last + 1))
        self._disk.rename(name + PART, name)
        self._disk.sync()
        self._keep(Kept(name, header))
        end = HEADER_BYTES + len(content)
        self._places.note(group.first, HEADER_BYTES, end)
        self._mark = mark

    def _write_aside(self, name: str, *parts: Buffer) -> None:
        if name + PART in self._disk.names():  # from an attempt that couldn't even clean up
            self._disk.remove(name + PART)
        file = self._disk.create(name + PART)
        try:
            offset = 0
            for part in parts:
                file.write(part, offset)
                offset += len(part)
            file.sync()
        except _REFUSED:
            with suppress(*_REFUSED):
                self._disk.remove(name + PART)
            raise
        finally:
            file.close()

    def _forget(self) -> None:
        """Remove what isn't needed to start from the older of the snapshots kept."""
        self._snapshots = self._snapshots[-SNAPSHOTS_KEPT:]
        for name in self._disk.names():
            index = journal.snapshot_index(name)
            if index is not None and index not in self._snapshots:
                self._disk.remove(name)
        if len(self._snapshots) == SNAPSHOTS_KEPT:
            behind = self._snapshots[0] + 1
            # Appends only ever add at the other end.
            while len(self._segments) > 1 and self._segments[1].header.extent <= behind:
                self._disk.remove(self._segments[0].name)
                self._places.forget(self._segments.popleft())
        self._disk.sync()


class _Segment:
    """The segment being written: how far it is durable, and how far filled with zeros."""

    def __init__(self, file: File, header: Header, ahead_bytes: int) -> None:
        self.end = HEADER_BYTES
        self.mark = header.mark
        self._file = file
        self._header = header
        self._filled = 0
        self._ahead_bytes = ahead_bytes

    def start(self, head: bytes) -> None:
        self._fill(HEADER_BYTES)
        self._file.write(head, 0)
        self._file.sync()

    def append(self, first: int, entries: Sequence[bytes]) -> None:
        group, mark = journal.group(self._header, self.mark, first, entries)
        end = self.end + len(group)
        self._fill(end + SEAL_BYTES, end)
        self._file.write(group, self.end)
        self._file.sync()
        self.end += len(group)
        self.mark = mark

    def seal(self, following: int) -> None:
        """Note, unsynced, that all was durable; the next group takes the note's place."""
        self._file.write(journal.seal(self._header, self.mark, following), self.end)

    def finish(self, following: int) -> None:
        self._file.truncate(self.end)
        self.seal(following)
        self._file.sync()

    def close(self) -> None:
        self._file.close()

    def _fill(self, needed: int, written: int = 0) -> None:
        """Zeros up to there and some way on, but not where a group is written next, up to
        `written`: a large one would be written twice. A full disk shows here for most groups,
        before an entry is written.
        """
        if needed > self._filled:
            filled = needed + self._ahead_bytes - needed % self._ahead_bytes
            begin = max(self._filled, written)
            self._file.write(bytes(filled - begin), begin)
            self._filled = filled
