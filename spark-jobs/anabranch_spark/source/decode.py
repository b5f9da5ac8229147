"""Bytes of a slice become columns: the one seam behind which batches are decoded.

The project's codec decodes each stored batch at a bounded cost; checksums and counts are verified
here, where bytes leave the store.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from anabranch.core.records.batch import HEADER, Header, split, unpack, verify
from anabranch.core.records.layout import Decoded, faults
from anabranch.core.records.record import (
    BATCH_HEADERS_CEILING,
    BATCH_RECORDS_CEILING,
    UNPACKED_BYTES_CEILING,
)
from anabranch.core.records.scan import HeaderBounds, portions
from anabranch.errors import BatchTooLarge, BatchUnreadable, CorruptBatch, TooManyHeaders

Buffer = bytes | bytearray | memoryview
Pairs = Sequence[tuple[str, bytes | None]]

_BOUNDS = HeaderBounds(BATCH_HEADERS_CEILING, BATCH_HEADERS_CEILING)
_keys = attrgetter("key")
_values = attrgetter("value")
_stamps = attrgetter("timestamp")
_headers = attrgetter("headers")


class Span(msgspec.Struct, frozen=True, gc=False):
    """Which records of some bytes are meant, and where they lie."""

    log: str
    first: int
    """Position of the first that is meant."""
    count: int
    skip: int
    """Records of the bytes before the first that is meant."""
    origin: int
    origin_first: int


class Wanted(NamedTuple):
    """The contents that somebody will look at; the others aren't made."""

    keys: bool = True
    values: bool = True
    stamps: bool = True
    headers: bool = True


class Stretch(msgspec.Struct, frozen=True):
    """Records of one stored batch, column by column. A column that nobody wants is empty."""

    first: int
    origin: int
    origin_first: int
    count: int
    size: int
    """Bytes of the whole batch, not compressed."""
    keys: list[bytes | None]
    values: list[bytes | None]
    stamps: list[int]
    headers: list[Pairs]


def decode(span: Span, content: Buffer, wanted: Wanted) -> list[Stretch]:
    """The records that are meant. CorruptBatch or UnsupportedBatch if the bytes aren't what was
    written, or hold fewer records; BatchUnreadable if to decode them would cost too much.
    """
    view = memoryview(content)
    where = f"at {span.origin_first} of log {span.origin}"
    found: list[Stretch] = []
    passed, end = 0, span.skip + span.count
    for offset, length, _ in split(view, where):
        # Batches of which nothing is meant are verified too: their counts place the others.
        batch = view[offset : offset + length]
        header = verify(batch, where)
        low, high = max(span.skip - passed, 0), min(end - passed, header.count)
        if low < high:
            found.append(_stretch(span, batch, header, passed, low, high, wanted))
        passed += header.count
    if passed < end:
        raise CorruptBatch(f"{end} records were named and {passed} came", where)
    return found


def _stretch(
    span: Span, batch: memoryview, header: Header, passed: int, low: int, high: int, wanted: Wanted
) -> Stretch:
    ahead = passed + low - span.skip
    first, origin_first = span.first + ahead, span.origin_first + ahead
    where = f"at {origin_first} of log {span.origin}"
    try:
        if header.count > BATCH_RECORDS_CEILING:
            raise BatchTooLarge(header.count, BATCH_RECORDS_CEILING)
        size, records = _records(batch, header, where)
    except (BatchTooLarge, TooManyHeaders) as error:
        last = first + high - low
        raise BatchUnreadable(span.log, first, last, error.message) from None
    if high - low < len(records):
        records = records[low:high]
    return Stretch(
        first,
        span.origin,
        origin_first,
        high - low,
        size,
        [*map(_keys, records)] if wanted.keys else [],
        [*map(_values, records)] if wanted.values else [],
        [*map(_stamps, records)] if wanted.stamps else [],
        [*map(_headers, records)] if wanted.headers else [],
    )


def _records(batch: memoryview, header: Header, where: str) -> tuple[int, list[Decoded]]:
    """Bytes and records of a whole batch that was verified."""
    head, rest = unpack(batch, header, UNPACKED_BYTES_CEILING, where)
    records: list[Decoded] = []
    try:
        for portion in portions(head, rest, HEADER.size, header.count, _BOUNDS, where):
            records += portion.records
    except faults() as fault:
        raise CorruptBatch(f"its records can't be read: {fault}", where) from fault
    if len(records) != header.count:
        raise CorruptBatch(f"it has {len(records)} records and counts {header.count}", where)
    return len(head) + len(rest), records
