"""The journal's files as bytes: groups of entries under chained checksums, and what damage means.

One append is one group, whole or not there. A group is only ever written after the one before it
was durable, so a group that doesn't check is torn if it is the last thing written, and damage if
anything is known to come after it. docs/decisions/0004-file-journal.md has the reasoning,
docs/reference/journal-format.md the layout.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from struct import Struct

from anabranch.core.errors import JournalCorrupt, JournalTooNew, WrongCluster
from anabranch.core.machine import Buffer
from anabranch.core.records.checksum import crc32c

VERSION = 2
"""Of segments: bodies of groups are summed with CRC-32C, which takes a tenth of the time."""
FIRST_VERSION = 1
"""Bodies are summed with CRC-32. Snapshots and archives are still written so: members of an older
release read them while a cluster is upgraded.
"""
HEADER_BYTES = 128
CLUSTER_BYTES_MAX = 64
GROUP_BYTES_MAX = 1 << 30
"""Far above what is ever appended: only keeps a length from being taken for something else."""

SEGMENT = ".segment"
SNAPSHOT = ".snapshot"
_SEGMENT_MAGIC, _SNAPSHOT_MAGIC = b"ANABRSEG", b"ANABRSNP"
_HEADER = Struct(f"<8sH2xIQQ{CLUSTER_BYTES_MAX}s28x")
_GROUP_MAGIC = b"\xabGRP"
_GROUP = Struct("<4sIQIII")
_CHECK = Struct("<I")
GROUP_HEADER_BYTES = _GROUP.size + _CHECK.size
SEAL_BYTES = GROUP_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Header:
    """How a segment or a snapshot begins.

    `number` is a segment's serial or a snapshot's index; `extent` a segment's first entry or a
    snapshot's length; `base` the checksum of what a segment continues or of a snapshot's content.
    """

    number: int
    extent: int
    base: int
    cluster: str
    mark: int
    """The header's own checksum, with which the chain of the segment's groups begins."""
    version: int

    def check(self, body: Buffer) -> int:
        """The checksum of a group's body in this segment."""
        return zlib.crc32(body) if self.version == FIRST_VERSION else crc32c(body)


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one append, where they begin, and the chain after them."""

    offset: int
    first: int
    entries: tuple[bytes, ...]
    mark: int


@dataclass(frozen=True, slots=True)
class Scan:
    """A segment's groups up to `end`; `torn` says whether something unfinished lies behind it."""

    header: Header
    groups: list[Group]
    end: int
    sealed: bool
    """Whether the last group is known to have been durable: something says so behind it."""
    torn: bool

    @property
    def seal(self) -> bytearray:
        """What says behind the last group that it is durable."""
        if not self.groups:
            return seal(self.header, self.header.mark, self.header.extent)
        last = self.groups[-1]
        assert last.entries, "a group of nothing is the seal itself"
        return seal(self.header, last.mark, last.first + len(last.entries))


def segment_name(serial: int) -> str:
    assert 0 <= serial < 10**10, "names sort as their numbers do"
    return f"{serial:010}{SEGMENT}"


def snapshot_name(index: int) -> str:
    assert 0 <= index < 10**20, "names sort as their numbers do"
    return f"{index:020}{SNAPSHOT}"


def snapshot_index(name: str) -> int | None:
    """The last entry that a snapshot of this name contains; None if it is no such name."""
    index = name.removesuffix(SNAPSHOT)
    return int(index) if index.isdecimal() and snapshot_name(int(index)) == name else None


def segment_header(
    serial: int, first: int, continues: int, cluster: str, version: int = VERSION
) -> bytes:
    assert first > 0, "entries begin at 1"
    return _header(_SEGMENT_MAGIC, version, serial, first, continues, cluster)


def snapshot_header(index: int, content: bytes, cluster: str) -> bytes:
    check = zlib.crc32(content)
    return _header(_SNAPSHOT_MAGIC, FIRST_VERSION, index, len(content), check, cluster)


def group(
    header: Header, continues: int, first: int, entries: Sequence[bytes]
) -> tuple[bytearray, int]:
    """The bytes of one append after the group with mark `continues`, and its own mark."""
    sizes = Struct(f"<{len(entries)}I").pack(*map(len, entries))
    # Entries may be large: they are copied once.
    content = bytearray().join((bytes(GROUP_HEADER_BYTES), sizes, *entries))
    size = len(content) - GROUP_HEADER_BYTES
    assert size <= GROUP_BYTES_MAX
    checksum = header.check(memoryview(content)[GROUP_HEADER_BYTES:])
    head = _GROUP.pack(_GROUP_MAGIC, size, first, len(entries), continues, checksum)
    mark = zlib.crc32(head, header.mark)
    content[:GROUP_HEADER_BYTES] = head + _CHECK.pack(mark)
    return content, mark


def seal(header: Header, continues: int, following: int) -> bytearray:
    """A group of nothing: written behind a durable group, it tells later that the group was."""
    return group(header, continues, following, ())[0]


def read_header(content: bytes, path: str, cluster: str) -> Header | None:
    """A segment's header; None if its creation was cut short, before any group was written."""
    header = _read_header(_SEGMENT_MAGIC, content, path, cluster)
    if header is None and _GROUP_MAGIC in content[HEADER_BYTES:]:
        raise JournalCorrupt(path, 0, "the header doesn't match its checksum, but groups follow it")
    return header


def read_snapshot(content: bytes, path: str, cluster: str) -> tuple[int, bytes]:
    """The index and the state."""
    header = _read_header(_SNAPSHOT_MAGIC, content, path, cluster)
    if header is None:
        raise JournalCorrupt(path, 0, "the snapshot's header doesn't match its checksum")
    state = content[HEADER_BYTES:]
    if len(state) != header.extent:
        reason = f"the snapshot has {len(state)} bytes where {header.extent} were written"
        raise JournalCorrupt(path, HEADER_BYTES, reason)
    if zlib.crc32(state) != header.base:
        raise JournalCorrupt(path, HEADER_BYTES, "the snapshot doesn't match its checksum")
    return header.number, state


def scan(content: bytes, path: str, header: Header, durable: int) -> Scan:
    """Read groups as far as they check. Every entry up to `durable` is known to have been written.

    Raises JournalCorrupt with the place of the first bad group if anything proves that it had
    been durable: an entry up to `durable` is missing, or a later group stands behind it.
    """
    groups: list[Group] = []
    offset, first, mark = HEADER_BYTES, header.extent, header.mark
    while (found := _read_group(content, offset, header, mark)) is not None:
        if found.first != first or not found.entries:
            break
        assert found.offset == offset, "groups follow each other without a gap"
        groups.append(found)
        first += len(found.entries)
        mark = found.mark
        offset += GROUP_HEADER_BYTES + body_bytes(found.entries)
    if first <= durable:
        reason = f"entry {first} doesn't check, though entries up to {durable} were made durable"
        raise JournalCorrupt(path, offset, reason)
    later = _later_group(content, offset, header, first)
    if later is not None:
        reason = f"entry {first} doesn't check, but a later group stands at byte {later}"
        raise JournalCorrupt(path, offset, reason)
    assert first == header.extent + sum(len(each.entries) for each in groups)
    sealed = found is not None and found.first == first
    behind = offset + SEAL_BYTES * sealed
    return Scan(header, groups, offset, sealed, torn=bool(content[behind:].strip(b"\0")))


def read_groups(
    content: bytes, path: str, header: Header, offset: int, wanted: int = 0
) -> Iterator[Group]:
    """Groups that are known to stand there, each by itself: `content` is cut out of the segment
    at `offset`, from the beginning of a group to the end of one. Those that end before entry
    `wanted` are passed over by their headers. Raises JournalCorrupt if they don't check.
    """
    assert offset >= HEADER_BYTES, "groups begin behind the header"
    at = 0
    while at < len(content):
        head = _read_group_header(content, at, header)
        if head is None:
            raise _unsound(path, offset + at)
        if head[1] + head[2] > wanted:
            found = _read_body(content, at, header, head)
            if found is None:
                raise _unsound(path, offset + at)
            yield found
        at += GROUP_HEADER_BYTES + head[0]


def _unsound(path: str, offset: int) -> JournalCorrupt:
    return JournalCorrupt(path, offset, "a group that was durable doesn't check")


def salvage(content: bytes, offset: int, header: Header) -> Iterator[Group]:
    """Groups from this byte on that can be read by themselves: what a cut here would lose."""
    assert offset >= 0
    place = content.find(_GROUP_MAGIC, offset)
    while place >= 0:
        head = _read_group_header(content, place, header)
        found = _read_group(content, place, header, continues=head[3]) if head else None
        if found is not None and found.entries:
            yield found
        place = content.find(_GROUP_MAGIC, place + 1)


def _header(magic: bytes, version: int, number: int, extent: int, base: int, cluster: str) -> bytes:
    name = cluster.encode()
    assert 0 < len(name) <= CLUSTER_BYTES_MAX
    assert number >= 0 <= extent
    packed = _HEADER.pack(magic, version, base, number, extent, name)
    assert len(packed) + _CHECK.size == HEADER_BYTES
    return packed + _CHECK.pack(zlib.crc32(packed))


def _read_header(magic: bytes, content: bytes, path: str, cluster: str) -> Header | None:
    if len(content) < HEADER_BYTES:
        return None
    (mark,) = _CHECK.unpack_from(content, _HEADER.size)
    found, version, base, number, extent, name = _HEADER.unpack_from(content)
    if found != magic or zlib.crc32(content[: _HEADER.size]) != mark:
        return None
    # Every version keeps these 128 bytes and their checksum, so that this can be said for sure.
    if version > VERSION:
        raise JournalTooNew(path, version)
    theirs = name.rstrip(b"\0").decode()
    if theirs != cluster:
        raise WrongCluster(path, theirs, cluster)
    return Header(number, extent, base, theirs, mark, version)


def _read_group(content: bytes, offset: int, header: Header, continues: int) -> Group | None:
    head = _read_group_header(content, offset, header)
    if head is None or head[3] != continues:
        return None
    return _read_body(content, offset, header, head)


def _read_body(
    content: bytes, offset: int, header: Header, head: tuple[int, int, int, int, int, int]
) -> Group | None:
    length, first, count, _, check, mark = head
    start = offset + GROUP_HEADER_BYTES
    body = content[start : start + length]
    if len(body) != length or header.check(body) != check:
        return None
    table = Struct(f"<{count}I")
    ends = accumulate(table.unpack_from(body), initial=table.size)
    entries = tuple(body[a:b] for a, b in pairwise(ends))
    assert body_bytes(entries) == length
    return Group(offset, first, entries, mark)


def _read_group_header(
    content: bytes, offset: int, header: Header
) -> tuple[int, int, int, int, int, int] | None:
    """Length, first entry, count, chain before, body's checksum and chain after, if they check.

    The checksum starts from the segment's mark, so that no bytes of another segment, and none
    that somebody wrote into an entry, are taken for a group of this one.
    """
    assert offset >= 0
    if content[offset : offset + len(_GROUP_MAGIC)] != _GROUP_MAGIC:
        return None
    if offset + GROUP_HEADER_BYTES > len(content):
        return None
    (mark,) = _CHECK.unpack_from(content, offset + _GROUP.size)
    if zlib.crc32(content[offset : offset + _GROUP.size], header.mark) != mark:
        return None
    _, length, first, count, before, check = _GROUP.unpack_from(content, offset)
    return length, first, count, before, check, mark


def _later_group(content: bytes, offset: int, header: Header, expected: int) -> int | None:
    """Where a group behind entry `expected` begins, if there is one.

    Its header is proof enough: it was written when everything before it was durable.
    """
    assert offset >= HEADER_BYTES, "groups begin behind the header"
    place = content.find(_GROUP_MAGIC, offset)
    while place >= 0:
        head = _read_group_header(content, place, header)
        if head is not None and head[1] > expected:
            return place
        place = content.find(_GROUP_MAGIC, place + 1)
    return None


def body_bytes(entries: Sequence[bytes]) -> int:
    return sum(map(len, entries)) + _CHECK.size * len(entries)
