"""A journal as records of a log that offers little: which of them count, and where entries lie
(decision 63).

Writers come one after the other. Each has a life, a number that no other has, and numbers its
records. A record counts if it is the next one of the current life; an opening begins a life, and
counts if it ends the current one. Everybody who reads the log from a record that counts decides
alike, whatever was repeated, held up or written by a writer whose life is over.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Annotated

import msgspec

from anabranch.core.limits import KIB, MIB

PART_BYTES_MAX = 768 * KIB
"""Of one record: with what is around it, it fits the MiB that Kafka takes unless it is told to."""
CONTENT_BYTES_MAX = 512 * MIB
"""Of one entry or snapshot. Settings allow no larger entry, and a shard's snapshot of this size has
33,000,000 pushes.
"""
CONTENT_PARTS_MAX = -(-CONTENT_BYTES_MAX // PART_BYTES_MAX)
"""So many records have the content of one entry or snapshot."""
OWNER_CHARS_MAX = 4_096
"""Errors name the owner of records that were found."""
MAGIC = b"anabox1\0"

NO_LIFE = 0
"""What the first life of a log ends."""


class Kind(IntEnum):
    OPENING = 1
    ENTRY = 2
    SNAPSHOT = 3


_Number = Annotated[int, msgspec.Meta(ge=0)]
_Content = Annotated[bytes, msgspec.Meta(max_length=PART_BYTES_MAX)]
_Owner = Annotated[str, msgspec.Meta(max_length=OWNER_CHARS_MAX)]


class Part(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """One record. A release may only add fields at the end, with a default."""

    kind: Kind
    life: _Number
    number: _Number
    """Counts the records of the life from 0, which is its opening."""
    index: _Number = 0
    """Of the entry; of a snapshot, the last entry that it contains."""
    ends: bool = True
    """False: the content goes on with the next record of the life."""
    content: _Content = b""
    before: _Number = NO_LIFE
    """An opening: the life that it ends."""
    owner: _Owner = ""
    """An opening or a snapshot: whose journal this is."""


class Whole(msgspec.Struct, frozen=True, gc=False):
    """An entry or a snapshot, all of whose records were read."""

    kind: int
    index: int
    content: bytes
    position: int
    """Of its first record."""


_pack = msgspec.msgpack.Encoder().encode
_part = msgspec.msgpack.Decoder(Part)


def encode(part: Part) -> bytes:
    return MAGIC + _pack(part)


def decode(record: bytes) -> Part | None:
    """None if somebody else wrote it, or a record that no writer makes."""
    if not record.startswith(MAGIC):
        return None
    try:
        return _part.decode(memoryview(record)[len(MAGIC) :])
    except msgspec.DecodeError:
        return None


class Fold:
    """Reads records in the log's order, and keeps what counts.

    `take` is given each record with its position, from one on that counts.
    """

    def __init__(self) -> None:
        self.life = NO_LIFE
        self.number = 0
        """Of the next record of this life."""
        self.last = 0
        """The index of the last whole entry; 0: none."""
        self.owner = ""
        self._pieces: list[bytes] = []
        self._position = 0

    @staticmethod
    def at(part: Part) -> "Fold":
        """A fold that goes on with this record, the first of an entry or a snapshot, or an
        opening.
        """
        fold = Fold()
        if part.kind == Kind.OPENING:
            fold.life = part.before
        else:
            fold.life, fold.number = part.life, part.number
        return fold

    def take(self, position: int, record: bytes) -> Whole | None:
        """The entry or the snapshot that this record ends, if it counts."""
        part = decode(record)
        if part is None or not self._counts(part):
            return None
        self.owner = part.owner or self.owner
        if part.kind == Kind.OPENING:
            # What the life before left unfinished was never acknowledged.
            self._pieces.clear()
            self.life, self.number = part.life, 1
            return None
        self.number += 1
        if not self._pieces:
            self._position = position
        self._pieces.append(part.content)
        if not part.ends:
            return None
        content = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        if part.kind == Kind.ENTRY:
            self.last = part.index
        return Whole(part.kind, part.index, content, self._position)

    def _counts(self, part: Part) -> bool:
        if part.kind == Kind.OPENING:
            return part.before == self.life and part.life not in (NO_LIFE, self.life)
        if (part.life, part.number) != (self.life, self.number):
            return False
        # A writer ends each content within so many records. Somebody else made up any further one,
        # and could fill the memory of whoever gathers them.
        if not part.ends and len(self._pieces) + 1 >= CONTENT_PARTS_MAX:
            return False
        # Its writer goes on where the one before ended: somebody else made up any other entry.
        return part.kind != Kind.ENTRY or (
            part.index == self.last + 1 or (not self.last and part.index > 0)
        )


def opening(life: int, before: int, owner: str) -> Part:
    assert life not in (NO_LIFE, before), "each life has a number of its own"
    return Part(kind=Kind.OPENING, life=life, number=0, before=before, owner=owner)


class Numbering:
    """Makes the records of one life."""

    def __init__(self, life: int, owner: str) -> None:
        self.next = 1
        """The number of the next record; the opening has 0."""
        self._life = life
        self._owner = owner

    def entries(self, first: int, contents: Sequence[bytes]) -> Iterator[bytes]:
        for index, content in enumerate(contents, first):
            yield from self._parts(Kind.ENTRY, index, content, "")

    def snapshot(self, index: int, content: bytes) -> Iterator[bytes]:
        yield from self._parts(Kind.SNAPSHOT, index, content, self._owner)

    def _parts(self, kind: Kind, index: int, content: bytes, owner: str) -> Iterator[bytes]:
        """At least one, even if there is no content."""
        assert len(content) <= CONTENT_BYTES_MAX, "nobody would read all of it"
        for start in range(0, max(1, len(content)), PART_BYTES_MAX):
            end = start + PART_BYTES_MAX
            part = Part(
                kind=kind,
                life=self._life,
                number=self.next,
                index=index,
                ends=end >= len(content),
                content=content[start:end],
                owner=owner,
            )
            self.next += 1
            yield encode(part)


class Places:
    """Where entries begin in the log: a few numbers for each run of entries that follow each other
    there, one record each.
    """

    def __init__(self) -> None:
        self._indices = array("Q")
        """Of each run: its first entry, and that one's position."""
        self._positions = array("Q")
        self.end = 1
        """Behind the last entry."""

    @property
    def first(self) -> int:
        """The first entry whose place is known, or the next one."""
        return self._indices[0] if self._indices else self.end

    def add(self, index: int, position: int) -> None:
        assert not self._indices or index == self.end, "entries come in order"
        if not self._indices or position != self._expected(index):
            self._indices.append(index)
            self._positions.append(position)
        self.end = index + 1

    def position(self, index: int) -> int:
        """Of the entry's first record."""
        assert self.first <= index < self.end
        run = bisect_right(self._indices, index) - 1
        return self._positions[run] + index - self._indices[run]

    def forget(self, below: int) -> None:
        """Entries before this one aren't asked for any more."""
        below = min(below, self.end)
        if below <= self.first:
            return
        if below == self.end:
            del self._indices[:], self._positions[:]
            return
        run = bisect_right(self._indices, below) - 1
        position = self.position(below)
        del self._indices[:run], self._positions[:run]
        self._indices[0], self._positions[0] = below, position

    def _expected(self, index: int) -> int:
        """The place of the entry behind the last one, if that is one record."""
        return self._positions[-1] + index - self._indices[-1]
