"""A record batch as it lies on the wire and in objects: Kafka's RecordBatch v2, byte for byte.

What a log acknowledges its readers must be able to read: `check` leaves nothing to be trusted.
"""

import struct
from collections.abc import Iterator
from operator import attrgetter

import msgspec
from msgspec.structs import astuple, replace

from anabranch.core.errors import BatchTooLarge, CorruptBatch, RecordTooLarge, UnsupportedBatch
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer
from anabranch.core.records.checksum import crc32c, crc32c_of_bytes
from anabranch.core.records.codecs import Codec, compress, expand
from anabranch.core.records.layout import MAGIC, content_bytes, faults
from anabranch.core.records.scan import HeaderBounds, portions
from anabranch.core.records.uniform import are_uniform, is_plain
from anabranch.core.types import Milliseconds, Position

HEADER = struct.Struct(">qiibIhiqqqhii")
_BASE_OFFSET = struct.Struct(">q")
_UNCOUNTED_BYTES = 12
"""Base offset and length: what comes before the bytes that the length counts."""
_SUMMED_FROM = 21
"""The checksum leaves out base offset, length, leader epoch, magic and itself."""
_RECORDS_FROM = HEADER.size

_CODEC_BITS = 0x07
_CODEC_MAX = int(Codec.ZSTD)
_REFUSED_BITS = (
    (0x08, "its times are stamped by a log, not by its producer"),
    (0x10, "it is part of a transaction"),
    (0x20, "it is a control batch"),
    (~0x3F, "it has attributes that this version doesn't know"),
)

_LENGTH_AND_COUNT = struct.Struct(">8xi45xi")

_UNIFORM_MIN = 32
"""Records of a batch from which on their layouts are compared before they are decoded."""

_TIMESTAMP_MIN: Milliseconds = -1
"""Kafka's "no timestamp"."""

_offset_of = attrgetter("offset")
_timestamp_of = attrgetter("timestamp")


class Header(msgspec.Struct, frozen=True, gc=False):
    """The 61 bytes before the records, in their order."""

    base_offset: Position
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: Milliseconds
    max_timestamp: Milliseconds
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def codec(self) -> Codec:
        return Codec(self.attributes & _CODEC_BITS)

    @property
    def size(self) -> int:
        """Of the whole batch, header included."""
        return self.length + _UNCOUNTED_BYTES


def peek(buffer: Buffer, offset: int = 0, where: str = "") -> Header:
    """The header of the batch that starts here, as it stands: nothing in it is checked."""
    try:
        return Header(*HEADER.unpack_from(buffer, offset))
    except struct.error:
        reason = f"{len(buffer) - offset} bytes can't hold a header of {HEADER.size}"
        raise CorruptBatch(reason, where) from None


def measure(buffer: Buffer) -> tuple[int, int]:
    """Bytes and records of a batch that was checked before."""
    length, count = _LENGTH_AND_COUNT.unpack_from(buffer)
    return length + _UNCOUNTED_BYTES, count


def check(buffer: Buffer, limits: Limits, where: str) -> Header:
    """The header of this one whole batch, which a producer sent, if all of it may enter a log."""
    if len(buffer) > limits.batch_bytes_max:
        raise BatchTooLarge(len(buffer), limits.batch_bytes_max)
    header = verify(buffer, where)
    check_records(buffer, header, limits, where)
    return header


def verify(buffer: Buffer, where: str) -> Header:
    """The header of this one whole batch, if header and checksum are as they should be."""
    if len(buffer) < _RECORDS_FROM:
        peek(buffer, 0, where)  # which says that it is too short
    header = Header(*HEADER.unpack_from(buffer))
    # One look for the many that are sound; what is wrong with another is found out below.
    if not (
        header.length + _UNCOUNTED_BYTES == len(buffer)
        and header.magic == MAGIC
        and crc32c_of_bytes(bytes(buffer[_SUMMED_FROM:])) == header.crc
        and 0 <= header.attributes <= _CODEC_MAX
        and 1 <= header.count == header.last_offset_delta + 1
        and header.max_timestamp >= header.base_timestamp
        and (
            header.producer_id == -1
            or (header.producer_id >= 0 <= header.producer_epoch and header.base_sequence >= 0)
        )
    ):
        raise _complaint(buffer, header, where)
    return header


def check_records(buffer: Buffer, header: Header, limits: Limits, where: str) -> None:
    """The records decode, are as many as the header says, without a gap, and none is too large.

    A batch that lied here would be acknowledged, and then stop every reader that came to it.
    """
    count = header.count
    if count > limits.batch_records_max:
        raise BatchTooLarge(count, limits.batch_records_max)
    if header.attributes:
        head, rest = unpack(buffer, header, limits.batch_unpacked_bytes_max, where)
        content, at = (rest, 0) if rest else (head, _RECORDS_FROM)
    else:
        head, rest, content, at = buffer, b"", buffer, _RECORDS_FROM
    # Most need not be decoded. Between one record and a few dozen, looking costs as much.
    if count == 1 or count >= _UNIFORM_MIN:
        if type(content) is not bytes:
            content = bytes(content)
        base = header.base_timestamp
        deltas = _TIMESTAMP_MIN - base, header.max_timestamp - base
        if count == 1:
            sound = is_plain(content, at, deltas, limits.record_bytes_max)
        else:
            sound = are_uniform(content, at, count, deltas, limits.record_bytes_max)
        if sound:
            return
    _decode_records(head, rest, header, limits, where)


def _decode_records(head: Buffer, rest: Buffer, header: Header, limits: Limits, where: str) -> None:
    bounds = HeaderBounds(limits.record_headers_max, limits.batch_headers_max)
    offsets: list[int] = []
    stamps: set[int] = set()
    largest = 0
    try:
        for size_max, records in portions(head, rest, _RECORDS_FROM, header.count, bounds, where):
            offsets += map(_offset_of, records)
            stamps.update(map(_timestamp_of, records))
            if size_max > limits.record_bytes_max:
                largest = max(largest, *map(content_bytes, records))
    except faults() as fault:
        raise CorruptBatch(f"its records can't be read: {fault}", where) from fault
    first = header.base_offset
    if offsets != [*range(first, first + header.count)]:
        raise CorruptBatch("its records aren't numbered one after the other", where)
    if min(stamps) < _TIMESTAMP_MIN or max(stamps) > header.max_timestamp:
        reason = f"its records have times from {min(stamps)} to {max(stamps)}"
        raise CorruptBatch(f"{reason}, and its header says {header.max_timestamp} at most", where)
    if largest > limits.record_bytes_max:
        raise RecordTooLarge(largest, limits.record_bytes_max)


def unpack(buffer: Buffer, header: Header, bytes_max: int, where: str) -> tuple[Buffer, Buffer]:
    """Two parts that make up the same batch uncompressed; its checksum no longer holds."""
    assert bytes_max > 0, "nothing could be unpacked"
    if not header.attributes & _CODEC_BITS:
        return (buffer, b"")
    view = memoryview(buffer)
    records = expand(header.codec, view[_RECORDS_FROM:], bytes_max, where)
    plain = HEADER.pack(*astuple(replace(header, attributes=header.attributes & ~_CODEC_BITS)))
    return (plain, records)


def pack(plain: bytes, codec: Codec) -> bytes:
    """The same batch compressed, or as it is where that gains nothing."""
    assert len(plain) > _RECORDS_FROM, "a batch has a record at least"
    assert codec is not Codec.NONE, "it is as it should be already"
    records = compress(codec, memoryview(plain)[_RECORDS_FROM:])
    size = _RECORDS_FROM + len(records)
    if size >= len(plain):
        return plain
    header = replace(peek(plain), length=size - _UNCOUNTED_BYTES, attributes=int(codec))
    tail = HEADER.pack(*astuple(header))[_SUMMED_FROM:] + records
    head = HEADER.pack(*astuple(replace(header, crc=crc32c(tail))))[:_SUMMED_FROM]
    assert len(head) + len(tail) == size
    return head + tail


def rebase(buffer: Buffer, base_offset: Position) -> tuple[Buffer, Buffer]:
    """The batch at another position; its checksum doesn't cover the base offset and still holds."""
    return (_BASE_OFFSET.pack(base_offset), memoryview(buffer)[_BASE_OFFSET.size :])


def split(buffer: Buffer, where: str = "") -> Iterator[tuple[int, int, Header]]:
    """Offset, length and header of each of the batches that fill this buffer, by headers alone."""
    offset = 0
    while offset < len(buffer):
        header = peek(buffer, offset, where)
        if not _RECORDS_FROM <= header.size <= len(buffer) - offset:
            reason = f"it claims {header.size} bytes at {offset} of {len(buffer)}"
            raise CorruptBatch(reason, where)
        yield offset, header.size, header
        offset += header.size


def _why_not(attributes: int) -> str:
    assert attributes, "these are taken"
    for bits, reason in _REFUSED_BITS:
        if attributes & bits:
            return reason
    return (
        f"it is compressed with codec {attributes & _CODEC_BITS}, which this version doesn't know"
    )


def _complaint(buffer: Buffer, header: Header, where: str) -> CorruptBatch | UnsupportedBatch:
    """Why `verify` won't have this batch."""
    if header.size != len(buffer):
        return CorruptBatch(f"it claims {header.size} bytes and has {len(buffer)}", where)
    if header.magic != MAGIC:
        return UnsupportedBatch(f"its format is {header.magic}, and only {MAGIC} is taken")
    crc = crc32c(buffer[_SUMMED_FROM:])
    if crc != header.crc:
        reason = f"its checksum is {crc:08x} where {header.crc:08x} is written"
        return CorruptBatch(reason, where)
    if not 0 <= header.attributes <= _CODEC_MAX:
        return UnsupportedBatch(_why_not(header.attributes))
    return CorruptBatch(_fault(header), where)


def _fault(header: Header) -> str:
    if not 1 <= header.count == header.last_offset_delta + 1:
        return f"it counts {header.count} records, the last numbered {header.last_offset_delta}"
    if header.max_timestamp < header.base_timestamp:
        return "its latest time lies before its first"
    if header.producer_id < -1:
        return f"{header.producer_id} can't be a producer"
    return f"producer {header.producer_id} gave it no epoch and sequence"
