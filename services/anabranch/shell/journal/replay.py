"""A journal's directory, read without changing a byte: for recovery and for fsck."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from anabranch.core.errors import JournalBehind, JournalCorrupt
from anabranch.core.machine import Buffer
from anabranch.core.storage import journal
from anabranch.core.storage.journal import HEADER_BYTES, Group, Header, Scan
from anabranch.ports import Disk, Snapshot

PART = ".part"
"""Ends the name of a file that is still being written."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A segment on the disk."""

    name: str
    header: Header


@dataclass(frozen=True, slots=True)
class Tail:
    """Where the last segment ends."""

    segment: Kept
    end: int
    doubtful: Group | None
    """The last group, if nothing says that it was synced."""
    content: bytes
    """Its bytes."""
    base: int
    """The chain before it, as the header of a segment tells it that begins there."""
    seal: Buffer
    torn: bool


@dataclass(slots=True)
class Replay:
    """All a journal holds, and the state of its files."""

    snapshot: Snapshot | None
    snapshots: list[int]
    """The readable snapshot and older ones, oldest first."""
    proven: int
    """Entries up to this one are known to have been durable."""
    segments: list[Kept]
    needed: list[Kept]
    """Those that hold what is behind the snapshot."""
    unfinished: list[str]
    """Files whose creation was cut short: nothing in them was ever durable."""
    unreadable: list[JournalCorrupt]
    """Newer snapshots that can't be read; what they held was replayed from an older one."""
    entries: list[bytes] = field(default_factory=list[bytes])
    mark: int = 0
    """The chain after the last group: what the next segment continues."""
    tail: Tail | None = None

    @property
    def first(self) -> int:
        return self.snapshot.index + 1 if self.snapshot else 1

    def behind(self, group: Group) -> tuple[bytes, ...]:
        """What of it the snapshot doesn't hold."""
        return group.entries[max(0, self.first - group.first) :]


def replay(disk: Disk, cluster: str) -> Replay:
    """Raises JournalCorrupt, JournalTooNew or WrongCluster, naming the file."""
    found = look(disk, cluster)
    for _, group in groups(disk, found):
        found.entries.extend(found.behind(group))
    return found


def look(disk: Disk, cluster: str, noted: int = 0) -> Replay:
    """What is there, by snapshot and headers; the groups are still to be read. `noted`: entries up
    to this one are known to have been durable. Raises JournalBehind if nothing of them is there.
    """
    names = disk.names()
    # A snapshot gets its name when it is durable, and the entries in it were so before: the name
    # alone proves that much, even if nothing else in the file can be read.
    indexes = [index for name in names if (index := journal.snapshot_index(name)) is not None]
    proven = max(noted, *indexes, 0)
    snapshot, unreadable = _snapshot(disk, cluster, indexes)
    base = snapshot.index if snapshot else 0
    segments, unfinished = _segments(disk, cluster, names)
    if unreadable and not any(kept.header.extent <= base + 1 for kept in segments):
        raise unreadable[0]
    needed = _needed(disk, segments, base)
    if noted > base and not needed:
        todo = "put it back from a back-up"
        raise JournalBehind(disk.where, base, f"it is known to have reached entry {noted}", todo)
    readable = [index for index in indexes if index <= base]
    unfinished += [name for name in names if name.endswith(PART)]
    return Replay(snapshot, readable, proven, segments, needed, unfinished, unreadable)


def groups(disk: Disk, found: Replay) -> Iterator[tuple[Kept, Group]]:
    """Every group of the segments needed, of which no more than one is in memory; once they are
    through, `mark` and `tail` are known.
    """
    needed = found.needed
    for kept, following in zip(needed, [*needed, None][1:], strict=True):
        content = disk.read(kept.name)
        end = following.header.extent if following else found.proven + 1
        scan = journal.scan(content, _path(disk, kept.name), kept.header, durable=end - 1)
        there = [group for group in scan.groups if following is None or group.first < end]
        found.mark = there[-1].mark if there else kept.header.base
        if following is None:
            found.tail = _tail(kept, content, scan)
        elif following.header.base != found.mark:
            reason = f"it doesn't continue what {kept.name} holds"
            raise JournalCorrupt(_path(disk, following.name), 0, reason)
        del content
        for group in there:
            yield kept, group


def _tail(kept: Kept, content: bytes, scan: Scan) -> Tail:
    groups = scan.groups
    doubtful = groups[-1] if groups and not scan.sealed else None
    its_bytes = content[doubtful.offset : scan.end] if doubtful else b""
    base = groups[-2].mark if len(groups) > 1 else kept.header.base
    return Tail(kept, scan.end, doubtful, its_bytes, base, scan.seal, scan.torn)


def _snapshot(
    disk: Disk, cluster: str, indexes: list[int]
) -> tuple[Snapshot | None, list[JournalCorrupt]]:
    """The newest that can be read; an older one only costs a longer replay."""
    unreadable: list[JournalCorrupt] = []
    for index in reversed(indexes):
        name = journal.snapshot_name(index)
        path = _path(disk, name)
        try:
            number, state = journal.read_snapshot(disk.read(name), path, cluster)
            if number != index:
                raise JournalCorrupt(path, 0, f"this is snapshot {number} by its header")
        except JournalCorrupt as damage:
            unreadable.append(damage)
            continue
        return Snapshot(index, state), unreadable
    return None, unreadable


def _segments(disk: Disk, cluster: str, names: list[str]) -> tuple[list[Kept], list[str]]:
    """Those with a header, in order, and the names of those that never got one."""
    segments: list[Kept] = []
    unfinished: list[str] = []
    for name in names:
        if not name.endswith(journal.SEGMENT):
            continue
        path = _path(disk, name)
        header = journal.read_header(disk.read(name, HEADER_BYTES), path, cluster)
        if header is None:
            header = journal.read_header(disk.read(name), path, cluster)
        if header is None:
            unfinished.append(name)
        elif journal.segment_name(header.number) != name:
            raise JournalCorrupt(path, 0, f"this is segment {header.number} by its header")
        else:
            segments.append(Kept(name, header))
    return segments, unfinished


def _needed(disk: Disk, segments: list[Kept], base: int) -> list[Kept]:
    """From the last segment that begins no later than behind `base`.

    Those before it may have gaps: their removal after a snapshot need not have been durable in
    order.
    """
    starts = [at for at, kept in enumerate(segments) if kept.header.extent <= base + 1]
    if segments and not starts:
        first = segments[0]
        reason = f"it begins with entry {first.header.extent}, entry {base + 1} is nowhere"
        raise JournalCorrupt(_path(disk, first.name), 0, reason)
    return segments[starts[-1] :] if starts else []


def _path(disk: Disk, name: str) -> str:
    return f"{disk.where}/{name}"
