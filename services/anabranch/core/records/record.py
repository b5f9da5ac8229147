"""A record as people append and read it, and whole batches to and from records."""

import struct
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from anabranch.core.errors import CorruptBatch
from anabranch.core.machine import Buffer
from anabranch.core.producers import is_request
from anabranch.core.records.batch import HEADER, Header, pack, unpack, verify
from anabranch.core.records.codecs import Codec
from anabranch.core.records.layout import builder, content_bytes, faults
from anabranch.core.records.scan import HeaderBounds, portions
from anabranch.core.types import Milliseconds

UNSTAMPED: Milliseconds = -1
"""A record without a time of its own gets the one at which it is sent."""

UNPACKED_BYTES_CEILING = 256 << 20
"""No server's `batch_unpacked_bytes_max` exceeds it, so that whatever a log took can be read."""

BATCH_HEADERS_CEILING = 500_000
"""No server's `batch_headers_max` exceeds it. A batch with more was stored before there was such a
limit, and is not decoded.
"""
BATCH_RECORDS_CEILING = 500_000
"""No server's `batch_records_max` exceeds it: as objects, a compressed kilobyte of empty records
would take gigabytes.
"""
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_AT = 12
GIVEN_TIMES_BITS = 24
"""Of the hash of the times that a request's caller gave; 0: its client says nothing of them."""
_CEILINGS = HeaderBounds(BATCH_HEADERS_CEILING, BATCH_HEADERS_CEILING)


class Record(msgspec.Struct, frozen=True, gc=False):
    """It has no position of its own: the same record lies elsewhere in each log that has it."""

    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: Milliseconds = UNSTAMPED

    @property
    def size(self) -> int:
        """What `record_bytes_max` bounds."""
        return content_bytes(self)


def encode(
    records: Sequence[Record],
    codec: Codec = Codec.NONE,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    now: Milliseconds,
    retried: bool = False,
) -> bytes:
    """One batch, its base offset 0. `retried`: it may be sent again at another time, and is known
    by its digest then, as a request is.
    """
    assert records, "a batch has at least one record"
    batch = builder(producer_id, producer_epoch, base_sequence)
    append = batch.append
    for number, record in enumerate(records):
        stamp = record.timestamp
        append(
            number,
            now if stamp == UNSTAMPED else stamp,
            record.key,
            record.value,
            list(record.headers),
        )
    built = batch.build()
    if retried or is_request(producer_id, producer_epoch, base_sequence):
        # Only whoever encodes a batch knows which times were given and which are those of sending,
        # which differ when a request is repeated. The checksum leaves this field out.
        _LEADER_EPOCH.pack_into(built, _LEADER_EPOCH_AT, _given_times(records))
    plain = bytes(built)
    return plain if codec is Codec.NONE else pack(plain, codec)


def decode(buffer: Buffer, where: str = "") -> list[Record]:
    """The records of one whole batch, its checksum verified first."""
    return decode_verified(buffer, verify(buffer, where), where)


def decode_verified(buffer: Buffer, header: Header, where: str) -> list[Record]:
    """The same, for whoever has called `verify` already."""
    head, rest = unpack(buffer, header, UNPACKED_BYTES_CEILING, where)
    try:
        records = [
            Record(each.value, each.key, tuple(each.headers), each.timestamp)
            for portion in portions(head, rest, HEADER.size, header.count, _CEILINGS, where)
            for each in portion.records
        ]
    except faults() as fault:
        raise CorruptBatch(f"its records can't be read: {fault}", where) from fault
    assert len(records) == header.count
    return records


def _given_times(records: Sequence[Record]) -> int:
    """A hash of them; never 0."""
    times = b"".join(b"%d;" % record.timestamp for record in records)
    hashed = blake2b(times, digest_size=GIVEN_TIMES_BITS // 8).digest()
    return int.from_bytes(hashed) or 1
