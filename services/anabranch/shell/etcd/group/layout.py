"""What lies where in etcd, and a journaled group as bytes (docs/decisions/0011-etcd.md).

A group is one `append`, whole: one key, named after its first entry. If it is too large for one
request its body lies in chunks beside, put before the key: who finds the key finds them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from struct import Struct

from anabranch.core.errors import EntryCorrupt, JournalTooNew
from anabranch.core.records.checksum import crc32c

VERSION = 1
INLINE_BYTES_MAX = 1 << 20
"""A request of etcd's may have 1.5 MiB, keys and all."""

_MAGIC = b"ANBG"
_HEAD = Struct(">4sBxHIQQIII")
"""Magic, version, chunks, entries, first entry, term, attempt, bytes and CRC32C of the body."""
_CHECK = Struct(">I")
_HEAD_BYTES = _HEAD.size + _CHECK.size


def controllers_of(cluster: str) -> str:
    """What the group of an Erwin log's controllers is called in etcd: the log's cluster may be
    called as a Bolt cluster is.
    """
    return f"{cluster}/erwin"


class Keys:
    """The names of everything that a cluster has in etcd."""

    def __init__(self, cluster: str) -> None:
        self.base = f"/anabranch/{cluster}/".encode()
        self.marker = self.base + b"cluster"
        self.snapshot = self.base + b"snapshot"
        self.groups = self.base + b"journal/"
        self.chunks = self.base + b"chunks/"
        self.candidates = self.base + b"election/"
        self.reigns = self.base + b"belfast/"

    def reign(self, term: int) -> bytes:
        return self.reigns + b"%020d" % term

    def group(self, first: int) -> bytes:
        return self.groups + b"%020d" % first

    def group_first(self, key: bytes) -> int:
        return int(key.removeprefix(self.groups))

    def chunks_of(self, first: int) -> bytes:
        """Of whichever attempt at this group."""
        return self.chunks + b"%020d" % first

    def chunk(self, head: "Head", number: int) -> bytes:
        return self.attempt(head) + b"%06d" % number

    def attempt(self, head: "Head") -> bytes:
        """What the chunks of this attempt begin with."""
        return self.chunks_of(head.first) + b"/%020d-%010d/" % (head.term, head.attempt)

    def candidate(self, lease: int) -> bytes:
        return self.candidates + b"%016x" % lease


@dataclass(frozen=True, slots=True)
class Head:
    """What the value of a group's key begins with; `chunks` is 0 if the body follows it."""

    first: int
    count: int
    term: int
    attempt: int
    chunks: int
    body_bytes: int
    body_crc: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def pack(self) -> bytes:
        packed = _HEAD.pack(
            _MAGIC,
            VERSION,
            self.chunks,
            self.count,
            self.first,
            self.term,
            self.attempt,
            self.body_bytes,
            self.body_crc,
        )
        return packed + _CHECK.pack(crc32c(packed))


def group(
    first: int, term: int, attempt: int, entries: Sequence[bytes]
) -> tuple[Head, bytes, list[bytes]]:
    """A group's head, the value of its key, and its chunks if it needs any."""
    body = b"".join((Struct(f">{len(entries)}I").pack(*map(len, entries)), *entries))
    starts = range(0, len(body), INLINE_BYTES_MAX)
    chunks = [body[at : at + INLINE_BYTES_MAX] for at in starts] if len(starts) > 1 else []
    head = Head(first, len(entries), term, attempt, len(chunks), len(body), crc32c(body))
    return head, head.pack() + (b"" if chunks else body), chunks


def read_head(where: str, first: int, value: bytes) -> Head:
    """Checked, and of the group that the key says."""
    packed = value[: _HEAD.size]
    if len(value) < _HEAD_BYTES or _CHECK.unpack_from(value, _HEAD.size)[0] != crc32c(packed):
        raise EntryCorrupt(first, where, "its head doesn't match its checksum")
    magic, version, chunks, count, found, term, attempt, length, crc = _HEAD.unpack(packed)
    if magic != _MAGIC:
        raise EntryCorrupt(first, where, "it isn't a group of entries")
    if version > VERSION:
        raise JournalTooNew(where, version)
    if found != first or not count:
        raise EntryCorrupt(first, where, f"it says that it is entry {found}")
    return Head(first, count, term, attempt, chunks, length, crc)


def read_body(where: str, head: Head, body: bytes) -> list[bytes]:
    """The entries."""
    if len(body) != head.body_bytes or crc32c(body) != head.body_crc:
        raise EntryCorrupt(head.first, where, "its content doesn't match its checksum")
    table = Struct(f">{head.count}I")
    ends = accumulate(table.unpack_from(body), initial=table.size)
    return [body[start:end] for start, end in pairwise(ends)]


def inline_body(value: bytes) -> bytes:
    return value[_HEAD_BYTES:]
