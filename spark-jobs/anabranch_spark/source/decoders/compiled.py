"""Columns of batches by code that numba compiles, for whoever has installed it.

It takes batches as producers write them. Whatever is unusual, or not well formed, it leaves to the
plain decoder: so both give the same columns, and the same errors.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from anabranch.core.records.batch import HEADER as BATCH_HEADER
from anabranch.core.records.record import BATCH_HEADERS_CEILING
from anabranch_spark.source.arrow import HEADER, Array, pa
from anabranch_spark.source.decoders import kernel, plain
from anabranch_spark.source.decoders.batches import Batch, Columns, Wanted

np: Any = import_module("numpy")

_RECORD_BYTES_MIN = 7
"""A length, attributes, time, number, key, value and the count of headers take a byte each."""
_STAMP_MAX = 1 << 61
"""With times up to this on both sides of zero, no sum of two overflows."""


def columns(batches: Sequence[Batch], wanted: Wanted) -> Columns:
    """A `Decoder`."""
    group = _walked(batches)
    return plain.columns(batches, wanted) if group is None else group.columns(wanted)


class _Stored(NamedTuple):
    """Records of one batch: rows from `low` on, up to below `high`."""

    content: Any
    low: int
    high: int


class _Group:
    """Where all that is meant of some batches stands."""

    def __init__(self, rows: int) -> None:
        self.batches: list[_Stored] = []
        self.fields = np.empty((kernel.FIELDS, rows), np.int32)
        self.stamps = np.empty(rows, np.int64)

    def columns(self, wanted: Wanted) -> Columns:
        return Columns(
            self.keys(pa.binary()) if wanted.keys else None,
            self.values() if wanted.values else None,
            _numbers(self.stamps, pa.int64()) if wanted.stamps else None,
            self._header_lists() if wanted.headers else None,
        )

    def keys(self, kind: Any) -> Array:
        starts, lengths = self.fields[kernel.KEY_STARTS], self.fields[kernel.KEY_LENGTHS]
        return _binary(self.batches, starts, lengths, kind)

    def values(self) -> Array:
        starts, lengths = self.fields[kernel.VALUE_STARTS], self.fields[kernel.VALUE_LENGTHS]
        return _binary(self.batches, starts, lengths, pa.binary())

    def _header_lists(self) -> Array:
        starts, counts = self.fields[kernel.HEADER_STARTS], self.fields[kernel.HEADER_COUNTS]
        offsets = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        placed = _Group(int(offsets[-1]))
        row = 0
        if offsets[-1]:
            for content, low, high in self.batches:
                upto = kernel.place_headers(
                    content, starts[low:high], counts[low:high], placed.fields, row
                )
                placed.batches.append(_Stored(content, row, upto))
                row = upto
        pairs = pa.StructArray.from_arrays(
            [placed.keys(pa.string()), placed.values()], fields=[*HEADER]
        )
        return pa.ListArray.from_arrays(_numbers(offsets, pa.int32()), pairs)


def _walked(batches: Sequence[Batch]) -> _Group | None:
    """None if a batch isn't for this decoder."""
    group = _Group(sum(batch.rows for batch in batches))
    row = 0
    for batch in batches:
        count, stamp = batch.header.count, batch.header.base_timestamp
        content, at = (batch.rest, 0) if batch.rest else (batch.head, BATCH_HEADER.size)
        if count * _RECORD_BYTES_MIN > len(content) or not -_STAMP_MAX <= stamp <= _STAMP_MAX:
            return None
        found = np.frombuffer(memoryview(content).toreadonly(), np.uint8)
        meant = batch.low, batch.high
        upto, headers = kernel.walk(found, at, count, meant, stamp, group.fields, group.stamps, row)
        if upto < 0 or headers > BATCH_HEADERS_CEILING:
            return None
        assert upto == row + batch.rows, "as many rows as records are meant"
        group.batches.append(_Stored(found, row, upto))
        row = upto
    return group


def _binary(batches: Sequence[_Stored], starts: Any, lengths: Any, kind: Any) -> Array:
    """The bytes of these fields, one after the other."""
    present = lengths >= 0
    count = len(present)
    nulls = count - int(np.count_nonzero(present))
    held = np.where(present, lengths, 0) if nulls else lengths
    size = int(held.sum(dtype=np.int64))
    data = pa.allocate_buffer(max(size, 1))
    out = np.frombuffer(data, np.uint8)
    offsets = np.empty(count + 1, np.int32)
    offsets[0] = at = 0
    for content, low, high in batches:
        at = kernel.gather(content, starts, lengths, (low, high), out, at, offsets)
    assert at == size, "every field was copied"
    valid = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(kind, count, [valid, pa.py_buffer(offsets), data], nulls)


def _numbers(numbers: Any, kind: Any) -> Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)], 0)
