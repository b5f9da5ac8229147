"""An immutable object: many logs' batches, grouped by log, then a footer that says whose they are.

Its name carries the broker's epoch: a fenced broker can't write over its successor's objects.
"""

import re
import struct
from collections.abc import Sequence

import msgspec

from anabranch.core.errors import BadName, CorruptObject
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import measure
from anabranch.core.records.checksum import crc32c
from anabranch.core.types import LogId, ObjectId

VERSION = 1

_EPOCH_BITS = 24
_SEQUENCE_BITS = 40
"""A thousand objects a second for 34 years of one broker's life."""
EPOCHS = 1 << _EPOCH_BITS
SEQUENCES = 1 << _SEQUENCE_BITS
"""Numbers of objects, from 0; all are lower than this, as epochs are lower than `EPOCHS`."""
_EPOCH_DIGITS = len(str((1 << _EPOCH_BITS) - 1))
_SEQUENCE_DIGITS = len(str((1 << _SEQUENCE_BITS) - 1))

_HEAD = struct.Struct(">8sHHI")
"""Magic, version, bytes of the cluster's name, rows."""
_ROW = struct.Struct(">QQII")
"""Log, offset, length, records."""
_LENGTH = struct.Struct(">I")
"""Of the whole footer."""
_SEAL = struct.Struct(">I8s")
"""CRC32C of the footer before it, magic."""
_HEAD_MAGIC = b"ANBRrows"
_END_MAGIC = b"ANBRdone"

_NAME = re.compile(
    rf"(?P<cluster>[^/]+)/data/"
    rf"(?P<epoch>[0-9]{{{_EPOCH_DIGITS}}})/(?P<sequence>[0-9]{{{_SEQUENCE_DIGITS}}})"
)

TRAILER_BYTES = _LENGTH.size + _SEAL.size
"""What must be read of an object's end to learn how much of it is footer."""


class ObjectName(msgspec.Struct, frozen=True):
    """`<cluster>/data/<broker-epoch>/<sequence>`; names sort as they were given out."""

    cluster: str
    epoch: int
    sequence: int

    def __str__(self) -> str:
        epoch = f"{self.epoch:0{_EPOCH_DIGITS}}"
        return f"{self.cluster}/data/{epoch}/{self.sequence:0{_SEQUENCE_DIGITS}}"

    @property
    def id(self) -> ObjectId:
        return object_id(self.epoch, self.sequence)

    @staticmethod
    def of(cluster: str, packed: ObjectId) -> "ObjectName":
        return ObjectName(cluster, *split_id(packed))

    @staticmethod
    def parse(text: str) -> "ObjectName":
        found = _NAME.fullmatch(text)
        if found:
            name = ObjectName(found["cluster"], int(found["epoch"]), int(found["sequence"]))
            if name.epoch < EPOCHS and name.sequence < SEQUENCES:
                return name
        raise BadName(text, "an object's is <cluster>/data/<broker-epoch>/<sequence>")


_DATA, _QUARANTINE = "/data/", "/quarantine/"


def quarantined(name: str) -> str:
    """Where an orphan of this name lies until it is deleted."""
    assert _DATA in name, "it is no object's name"
    return _QUARANTINE.join(name.rsplit(_DATA, 1))


def unquarantined(name: str) -> str:
    """The name that an object in quarantine had."""
    return _DATA.join(name.rsplit(_QUARANTINE, 1))


def in_quarantine(text: str) -> ObjectName | None:
    """The name that this object in quarantine had; None if we didn't put it there."""
    try:
        name = ObjectName.parse(unquarantined(text))
    except BadName:
        return None
    return name if quarantined(str(name)) == text else None


def object_id(epoch: int, sequence: int) -> ObjectId:
    """Both in 64 bits without a sign; ids sort as names do."""
    assert 0 <= epoch < EPOCHS
    assert 0 <= sequence < SEQUENCES
    return ObjectId(epoch << _SEQUENCE_BITS | sequence)


def split_id(packed: ObjectId) -> tuple[int, int]:
    """Epoch and sequence."""
    return packed >> _SEQUENCE_BITS, packed & ((1 << _SEQUENCE_BITS) - 1)


class Placed(msgspec.Struct, frozen=True, gc=False):
    """One log's bytes in an object, and the records in them."""

    log: LogId
    offset: int
    length: int
    count: int


class Footer(msgspec.Struct, frozen=True):
    cluster: str
    rows: tuple[Placed, ...]


def lay_out(
    cluster: str, logs: Sequence[tuple[LogId, Sequence[Buffer]]]
) -> tuple[list[Buffer], list[Placed]]:
    """The object's parts, to be written one after the other, and where each log's bytes will lie.

    A log's buffers are whole batches, one each. None is copied.
    """
    assert logs, "an object has a batch at least"
    parts: list[Buffer] = []
    placed: list[Placed] = []
    offset = 0
    for log, batches in logs:
        lengths, counts = zip(*map(measure, batches), strict=True)
        assert lengths == (*map(len, batches),)
        length = sum(lengths)
        parts += batches
        placed.append(Placed(log, offset, length, sum(counts)))
        offset += length
    assert not _fault(placed, offset)
    parts.append(_footer(cluster.encode(), placed))
    return parts, placed


def footer_bytes(tail: Buffer, size: int, name: str) -> int:
    """How much of the end of an object of this size is footer; its last `TRAILER_BYTES` tell."""
    if size < TRAILER_BYTES:
        raise CorruptObject(name, f"its {size} bytes can't hold a footer")
    assert TRAILER_BYTES <= len(tail) <= size, "read as much of the end as a trailer takes"
    (length,) = _LENGTH.unpack_from(tail, len(tail) - TRAILER_BYTES)
    _, magic = _SEAL.unpack_from(tail, len(tail) - _SEAL.size)
    if magic != _END_MAGIC:
        raise CorruptObject(name, "it doesn't end as an object does: it may be cut short")
    if not _HEAD.size + TRAILER_BYTES <= length <= size:
        raise CorruptObject(name, f"its footer claims {length} of {size} bytes")
    return length


def read_footer(tail: Buffer, size: int, name: str) -> Footer:
    """The footer of an object of this size, from as much of its end as `footer_bytes` asks for."""
    length = footer_bytes(tail, size, name)
    assert length <= len(tail), "read as much of the end as footer_bytes says"
    footer = memoryview(tail)[len(tail) - length :]
    crc, _ = _SEAL.unpack_from(footer, length - _SEAL.size)
    if crc32c(footer[: -_SEAL.size]) != crc:
        raise CorruptObject(name, "its footer's checksum is wrong")
    return _read(footer, size, name)


def _footer(cluster: bytes, placed: Sequence[Placed]) -> bytes:
    rows = [_ROW.pack(row.log, row.offset, row.length, row.count) for row in placed]
    length = _HEAD.size + len(cluster) + len(rows) * _ROW.size + TRAILER_BYTES
    head = _HEAD.pack(_HEAD_MAGIC, VERSION, len(cluster), len(rows))
    summed = b"".join((head, cluster, *rows, _LENGTH.pack(length)))
    return summed + _SEAL.pack(crc32c(summed), _END_MAGIC)


def _read(footer: memoryview, size: int, name: str) -> Footer:
    """Of a footer whose checksum is right: what is wrong here was written so."""
    magic, version, cluster_bytes, count = _HEAD.unpack_from(footer)
    if magic != _HEAD_MAGIC:
        raise CorruptObject(name, "its footer doesn't begin as one does")
    if version != VERSION:
        raise CorruptObject(name, f"its format is {version}, and this program reads {VERSION}")
    start = _HEAD.size + cluster_bytes
    end = len(footer) - TRAILER_BYTES
    if start + count * _ROW.size != end:
        raise CorruptObject(name, f"its footer of {len(footer)} bytes can't hold {count} rows")
    rows = tuple(Placed(*row) for row in _ROW.iter_unpack(footer[start:end]))
    fault = _fault(rows, size - len(footer))
    if fault:
        raise CorruptObject(name, fault)
    try:
        cluster = str(footer[_HEAD.size : start], "utf-8")
    except UnicodeDecodeError:
        raise CorruptObject(name, "its cluster's name isn't text") from None
    return Footer(cluster, rows)


def _fault(rows: Sequence[Placed], body_bytes: int) -> str:
    """Rows cover the bytes before the footer one after the other, each log once."""
    end = 0
    for row in rows:
        if row.offset != end:
            return f"log {row.log} begins at {row.offset}, where {end} was expected"
        if not row.length or not row.count:
            return f"log {row.log} has {row.count} records in {row.length} bytes"
        end += row.length
    if end != body_bytes:
        return f"its rows end at {end} and its footer begins at {body_bytes}"
    if len({row.log for row in rows}) != len(rows):
        return "it has two rows for one log"
    return ""
