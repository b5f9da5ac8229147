import pytest
from aiokafka.record.default_records import (
    _DefaultRecordBatchBuilderPy,  # pyright: ignore[reportPrivateUsage]
    _DefaultRecordBatchPy,  # pyright: ignore[reportPrivateUsage]
)
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import CorruptBatch
from anabranch.core.limits import Limits
from anabranch.core.records.batch import check
from anabranch.core.records.codecs import Codec
from anabranch.core.records.record import UNSTAMPED, Record, decode, encode

NOW = 1_700_000_000_000
TIMES = st.integers(0, 2**53)
CONTENT = st.none() | st.binary(max_size=300)
RECORDS = st.builds(
    Record,
    CONTENT,
    CONTENT,
    st.lists(st.tuples(st.text(max_size=20), CONTENT), max_size=4).map(tuple),
    TIMES,
)
BATCHES = st.lists(RECORDS, min_size=1, max_size=20)


@given(BATCHES, st.sampled_from(Codec))
def test_records_come_back_as_they_were(records: list[Record], codec: Codec) -> None:
    batch = encode(records, codec, now=NOW)
    header = check(batch, Limits(), "")
    assert decode(batch) == records
    assert header.count == len(records)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert header.codec in {codec, Codec.NONE}


@given(BATCHES, st.integers(0, 2**62), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1))
def test_bytes_are_those_of_kafkas_reference_layout(
    records: list[Record], producer_id: int, epoch: int, sequence: int
) -> None:
    reference = _DefaultRecordBatchBuilderPy(2, 0, 0, producer_id, epoch, sequence, 1 << 30)
    for number, each in enumerate(records):
        reference.append(number, each.timestamp, each.key, each.value, list(each.headers))
    mine = encode(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, now=NOW
    )
    assert mine == reference.build()


@given(BATCHES, st.sampled_from(Codec))
def test_kafkas_readers_read_ours(records: list[Record], codec: Codec) -> None:
    batch = _DefaultRecordBatchPy(encode(records, codec, now=NOW))
    assert batch.validate_crc()
    read = [Record(each.value, each.key, tuple(each.headers), each.timestamp) for each in batch]
    assert read == records


@pytest.mark.parametrize("codec", Codec)
def test_we_read_kafkas_writers(codec: Codec) -> None:
    writer = _DefaultRecordBatchBuilderPy(2, codec, 0, -1, -1, 0, 1 << 30)
    for number in range(100):
        writer.append(number, NOW + number, b"key", b"value " * 20, [("h", None)])
    batch = bytes(writer.build())
    assert check(batch, Limits(), "").codec is codec
    expected = [Record(b"value " * 20, b"key", (("h", None),), NOW + n) for n in range(100)]
    assert decode(batch) == expected


def test_the_layout_never_changes() -> None:
    records = [Record(b"v", b"k", (("h", None),), 1_000), Record(None, None, (), 999)]
    batch = encode(records, producer_id=1, producer_epoch=2, base_sequence=3, now=NOW)
    assert batch.hex(" ", -8) == (
        "0000000000000000 00000044ffffffff 022a8bc64e000000 0000010000000000 0003e80000000000 "
        "0003e80000000000 0000010002000000 0300000002160000 00026b0276020268 010c000102010100"
    )


def test_a_record_without_a_time_gets_that_of_its_sending() -> None:
    records = [Record(b"a"), Record(b"b", timestamp=5)]
    assert records[0].timestamp == UNSTAMPED
    assert [record.timestamp for record in decode(encode(records, now=NOW))] == [NOW, 5]


def test_what_compression_wouldnt_shrink_is_left_as_it_is() -> None:
    tiny = [Record(b"v", timestamp=1)]
    for codec in Codec:
        assert encode(tiny, codec, now=NOW) == encode(tiny, now=NOW)


@pytest.mark.parametrize("codec", Codec)
def test_the_same_records_give_the_same_bytes(codec: Codec) -> None:
    records = [Record(b"value" * 50, timestamp=number) for number in range(50)]
    assert encode(records, codec, now=NOW) == encode(list(records), codec, now=NOW + 1)


def test_a_damaged_batch_gives_no_record() -> None:
    batch = bytearray(encode([Record(b"value")] * 3, now=NOW))
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch):
        decode(batch)
