import struct
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import (
    AnabranchError,
    BatchTooLarge,
    CorruptBatch,
    RecordTooLarge,
    UnsupportedBatch,
)
from anabranch.core.limits import Limits
from anabranch.core.records.batch import HEADER, check, peek, rebase, split, verify
from anabranch.core.records.checksum import crc32c
from anabranch.core.records.codecs import Codec, compress
from anabranch.core.records.record import Record, decode, encode

LIMITS = Limits()
NOW = 1_700_000_000_000
COMPRESSED = tuple(codec for codec in Codec if codec is not Codec.NONE)


def values(count: int, size: int = 20, codec: Codec = Codec.NONE) -> bytes:
    records = [Record(bytes([number % 251]) * size) for number in range(count)]
    return encode(records, codec, producer_id=7, producer_epoch=2, base_sequence=40, now=NOW)


def forged(batch: bytes, records: bytes = b"", /, **fields: int) -> bytes:
    """With these header fields, and these records if any, and a checksum and length that fit."""
    records = records or batch[HEADER.size :]
    length = HEADER.size + len(records) - 12
    header = msgspec.structs.replace(peek(batch), length=length, **fields)
    summed = HEADER.pack(*msgspec.structs.astuple(header))[21:] + records
    header = msgspec.structs.replace(header, crc=crc32c(summed))
    return HEADER.pack(*msgspec.structs.astuple(header))[:21] + summed


def test_crc32c_is_castagnolis_over_any_buffer() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytearray(b"123456789")) == 0xE3069283
    assert crc32c(memoryview(b"x123456789")[1:]) == 0xE3069283


def test_a_header_says_what_the_batch_was_made_of() -> None:
    header = check(values(3), LIMITS, "")
    assert (header.count, header.last_offset_delta, header.base_offset) == (3, 2, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW)
    assert header.codec is Codec.NONE
    assert header.size == len(values(3))


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_checked_where_it_lies_in_a_larger_buffer(codec: Codec) -> None:
    batch = values(50, codec=codec)
    header = check(memoryview(b"before" + batch + b"after")[6:-5], LIMITS, "")
    assert (header.codec, header.count) == (codec, 50)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_every_bit_flip_is_refused(codec: Codec) -> None:
    batch = values(4, codec=codec)
    # The log itself writes base offset and leader epoch, so that the checksum leaves them out.
    for place in set(range(len(batch))) - set(range(8)) - set(range(12, 16)):
        for bit in range(8):
            flipped = bytearray(batch)
            flipped[place] ^= 1 << bit
            with pytest.raises((CorruptBatch, UnsupportedBatch)):
                verify(flipped, "")


def test_every_truncation_is_refused() -> None:
    batch = values(4)
    for length in range(len(batch)):
        with pytest.raises(CorruptBatch):
            check(batch[:length], LIMITS, "")
    with pytest.raises(CorruptBatch):
        check(batch + b"\0", LIMITS, "")


def test_a_damaged_batch_is_named_by_where_it_is() -> None:
    with pytest.raises(CorruptBatch, match="at 12 of orders"):
        verify(values(1)[:-1], "at 12 of orders")


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (0x08, "stamped by a log"),
        (0x10, "transaction"),
        (0x20, "control"),
        (0x40, "doesn't know"),
        (-0x8000, "doesn't know"),
        (5, "codec 5"),
        (7, "codec 7"),
    ],
)
def test_attributes_we_dont_keep_the_promise_of_are_refused(attributes: int, reason: str) -> None:
    with pytest.raises(UnsupportedBatch, match=reason):
        check(forged(values(1), attributes=attributes), LIMITS, "")


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_formats_are_refused(magic: int) -> None:
    with pytest.raises(UnsupportedBatch, match=f"format is {magic}"):
        check(forged(values(1), magic=magic), LIMITS, "")


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 0, "last_offset_delta": -1},
        {"count": -1, "last_offset_delta": -2},
        {"count": 3, "last_offset_delta": 3},
        {"count": 2, "last_offset_delta": 1},
        {"count": 4, "last_offset_delta": 3},
        {"max_timestamp": NOW - 1},
        {"producer_id": -2},
        {"producer_epoch": -1},
        {"base_sequence": -1},
    ],
)
def test_headers_that_contradict_themselves_or_the_records_are_refused(
    fields: dict[str, int],
) -> None:
    with pytest.raises(CorruptBatch):
        check(forged(values(3), **fields), LIMITS, "")


def test_a_producer_that_has_no_id_needs_no_sequence() -> None:
    check(forged(values(1), producer_id=-1, producer_epoch=-1, base_sequence=-1), LIMITS, "")


def test_any_base_offset_is_taken_since_the_log_gives_its_own() -> None:
    for offset in (1, 2**62):
        assert check(forged(values(3), base_offset=offset), LIMITS, "").count == 3


@pytest.mark.parametrize("codec", Codec)
def test_records_must_be_numbered_from_zero_without_a_gap(codec: Codec) -> None:
    plain = values(3)
    size = (len(plain) - HEADER.size) // 3
    records = [plain[HEADER.size + size * n : HEADER.size + size * (n + 1)] for n in range(3)]
    for order in ((0, 2, 1), (1, 2, 0), (0, 0, 1), (0, 1, 1)):
        content = compress(codec, b"".join(records[number] for number in order))
        with pytest.raises(CorruptBatch, match="numbered"):
            check(forged(plain, content, attributes=codec), LIMITS, "")


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(out) + bytes([zigzag])


def body(*fields: bytes, claims: int | None = None) -> bytes:
    """One record of these fields after its attributes, time and number."""
    content = b"\0\0\0" + b"".join(fields)
    return varint(len(content) if claims is None else claims) + content


@pytest.mark.parametrize(
    "records",
    [
        b"\x80",
        b"\xff" * 30,
        body(varint(-1), varint(2**63 - 40), b""),
        body(varint(2**63 - 1), b""),
        body(varint(2**63 - 65), b""),
        body(varint(-1), varint(2**40), b"value"),
        body(varint(-1), varint(-1), varint(-1)),
        body(varint(-1), varint(-1), varint(1)),
        body(varint(-1), varint(-1), varint(2**62)),
        body(varint(-1), varint(-1), b"\x80"),
        body(varint(-1), varint(-1), b"\x83"),
        body(varint(-1), varint(-1), varint(1), varint(-1), varint(0)),
        body(varint(-1), varint(-1), varint(1), varint(2), b"\xff\xfe", varint(-1)),
        body(varint(-1), varint(-1), varint(0), claims=5),
        body(varint(-1), varint(-1), varint(0), claims=7),
        body(varint(-1), varint(-1), varint(0)) + b"\0",
        body(varint(-1), varint(-1), varint(0)) * 2,
    ],
)
def test_malformed_records_under_a_right_checksum_are_refused(records: bytes) -> None:
    with pytest.raises(CorruptBatch):
        check(forged(values(1), records), LIMITS, "")
    with pytest.raises(CorruptBatch):
        check(forged(values(1), compress(Codec.ZSTD, records), attributes=4), LIMITS, "")


@given(
    st.sampled_from(Codec),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 400),
)
def test_whatever_passes_the_check_can_be_read(
    codec: Codec, changes: list[tuple[int, int]], cut: int
) -> None:
    batch = encode([Record(b"v" * 90, b"key", (("h", b"x"),)) for _ in range(3)], now=NOW)
    records = bytearray(batch[HEADER.size :])
    for place, byte in changes:
        records[place % len(records)] = byte
    content = compress(codec, records[: len(records) - cut // 100])
    suspect = forged(batch, content, attributes=codec)
    try:
        check(suspect, LIMITS, "")
    except AnabranchError as refusal:
        assert refusal.code == "corrupt-batch"  # noqa: PT017  either end of the check is right
    else:
        assert len(decode(suspect)) == 3


@pytest.mark.parametrize("codec", Codec)
def test_a_record_one_byte_over_its_limit_is_refused(codec: Codec) -> None:
    limits = Limits(record_bytes_max=1_000)
    largest = Record(b"v" * 900, b"k" * 50, (("né", b"h" * 47),))
    assert largest.size == 1_000
    over = Record(b"v" * 901, b"k" * 50, (("né", b"h" * 47),))
    check(encode([largest] * 3, codec, now=NOW), limits, "")
    with pytest.raises(RecordTooLarge) as refusal:
        check(encode([largest, over], codec, now=NOW), limits, "")
    assert refusal.value.facts == {"size": 1_001, "limit": 1_000}


def test_a_batch_one_byte_over_its_limit_is_refused() -> None:
    batch = values(3)
    check(batch, Limits(batch_bytes_max=len(batch)), "")
    with pytest.raises(BatchTooLarge):
        check(batch, Limits(batch_bytes_max=len(batch) - 1), "")


def test_a_batch_one_record_over_its_limit_is_refused() -> None:
    check(values(3), Limits(batch_records_max=3), "")
    with pytest.raises(BatchTooLarge):
        check(values(3), Limits(batch_records_max=2), "")


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_batch_that_would_grow_past_its_limit_is_refused(codec: Codec) -> None:
    plain = values(1, size=100_000)
    packed = values(1, size=100_000, codec=codec)
    assert len(packed) < len(plain) // 10
    grown = len(plain) - HEADER.size
    check(packed, Limits(batch_unpacked_bytes_max=grown), "")
    with pytest.raises(BatchTooLarge):
        check(packed, Limits(batch_unpacked_bytes_max=grown - 1), "")


def test_a_rebased_batch_keeps_its_checksum_and_shares_its_bytes() -> None:
    batch = bytearray(values(3))
    head, rest = rebase(batch, 2**40 + 5)
    moved = bytes(head) + bytes(rest)
    assert verify(moved, "").base_offset == 2**40 + 5
    assert moved[8:] == batch[8:]
    assert isinstance(rest, memoryview)
    assert rest.obj is batch


def test_split_walks_batches_by_their_headers() -> None:
    batches = [values(count) for count in (1, 5, 2)]
    found = list(split(b"".join(batches)))
    assert [(length, header.count) for _, length, header in found] == [
        (len(batch), count) for batch, count in zip(batches, (1, 5, 2), strict=True)
    ]
    assert [offset for offset, _, _ in found] == [0, len(batches[0]), len(batches[0] + batches[1])]


def test_split_refuses_a_part_of_a_batch_and_lengths_that_lead_nowhere() -> None:
    batch = values(1)
    for length in range(1, len(batch)):
        with pytest.raises(CorruptBatch):
            list(split(batch + batch[:length]))
    for claim in (-12, 0, 48, 2**31 - 1):
        with pytest.raises(CorruptBatch):
            list(split(batch[:8] + struct.pack(">i", claim) + batch[12:]))


def test_looking_at_a_batch_loads_no_kafka_client() -> None:
    program = (
        "import sys\n"
        "from anabranch.core.records import batch, codecs, objects, origins, record\n"
        f"batch.verify({values(2)!r}, '')\n"
        "assert 'aiokafka' not in sys.modules\n"
        f"assert len(record.decode({values(2)!r})) == 2\n"
        "assert 'aiokafka' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
