"""What decoding a batch may cost, whatever its records say of themselves."""

import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import (
    AnabranchError,
    BatchTooLarge,
    BatchUnreadable,
    CorruptBatch,
    TooManyHeaders,
)
from anabranch.core.limits import KIB, MIB, Limits
from anabranch.core.records.batch import HEADER, Header, check
from anabranch.core.records.checksum import crc32c
from anabranch.core.records.codecs import Codec, compress, expand
from anabranch.core.records.origins import Run, deliveries
from anabranch.core.records.record import BATCH_HEADERS_CEILING, Record, decode, encode
from anabranch.core.types import LogId

LIMITS = Limits()
NULL = b"\1"
EMPTY_HEADER = b"\0\0"
SMALL = msgspec.structs.replace(
    LIMITS, record_headers_max=20, batch_headers_max=100, batch_unpacked_bytes_max=64 * KIB
)


def varint(number: int) -> bytes:
    left = (number << 1 ^ number >> 63) & (1 << 64) - 1
    out = bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def raw(
    number: int,
    headers: bytes = b"",
    count: int = 0,
    *,
    key: bytes = NULL,
    value: bytes = NULL,
    stamp: int = 0,
) -> bytes:
    """A record with these bytes for key and value, lengths included, and for its headers."""
    body = b"\0" + varint(stamp) + varint(number) + key + value + varint(count) + headers
    return varint(len(body)) + body


def batch(*records: bytes, codec: Codec = Codec.NONE, count: int = 0, latest: int = 0) -> bytes:
    content = compress(codec, b"".join(records))
    count = count or len(records)
    size = HEADER.size + len(content) - 12
    header = Header(0, size, 0, 2, 0, codec, count - 1, 0, latest, -1, -1, -1, count)
    summed = HEADER.pack(*msgspec.structs.astuple(header))[21:] + content
    header = msgspec.structs.replace(header, crc=crc32c(summed))
    return HEADER.pack(*msgspec.structs.astuple(header))[:21] + summed


def with_headers(*counts: int, codec: Codec = Codec.NONE) -> bytes:
    """A batch whose records have so many empty headers."""
    records = (raw(number, EMPTY_HEADER * count, count) for number, count in enumerate(counts))
    return batch(*records, codec=codec)


def peak_bytes(call: object, *arguments: object) -> int:
    """Most memory that Python held during the call, which may refuse."""
    assert callable(call)
    tracemalloc.start()
    try:
        call(*arguments)
    except AnabranchError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("codec", Codec)
def test_a_record_of_a_million_empty_headers_is_refused_before_it_is_decoded(codec: Codec) -> None:
    poison = with_headers(1_000_000, codec=codec)
    with pytest.raises(TooManyHeaders, match="record_headers_max"):
        check(poison, LIMITS, "")
    # The records take 2 MB, and are copied some times; decoded they would take over 100 MiB.
    assert peak_bytes(check, poison, LIMITS, "") < 16 * MIB


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_headers_are_bounded_per_record_and_per_batch(codec: Codec) -> None:
    check(with_headers(20, 20, 0, 20, 20, 20, codec=codec), SMALL, "")
    with pytest.raises(TooManyHeaders, match="a record has 21 headers, and the limit is 20"):
        check(with_headers(0, 21, codec=codec), SMALL, "")
    with pytest.raises(TooManyHeaders, match="a batch has 101 headers, and the limit is 100"):
        check(with_headers(20, 20, 20, 20, 20, 1, codec=codec), SMALL, "")


def test_headers_of_many_records_are_counted_before_the_last_is_decoded() -> None:
    poison = with_headers(*[1_000] * 1_000)
    with pytest.raises(TooManyHeaders, match="batch_headers_max"):
        check(poison, LIMITS, "")
    assert peak_bytes(check, poison, LIMITS, "") < 16 * MIB


def test_a_length_that_lies_has_no_more_decoded_than_a_piece() -> None:
    # By its length the first record ends before its headers; the second seems to hold the rest.
    empty = EMPTY_HEADER * 1_000_000
    liar = b"\x0c\0\0\0" + NULL + NULL + varint(1_000_000)
    hidden = varint(len(empty) + 3) + b"\0\0\0" + empty
    poison = batch(liar, hidden, count=2)
    with pytest.raises(AnabranchError):
        check(poison, LIMITS, "")
    assert peak_bytes(check, poison, LIMITS, "") < 32 * MIB


@pytest.mark.parametrize(
    "record",
    [
        raw(0, b"", -1),
        raw(0, b"", -(2**63)),
        raw(0, b"", 2**62),
        raw(0, varint(-1) + NULL, 1),
        raw(0, varint(-(2**63)) + NULL, 1),
        raw(0, varint(2**62) + NULL, 1),
        raw(0, b"\0" + varint(2**62), 1),
        raw(0, key=varint(2**62)),
        raw(0, value=varint(2**63 - 1)),
        raw(0, key=b"\xff" * 12),
        raw(0, stamp=1),
        raw(0, stamp=2**62),
        raw(0, stamp=-2),
        raw(0, stamp=-(2**63)),
        varint(-7) + raw(0)[1:],
    ],
)
@pytest.mark.parametrize("padding", [0, 300_000])
def test_lengths_counts_and_times_that_cant_be_are_refused(record: bytes, padding: int) -> None:
    large = raw(1, value=varint(padding) + bytes(padding))
    for order in ((record, large), (record,)):
        with pytest.raises(CorruptBatch):
            check(batch(*order), LIMITS, "")


def test_any_length_below_zero_stands_for_null() -> None:
    records = batch(raw(0, key=varint(-5), value=varint(-(2**63))))
    check(records, LIMITS, "")
    assert decode(records) == [Record(None, None, (), 0)]


def test_a_large_batch_is_decoded_in_pieces_as_it_was_written() -> None:
    sizes = [0, 1, 63, 64, 8_191, 8_192, 70_000, 300_000, 5] * 3
    records = [
        Record(bytes([number]) * size, b"k", (("n", b"v"),) * (number % 5), 7)
        for number, size in enumerate(sizes)
    ]
    for codec in Codec:
        whole = encode(records, codec, now=7)
        assert check(whole, LIMITS, "").count == len(records)
        assert check(memoryview(whole), LIMITS, "").count == len(records)
        assert decode(whole) == records


def test_what_a_reader_decodes_is_bounded_too_and_names_where_to_go_on() -> None:
    poison = with_headers(BATCH_HEADERS_CEILING + 1, codec=Codec.ZSTD)
    good = encode([Record(b"good")], now=1)
    run = Run(40, 3, 0, LogId(7), 11, 2 * len(good) + len(poison))
    found = deliveries((run,), (good, poison, good), "orders")
    assert next(found)[0] == 40
    with pytest.raises(BatchUnreadable) as unreadable:
        next(found)
    assert unreadable.value.facts["log"] == "orders"
    assert unreadable.value.facts["position"] == 41
    assert unreadable.value.facts["after"] == 42
    assert peak_bytes(decode, poison) < 6 * MIB


def test_a_frame_of_xerial_has_so_many_blocks_and_no_more() -> None:
    header = compress(Codec.SNAPPY, b"")
    empty = b"\0\0\0\1\0"
    assert len(expand(Codec.SNAPPY, header + empty * 16_384, MIB, "")) == 0
    with pytest.raises(CorruptBatch, match="more than 16384 blocks"):
        expand(Codec.SNAPPY, header + empty * 16_385, MIB, "")
    assert peak_bytes(expand, Codec.SNAPPY, header + empty * 800_000, MIB, "") < 12 * MIB


LENGTHS = st.integers(-3, 40) | st.sampled_from([2**31, 2**62, -(2**63)])
PARTS = (
    st.binary(max_size=12)
    | LENGTHS.map(varint)
    | st.integers(0, 400).map(lambda count: EMPTY_HEADER * count)
    | st.integers(0, 40).map(lambda count: raw(count, EMPTY_HEADER * count, count))
)


@given(st.lists(PARTS, min_size=1, max_size=12), st.integers(1, 9), st.sampled_from(Codec))
def test_whatever_comes_is_refused_or_within_all_bounds(
    parts: list[bytes], count: int, codec: Codec
) -> None:
    content = batch(b"".join(parts), codec=codec, count=count)
    try:
        check(content, SMALL, "")
    except (CorruptBatch, TooManyHeaders, BatchTooLarge):
        return
    records = decode(content)
    assert len(records) == count
    assert max(len(record.headers) for record in records) <= SMALL.record_headers_max
    assert sum(len(record.headers) for record in records) <= SMALL.batch_headers_max


@given(st.lists(PARTS, min_size=1, max_size=6), st.integers(0, 3), st.integers(1, 9))
def test_no_batch_costs_much_more_memory_than_it_has_bytes(
    parts: list[bytes], more: int, count: int
) -> None:
    content = batch(b"".join(parts * 10**more)[: 256 * KIB], codec=Codec.LZ4, count=count)
    peak = peak_bytes(check, content, SMALL, "")
    # Records of a piece are at hand together, a header of two bytes as some two hundred.
    assert peak < 256 * KIB + 4 * SMALL.batch_unpacked_bytes_max
