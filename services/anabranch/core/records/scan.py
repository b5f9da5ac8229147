"""Decode the records of a batch at a bounded cost.

A record header takes two bytes and becomes some two hundred in memory, so that 16 MiB of empty
headers would become gigabytes. The compiled reader decodes a whole record at once and believes a
record's own count of headers up to the end of its buffer. So it is given a large batch in pieces
that can't hold more headers than the batch may have, and the headers are counted as they come. A
record that is larger than a piece has its headers counted before it is decoded.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

from anabranch.core.errors import CorruptBatch, TooManyHeaders
from anabranch.core.machine import Buffer
from anabranch.core.records.layout import Decoded, parse

_HEADER_BYTES_MIN = 2
"""The lengths of an empty name and of an empty value."""
_PIECE_BYTES = 64 * 1024
"""Small enough that its memory is used again for the next one."""
_PORTION = 64
"""Records decoded before any of them is let go. With thousands, Python's collector of cycles would
look through all of them again and again.
"""
_VARINT_BYTES_MAX = 10
_COUNT = struct.Struct(">i")

_headers_of = attrgetter("headers")


class HeaderBounds(NamedTuple):
    record: int
    """Headers of one record."""
    batch: int
    """Headers of all records of a batch."""


class Portion(NamedTuple):
    """Records that follow each other in a batch."""

    size_max: int
    """None of them takes more bytes."""
    records: Sequence[Decoded]


def portions(
    head: Buffer, rest: Buffer, start: int, count: int, bounds: HeaderBounds, where: str
) -> Iterator[Portion]:
    """Decode `count` records of an uncompressed batch in two parts; raises `faults()`, too.

    They begin at `start` of `head`, or are all in `rest`.
    """
    assert count > 0, "a batch has one record at least"
    assert start >= 0
    room = len(head) + len(rest) - start
    if room <= _HEADER_BYTES_MIN * bounds.record:
        for portion in _portioned(parse(head, rest)):
            yield Portion(room, portion)
        return
    headers = 0
    for size, records in _pieces(head, rest, start, count, bounds, where):
        for portion in _portioned(records):
            if any(map(_headers_of, portion)):
                headers = _check([*map(len, map(_headers_of, portion))], headers, bounds)
            yield Portion(size, portion)


def _portioned(records: Iterable[Decoded]) -> Iterator[list[Decoded]]:
    # The compiled reader begins anew if it is asked again after its end.
    left = chain(records)
    while portion := [*islice(left, _PORTION)]:
        yield portion


def _pieces(
    head: Buffer, rest: Buffer, start: int, count: int, bounds: HeaderBounds, where: str
) -> Iterator[tuple[int, Iterable[Decoded]]]:
    """Bytes and records of each, none of which holds too many headers for the batch."""
    room = len(head) + len(rest) - start
    if room <= _HEADER_BYTES_MIN * bounds.batch:
        yield room, parse(head, rest)
        return
    content, at = (rest, 0) if rest else (head, start)
    before = memoryview(head)[: start - _COUNT.size]
    piece_bytes = min(_PIECE_BYTES, _HEADER_BYTES_MIN * bounds.batch)
    for low, high, number in _cuts(content, at, count, piece_bytes, where):
        if high - low > piece_bytes:
            _check([_headers_in(content, low, where)], 0, bounds)
        alone = b"".join((before, _COUNT.pack(number)))
        yield high - low, parse(alone, memoryview(content)[low:high])


def _check(counts: Sequence[int], before: int, bounds: HeaderBounds) -> int:
    """Headers of the batch so far, with these of as many records."""
    assert counts, "a record at least was decoded"
    largest, total = max(counts), before + sum(counts)
    if largest > bounds.record:
        raise TooManyHeaders("a record", largest, bounds.record, "record_headers_max")
    if total > bounds.batch:
        raise TooManyHeaders("a batch", total, bounds.batch, "batch_headers_max")
    return total


def _cuts(
    content: Buffer, at: int, count: int, piece_bytes: int, where: str
) -> Iterator[tuple[int, int, int]]:
    """Start, end and records of each piece, by what the records say of their lengths.

    A length may lie, and the compiled reader will find out; it then reads no further than the
    piece.
    """
    start = end = at
    stop = start + piece_bytes
    first = 0
    try:
        for nth in range(count):
            # Two bytes are enough for nearly every length, and this loop is all that a large batch
            # of small records pays.
            low = content[at]
            if low < 0x80:
                at += 1 + (low >> 1)
            elif (high := content[at + 1]) < 0x80:
                at += 2 + ((low & 0x7F | high << 7) >> 1)
            else:
                length, at = _varint(content, at, where)
                at += max(0, length)
            if at > stop and nth > first:
                yield start, end, nth - first
                start, stop, first = end, end + piece_bytes, nth
            end = at
    except IndexError:
        raise _cut_short(where) from None
    if end != len(content):
        raise CorruptBatch(f"its records end at {end} of {len(content)} bytes", where)
    yield start, end, count - first


def _headers_in(content: Buffer, at: int, where: str) -> int:
    """Headers of the record that starts here, by its own word, which the compiled reader takes."""
    try:
        # Length, attributes, time and number.
        for _ in range(4):
            _, at = _varint(content, at, where)
        for _ in ("key", "value"):
            length, at = _varint(content, at, where)
            # As in Kafka's own reader, any length below zero stands for null.
            at += max(0, length)
        count, _ = _varint(content, at, where)
    except IndexError:
        raise _cut_short(where) from None
    return count


def _varint(content: Buffer, at: int, where: str) -> tuple[int, int]:
    """A number in zigzag encoding, and where it ends."""
    value = 0
    for nth in range(_VARINT_BYTES_MAX):
        byte = content[at + nth]
        value |= (byte & 0x7F) << 7 * nth
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at + nth + 1
    raise CorruptBatch("a number in its records takes more than 64 bits", where)


def _cut_short(where: str) -> CorruptBatch:
    return CorruptBatch("its records go on behind its end", where)
