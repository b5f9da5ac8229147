"""Columns of batches by code that numba compiles, for whoever has installed it.

It takes batches as producers write them. Whatever is unusual, or not well formed, it leaves to the
plain decoder: so both give the same columns, and the same errors.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from anabranch.core.records.batch import HEADER as BATCH_HEADER
from anabranch.core.records.record import BATCH_HEADERS_CEILING
from anabranch_spark.source import plain
from anabranch_spark.source.arrow import HEADER, Array, pa
from anabranch_spark.source.batches import Batch, Columns, Wanted
from anabranch_spark.source.kernel import gather, place_headers, walk

np: Any = import_module("numpy")

_RECORD_BYTES_MIN = 7
"""A length, attributes, time, number, key, value and the count of headers take a byte each."""
_STAMP_MAX = 1 << 61
"""With times up to this on both sides of zero, no sum of two overflows."""


def columns(batches: Sequence[Batch], wanted: Wanted) -> Columns:
    """A `Decoder`."""
    group = _walked(batches)
    return plain.columns(batches, wanted) if group is None else group.columns(wanted)


class _Fields:
    """Where the same field of many records stands: one row for each record."""

    def __init__(self, rows: int) -> None:
        self.starts = np.empty(rows, np.int32)
        self.lengths = np.empty(rows, np.int32)
        """Negative where there is none."""


class _Stored(NamedTuple):
    """Records of one batch: rows from `low` on, up to below `high`."""

    content: Any
    low: int
    high: int


class _Group:
    """Where all that is meant of some batches stands."""

    def __init__(self, rows: int) -> None:
        self.batches: list[_Stored] = []
        self.keys, self.values, self.headers = _Fields(rows), _Fields(rows), _Fields(rows)
        """Of headers: where the first of a record starts, and how many there are."""
        self.stamps = np.empty(rows, np.int64)

    def columns(self, wanted: Wanted) -> Columns:
        return Columns(
            _binary(self.batches, self.keys, pa.binary()) if wanted.keys else None,
            _binary(self.batches, self.values, pa.binary()) if wanted.values else None,
            _numbers(self.stamps, pa.int64()) if wanted.stamps else None,
            self._header_lists() if wanted.headers else None,
        )

    def _header_lists(self) -> Array:
        counts = self.headers.lengths
        offsets = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        total = int(offsets[-1])
        names, values = _Fields(total), _Fields(total)
        batches: list[_Stored] = []
        at = 0
        if total:
            for content, low, high in self.batches:
                starts = self.headers.starts[low:high]
                upto = place_headers(
                    content, starts, counts[low:high], names.starts, names.lengths,
                    values.starts, values.lengths, at,
                )  # fmt: skip
                batches.append(_Stored(content, at, upto))
                at = upto
        pairs = pa.StructArray.from_arrays(
            [_binary(batches, names, pa.string()), _binary(batches, values, pa.binary())],
            fields=[*HEADER],
        )
        return pa.ListArray.from_arrays(_numbers(offsets, pa.int32()), pairs)


def _walked(batches: Sequence[Batch]) -> _Group | None:
    """None if a batch isn't for this decoder."""
    group = _Group(sum(batch.count for batch in batches))
    row = 0
    for batch in batches:
        header = batch.header
        content, at = (batch.rest, 0) if batch.rest else (batch.head, BATCH_HEADER.size)
        if header.count * _RECORD_BYTES_MIN > len(content) or (
            not -_STAMP_MAX <= header.base_timestamp <= _STAMP_MAX
        ):
            return None
        found = np.frombuffer(memoryview(content).toreadonly(), np.uint8)
        upto = walk(
            found, at, header.count, batch.low, batch.high, header.base_timestamp,
            BATCH_HEADERS_CEILING,
            group.keys.starts, group.keys.lengths, group.values.starts, group.values.lengths,
            group.headers.starts, group.headers.lengths, group.stamps, row,
        )  # fmt: skip
        if upto < 0:
            return None
        assert upto == row + batch.count, "as many rows as records are meant"
        group.batches.append(_Stored(found, row, upto))
        row = upto
    return group


def _binary(batches: Sequence[_Stored], fields: _Fields, kind: Any) -> Array:
    """The bytes of these fields, one after the other."""
    present = fields.lengths >= 0
    count = len(present)
    nulls = count - int(np.count_nonzero(present))
    held = np.where(present, fields.lengths, 0) if nulls else fields.lengths
    size = int(held.sum(dtype=np.int64))
    data = pa.allocate_buffer(max(size, 1))
    out = np.frombuffer(data, np.uint8)
    offsets = np.empty(count + 1, np.int32)
    offsets[0] = at = 0
    for content, low, high in batches:
        at = gather(content, fields.starts, fields.lengths, low, high, out, at, offsets)
    assert at == size, "every field was copied"
    valid = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(kind, count, [valid, pa.py_buffer(offsets), data], nulls)


def _numbers(numbers: Any, kind: Any) -> Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)], 0)
