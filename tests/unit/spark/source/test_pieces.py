"""A slice in pieces means the same records as the slice, and no piece becomes large."""

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Codec, PlannedSlice, Record
from anabranch.core.records.record import encode
from anabranch.errors import BatchUnreadable, CorruptBatch, UnsupportedBatch
from anabranch_spark.source.decode import Span, Stretch, decode
from anabranch_spark.source.decoders.batches import Wanted
from anabranch_spark.source.pieces import PLAIN_BYTES_MAX, pieces

MIB = 1 << 20
Store = Callable[..., tuple[PlannedSlice, bytes]]


def in_pieces(span: Span, content: bytes) -> list[Stretch]:
    return [each for piece, part in pieces(span, content) for each in decode(piece, part, Wanted())]


def rows(stretches: list[Stretch]) -> list[tuple[object, ...]]:
    """Each record, however many of them a stretch has."""
    return [
        (each.first + nth, each.origin, each.origin_first + nth, value)
        for each in stretches
        for nth, value in enumerate(each.values.to_pylist())
    ]


batches = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(list(Codec))), min_size=1, max_size=8
)


@given(made=batches, data=st.data())
def test_pieces_mean_what_the_slice_means(
    made: list[tuple[int, Codec]], data: st.DataObject
) -> None:
    records = [Record(b"%d" % nth * 40) for nth in range(sum(count for count, _ in made))]
    left, content = iter(records), b""
    for count, codec in made:
        content += encode([next(left) for _ in range(count)], codec, now=1)
    skip = data.draw(st.integers(0, len(records) - 1))
    count = data.draw(st.integers(1, len(records) - skip))
    span = Span("orders", 100, count, skip, 3, 40 + skip)
    assert rows(in_pieces(span, content)) == rows(decode(span, content, Wanted()))


def test_batches_that_are_not_compressed_are_pieces_together(stored: Store) -> None:
    each, content = stored([[Record(bytes(1_000))]] * 2_500)
    span = Span("orders", each.first, each.count, each.skip, each.origin, each.origin_first)
    sizes = [len(part) for _, part in pieces(span, content)]
    assert sum(sizes) == len(content)
    assert len(sizes) == 3
    assert max(sizes) <= PLAIN_BYTES_MAX


@pytest.mark.parametrize("codec", [each for each in Codec if each is not Codec.NONE])
def test_a_slice_of_bombs_is_never_in_memory_whole(stored: Store, codec: Codec) -> None:
    """Each of these batches may be appended, and they take a hundred times less in the store."""
    each, content = stored([[Record(bytes(MIB))] * 4] * 24, codec=codec)
    span = Span("orders", each.first, each.count, each.skip, each.origin, each.origin_first)
    tracemalloc.start()
    try:
        count = sum(
            stretch.count
            for piece, part in pieces(span, content)
            for stretch in decode(piece, part, Wanted())
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == each.count
    assert peak < 48 * MIB, "all of them are 96 MiB"


def test_more_records_than_any_log_takes_are_refused_before_they_are_made(stored: Store) -> None:
    """A few kilobytes of zstd would become gigabytes of objects."""
    each, content = stored([[Record()] * 500_001], codec=Codec.ZSTD)
    span = Span("orders", each.first, each.count, each.skip, each.origin, each.origin_first)
    with pytest.raises(BatchUnreadable):
        in_pieces(span, content)


@given(at=st.integers(0, 1 << 16), bit=st.integers(0, 7), skip=st.integers(0, 3))
def test_what_is_damaged_before_a_record_never_moves_it(
    stored: Store, at: int, bit: int, skip: int
) -> None:
    """A count that lies is found out before anything is placed by it."""
    made = [[Record(b"%d" % nth)] * (1 + nth % 2) for nth in range(4)]
    each, content = stored(made, skip=skip, codec=Codec.NONE)
    span = Span("orders", each.first, each.count, each.skip, each.origin, each.origin_first)
    right = {
        stretch.first + nth: value
        for stretch in decode(span, content, Wanted())
        for nth, value in enumerate(stretch.values.to_pylist())
    }
    harmed = bytearray(content)
    harmed[at % len(content)] ^= 1 << bit
    try:
        for piece, part in pieces(span, harmed):
            for stretch in decode(piece, part, Wanted()):
                for nth, value in enumerate(stretch.values.to_pylist()):
                    assert right[stretch.first + nth] == value
    except (CorruptBatch, UnsupportedBatch):
        """As it should be."""
