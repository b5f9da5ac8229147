"""From Arrow batches to records, a few rows at a time."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Protocol

from anabranch import Record
from anabranch.errors import BadRequest
from anabranch_spark.sink.columns import Columns

ROWS = 1_000
"""Of an Arrow batch that are Python objects at a time."""
_UNSTAMPED = Record().timestamp
Header = tuple[str, bytes | None]


class ArrowBatch(Protocol):
    """As much as is needed of pyarrow's RecordBatch, which has no types."""

    @property
    def num_rows(self) -> int: ...

    def slice(self, offset: int, length: int) -> "ArrowBatch": ...

    def column(self, i: int) -> Any: ...


class Rows:
    """The records of one partition, once, in order.

    A null value is a record without a value, as a null key is one without a key; null headers are
    none; a null timestamp is the time of sending.
    """

    def __init__(self, batches: Iterable[ArrowBatch], columns: Columns, part: int) -> None:
        self._batches, self._columns, self._part = batches, columns, part
        self._given = 0
        self._largest = self._largest_row = -1

    @property
    def largest(self) -> str:
        """Where the largest record that was given so far is."""
        return f"row {self._largest_row} of partition {self._part}, counted from 0"

    def __iter__(self) -> Iterator[Record]:
        for batch in self._batches:
            for start in range(0, batch.num_rows, ROWS):
                yield from self._records(batch.slice(start, ROWS))

    def _records(self, batch: ArrowBatch) -> Iterator[Record]:
        columns, count = self._columns, batch.num_rows
        values = _octets(batch.column(columns.value))
        keys = _octets_or_none(batch, columns.key, count)
        headers = _plain(batch, columns.headers, count)
        stamps = _microseconds(batch, columns.timestamp, count)
        for value, key, pairs, stamp in zip(values, keys, headers, stamps, strict=True):
            record = Record(value, key, self._headers(pairs), self._stamp(stamp))
            if record.size > self._largest:
                self._largest, self._largest_row = record.size, self._given
            self._given += 1
            yield record

    def _headers(
        self, pairs: list[dict[str, Any] | None] | None
    ) -> tuple[tuple[str, bytes | None], ...]:
        if not pairs:
            return ()
        found: list[Header] = []
        for pair in pairs:
            if pair is None or pair["name"] is None:
                raise self._refused("a header is null or has no name")
            value = pair["value"]
            found.append((pair["name"], value.encode() if isinstance(value, str) else value))
        return tuple(found)

    def _stamp(self, microseconds: int | None) -> int:
        if microseconds is None:
            return _UNSTAMPED
        if microseconds < 0:
            raise self._refused("its timestamp is before 1970")
        return microseconds // 1_000

    def _refused(self, reason: str) -> BadRequest:
        return BadRequest(f"row {self._given} of partition {self._part}, counted from 0", reason)


def _pyarrow() -> Any:
    return import_module("pyarrow")


def _octets(column: Any) -> list[bytes | None]:
    """Text becomes UTF-8, without a copy."""
    pa = _pyarrow()
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    return column.to_pylist()


def _octets_or_none(batch: ArrowBatch, place: int | None, count: int) -> list[bytes | None]:
    return [None] * count if place is None else _octets(batch.column(place))


def _plain(batch: ArrowBatch, place: int | None, count: int) -> list[Any]:
    return [None] * count if place is None else batch.column(place).to_pylist()


def _microseconds(batch: ArrowBatch, place: int | None, count: int) -> list[int | None]:
    if place is None:
        return [None] * count
    pa = _pyarrow()
    column = batch.column(place)
    in_microseconds = pa.timestamp("us", column.type.tz)
    return column.cast(in_microseconds).cast(pa.int64()).to_pylist()
