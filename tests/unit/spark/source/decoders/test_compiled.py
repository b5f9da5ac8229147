"""The compiled decoder gives what the plain one gives, whatever it is given."""

import struct
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Codec, PlannedSlice, Record
from anabranch.core.records.checksum import crc32c
from anabranch.errors import AnabranchError
from anabranch_spark.source import decode as seam
from anabranch_spark.source.decode import Span, Stretch, Switch, decode
from anabranch_spark.source.decoders import plain
from anabranch_spark.source.decoders.batches import Batch, Columns, Decoder, Wanted

pytest.importorskip("numba", reason="the extra spark-fast isn't installed")

from anabranch_spark.source.decoders import compiled

Store = Callable[..., tuple[PlannedSlice, bytes]]

octets = st.none() | st.binary(max_size=40) | st.binary(min_size=60, max_size=300)
names = st.text("abc", max_size=5) | st.text(max_size=5)
records = st.builds(
    Record,
    value=octets,
    key=octets,
    headers=st.lists(st.tuples(names, octets), max_size=3).map(tuple),
    timestamp=st.integers(0, 1 << 40) | st.just((1 << 62) - 1),
)
plain_records = st.builds(Record, value=octets, key=octets, timestamp=st.integers(0, 1 << 40))
batches = st.lists(
    st.lists(records, min_size=1, max_size=8) | st.lists(plain_records, min_size=1, max_size=80),
    min_size=1,
    max_size=4,
)
wishes = st.builds(Wanted, st.booleans(), st.booleans(), st.booleans(), st.booleans())

_RECORDS_FROM = 61
_SUMMED_FROM = 21
_CRC = struct.Struct(">I")
_COUNTS = struct.Struct(">i")
_COUNT_AT, _LAST_NUMBER_AT = 57, 23


def summed(batch: bytearray) -> bytes:
    """The batch with the checksum that its bytes have now."""
    _CRC.pack_into(batch, 17, crc32c(bytes(batch[_SUMMED_FROM:])))
    return bytes(batch)


def outcome(
    each: PlannedSlice, content: bytes, wanted: Wanted, decoder: Decoder
) -> list[Stretch] | tuple[str, str]:
    """What comes, or the error's code and text."""
    span = Span("orders", each.first, each.count, each.skip, each.origin, each.origin_first)
    try:
        found = decode(span, content, wanted, decoder)
    except AnabranchError as error:
        return error.code, str(error)
    for stretch in found:
        for column in (stretch.keys, stretch.values, stretch.stamps, stretch.headers):
            if column is not None:
                column.validate(full=True)
                assert len(column) == stretch.count
    return found


def strict(batches: Sequence[Batch], wanted: Wanted) -> Columns:
    """The compiled decoder, which must not leave these to the plain one."""
    group = compiled._walked(batches)
    assert group is not None
    return group.columns(wanted)


@given(given_batches=batches, codec=st.sampled_from(Codec), wanted=wishes, data=st.data())
def test_any_records_have_the_same_columns(
    stored: Store,
    given_batches: list[list[Record]],
    codec: Codec,
    wanted: Wanted,
    data: st.DataObject,
) -> None:
    total = sum(map(len, given_batches))
    skip = data.draw(st.integers(0, total - 1))
    count = data.draw(st.integers(1, total - skip))
    each, content = stored(given_batches, codec=codec, skip=skip, count=count)
    expected = outcome(each, content, wanted, plain.columns)
    assert outcome(each, content, wanted, compiled.columns) == expected
    assert isinstance(expected, list)


@given(st.lists(plain_records, min_size=1, max_size=300), st.sampled_from(Codec))
def test_usual_records_are_never_left_to_the_plain_decoder(
    stored: Store, made: list[Record], codec: Codec
) -> None:
    headed = [Record(b"v", b"k", (("name", b"value"), ("other", None)), 5), *made]
    each, content = stored([headed, made], codec=codec)
    expected = outcome(each, content, Wanted(), plain.columns)
    assert outcome(each, content, Wanted(), strict) == expected


@given(
    made=st.lists(records, min_size=1, max_size=6),
    changes=st.lists(
        st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), min_size=1, max_size=4
    ),
    length=st.none() | st.integers(-12, -1) | st.binary(min_size=1, max_size=12),
)
def test_damaged_records_have_the_same_outcome(
    stored: Store,
    made: list[Record],
    changes: list[tuple[int, int]],
    length: int | bytes | None,
) -> None:
    """Their checksum is right: somebody wrote them so."""
    each, content = stored([made])
    harmed = bytearray(content)
    for at, byte in changes:
        harmed[_RECORDS_FROM + at % (len(content) - _RECORDS_FROM)] = byte
    if isinstance(length, int):
        harmed = harmed[: max(length + len(harmed), _RECORDS_FROM)]
    elif length is not None:
        harmed += length
    _COUNTS.pack_into(harmed, 8, len(harmed) - 12)
    damaged = summed(harmed)
    expected = outcome(each, damaged, Wanted(), plain.columns)
    assert outcome(each, damaged, Wanted(), compiled.columns) == expected


@given(count=st.integers(1, 20) | st.integers(1, (1 << 31) - 1))
def test_a_count_that_lies_has_the_same_outcome(stored: Store, count: int) -> None:
    each, content = stored([[Record(b"v", b"k")] * 9], count=1)
    harmed = bytearray(content)
    _COUNTS.pack_into(harmed, _COUNT_AT, count)
    _COUNTS.pack_into(harmed, _LAST_NUMBER_AT, count - 1)
    lying = summed(harmed)
    expected = outcome(each, lying, Wanted(), plain.columns)
    assert outcome(each, lying, Wanted(), compiled.columns) == expected
    assert isinstance(expected, list) == (count == 9)


def test_too_many_headers_are_refused_alike(stored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = plain._BOUNDS._replace(record=10, batch=15)
    monkeypatch.setattr(plain, "_BOUNDS", bounds)
    monkeypatch.setattr(compiled, "BATCH_HEADERS_CEILING", bounds.batch)
    each, content = stored([[Record(b"v", None, (("h", b""),) * 8)] * 2])
    expected = outcome(each, content, Wanted(), plain.columns)
    assert outcome(each, content, Wanted(), compiled.columns) == expected
    assert isinstance(expected, tuple)
    assert expected[0] == "batch-unreadable"


def test_many_batches_are_decoded_in_groups(stored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "GROUP_BYTES", 4_000)
    made = [[Record(b"%d" % nth * 30, b"k") for nth in range(20)] for _ in range(12)]
    each, content = stored(made, skip=25)
    found = outcome(each, content, Wanted(), strict)
    assert found == outcome(each, content, Wanted(), plain.columns)
    assert len(found) > 2


def test_a_process_loads_the_compiled_decoder_once_it_pays(
    stored: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    each, content = stored([[Record(b"v")] * 3])
    monkeypatch.setattr(seam, "LOAD_S", 1e-9)
    used = list[str]()
    for module in (plain, compiled):
        monkeypatch.setattr(module, "columns", _noting(module.columns, module.__name__, used))
    switch = Switch()
    for _ in range(3):
        outcome(each, content, Wanted(), switch)
    assert [name.rpartition(".")[2] for name in used] == ["plain", "compiled", "compiled"]


def test_without_numba_a_process_stays_with_the_plain_decoder(
    stored: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    each, content = stored([[Record(b"v")] * 3])
    monkeypatch.setattr(seam, "LOAD_S", 0.0)
    monkeypatch.setattr(seam, "find_spec", lambda name: None)
    monkeypatch.setattr(compiled, "columns", None)
    assert isinstance(outcome(each, content, Wanted(), Switch()), list)


def _noting(decoder: Decoder, name: str, used: list[str]) -> Decoder:
    def noting(batches: Sequence[Batch], wanted: Wanted) -> Columns:
        used.append(name)
        return decoder(batches, wanted)

    return noting
