"""One item of a shard's log: the rows of one push, and the batches that this shard binds to its own
rows.

An item is a header and, behind it, the batches as they are, so that a read copies only what it
answers with. The header is an array in the journal: a release may only add fields at the end, with
a default.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from anabranch.core.erwin.protocol.rows import NO_SHARD, Row, end_of
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import LocalSequence, Position
from anabranch.core.wire.frames import parts

_U32 = struct.Struct(">I")


class Head(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    first: Position
    """Of the first row. An item without rows tells only what follows."""
    rows: list[Row]
    sizes: list[int]
    """Of the batches of the shard's own rows; 0: their records are no-ops."""
    stable: Position
    """What the primary knew to be stable and trimmed: so whoever takes over knows it too."""
    trimmed: Position
    number: int
    """The shard's own."""
    remembers: bool = False
    """Mode st: what became of the ids of own rows is remembered."""
    opens: int = 0
    """Mode st: with this item all data that was unordered when this epoch began is in the log."""
    kept: list[tuple[int, int]] = []
    """Mode st: unordered data, each with its producer's lowest sequence and its size."""
    voided: list[AppendId] = []
    """Mode st: ids of earlier rows that became no-ops for good."""

    @property
    def end(self) -> Position:
        return end_of(self.rows, self.first)


_pack = msgspec.msgpack.Encoder().encode
_head = msgspec.msgpack.Decoder(Head)


def encode_item(head: Head, batches: Sequence[bytes], kept: Sequence[bytes] = ()) -> bytes:
    assert head.sizes == list(map(len, batches))
    assert [size for _, size in head.kept] == list(map(len, kept))
    packed = _pack(head)
    return b"".join((_U32.pack(len(packed)), packed, *batches, *kept))


def decode_head(content: bytes) -> Head:
    """The header alone."""
    return _head.decode(parts(content, 0, len(content))[0])


def bound_batches(head: Head, content: bytes) -> Iterator[tuple[Row, bytes]]:
    """The shard's own rows, each with its batch: empty for no-ops."""
    at = len(content) - sum(head.sizes) - sum(size for _, size in head.kept)
    own = (row for row in head.rows if row.shard == head.number)
    for row, size in zip(own, head.sizes, strict=True):
        yield row, content[at : at + size]
        at += size


def kept_batches(head: Head, content: bytes) -> Iterator[tuple[int, bytes]]:
    """Unordered data, each with its producer's lowest sequence."""
    at = len(content) - sum(size for _, size in head.kept)
    for lowest, size in head.kept:
        yield lowest, content[at : at + size]
        at += size


class ShardItem:
    """An item that was decoded."""

    __slots__ = ("_places", "content", "first", "local", "rows")

    def __init__(self, local: LocalSequence, content: bytes) -> None:
        head_bytes, rest = parts(content, 0, len(content))
        head = _head.decode(head_bytes)
        self.local = local
        self.content = content
        self.first = head.first
        self.rows = head.rows
        self._places: list[tuple[int, int] | None] = []
        """Of each row: where its batch begins and ends; None if another shard has it."""
        at = len(content) - len(rest)
        sizes = iter(head.sizes)
        for row in head.rows:
            size = next(sizes) if row.shard == head.number else 0
            mine = row.shard in (head.number, NO_SHARD)
            self._places.append((at, at + size) if mine else None)
            at += size
        assert at + sum(size for _, size in head.kept) == len(content), "sizes are of what is there"

    @property
    def end(self) -> Position:
        return end_of(self.rows, self.first)

    def since(self, position: Position) -> Iterator[tuple[Row, bytes | None]]:
        """Rows from the one that holds this position on, each with its batch: empty for no-ops,
        None for another shard's.
        """
        start = bisect_right(self.rows, position, key=_end_of_row)
        for nth in range(start, len(self.rows)):
            place = self._places[nth]
            yield self.rows[nth], self.content[slice(*place)] if place is not None else None


def _end_of_row(row: Row) -> Position:
    return row.end
