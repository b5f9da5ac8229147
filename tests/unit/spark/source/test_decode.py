"""Bytes become columns as the client decodes them, and nothing else passes."""

from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Codec, PlannedSlice, Record
from anabranch.errors import BatchUnreadable, CorruptBatch, UnsupportedBatch
from anabranch_spark.source.arrow import pa
from anabranch_spark.source.decode import Span, Stretch, decode
from anabranch_spark.source.decoders.batches import Wanted

octets = st.none() | st.binary(max_size=40)
records = st.builds(
    Record,
    value=octets,
    key=octets,
    headers=st.lists(st.tuples(st.text(max_size=5), octets), max_size=3).map(tuple),
    timestamp=st.integers(0, 1 << 40),
)
batches = st.lists(st.lists(records, min_size=1, max_size=8), min_size=1, max_size=4)
Store = Callable[..., tuple[PlannedSlice, bytes]]


def span(of: PlannedSlice) -> Span:
    return Span("orders", of.first, of.count, of.skip, of.origin, of.origin_first)


def rows(stretches: list[Stretch]) -> list[tuple[object, ...]]:
    """Position, origin, position there, key, value, time and headers of each record."""
    found: list[tuple[object, ...]] = []
    for each in stretches:
        columns = [each.keys, each.values, each.stamps, each.headers]
        keys, values, stamps, headers = [
            column.to_pylist() for column in columns if column is not None
        ]
        for nth in range(each.count):
            pairs = tuple((header["name"], header["value"]) for header in headers[nth])
            place = (each.first + nth, each.origin, each.origin_first + nth)
            found.append((*place, keys[nth], values[nth], stamps[nth], pairs))
    return found


@given(given_batches=batches, codec=st.sampled_from(Codec), data=st.data())
def test_the_records_that_are_meant_are_those_of_the_client(
    stored: Store, given_batches: list[list[Record]], codec: Codec, data: st.DataObject
) -> None:
    total = len([*chain.from_iterable(given_batches)])
    skip = data.draw(st.integers(0, total - 1))
    count = data.draw(st.integers(1, total - skip))
    each, content = stored(given_batches, codec=codec, skip=skip, count=count)
    expected = [
        (
            position,
            each.origin,
            each.origin_first + position - each.first,
            record.key,
            record.value,
            record.timestamp,
            record.headers,
        )
        for position, record in each.records(content)
    ]
    assert rows(decode(span(each), content, Wanted())) == expected
    assert len(expected) == count


def test_what_nobody_wants_is_left_out(stored: Store) -> None:
    each, content = stored([[Record(b"v", b"k")] * 3])
    (found,) = decode(span(each), content, Wanted(keys=False, headers=False))
    assert (found.count, found.keys, found.headers) == (3, None, None)
    assert found.values == pa.array([b"v"] * 3)


def test_a_batch_of_many_pieces_is_decoded_whole(stored: Store) -> None:
    made = [Record(b"%08d" % nth * 16) for nth in range(20_000)]
    each, content = stored([made])
    (found,) = decode(span(each), content, Wanted())
    assert found.values == pa.array([record.value for record in made])


_UNCOVERED = (*range(8), *range(12, 16))
"""The base offset and the leader epoch: no checksum covers them, and no reader looks at them."""


@given(at=st.integers(0, 1 << 16), bit=st.integers(0, 7))
def test_no_changed_bit_passes(stored: Store, at: int, bit: int) -> None:
    each, content = stored([[Record(b"some value", b"key", (("h", b"x"),))] * 5])
    covered = [*filter(lambda place: place not in _UNCOVERED, range(len(content)))]
    harmed = bytearray(content)
    harmed[covered[at % len(covered)]] ^= 1 << bit
    with pytest.raises((CorruptBatch, UnsupportedBatch)):
        decode(span(each), harmed, Wanted())


def test_fewer_records_than_were_named_are_refused(stored: Store) -> None:
    each, content = stored([[Record(b"v")] * 3], count=4)
    with pytest.raises(CorruptBatch, match="4 records were named and 3 came"):
        decode(span(each), content, Wanted())
    with pytest.raises(CorruptBatch):
        decode(span(each), content[:-1], Wanted())


def test_what_would_cost_too_much_names_its_records(
    stored: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch_spark.source.decode.UNPACKED_BYTES_CEILING", 1_000)
    each, content = stored([[Record(bytes(100))] * 100], codec=Codec.ZSTD)
    with pytest.raises(BatchUnreadable) as refused:
        decode(span(each), content, Wanted())
    assert refused.value.facts["log"] == "orders"
