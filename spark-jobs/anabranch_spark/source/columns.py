"""Decoded records become Arrow record batches of bounded rows and bytes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat

from anabranch_spark.source.arrow import HEADER, Array, DataType, RecordBatch, Schema, pa, pc
from anabranch_spark.source.decode import Stretch
from anabranch_spark.source.decoders.batches import Wanted
from anabranch_spark.source.schema import LOG_COLUMN

ROWS_MAX = 10_000
"""Of one record batch: more gains nothing, and costs memory on both sides."""
BYTES_MAX = 8 << 20
"""Of one record batch, unless it is one record."""
BYTES_ENOUGH = 2 << 20
"""For a record batch: to wait for more would mean copying columns together."""

TYPES: dict[str, DataType] = {
    LOG_COLUMN: pa.string(),
    "position": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(HEADER),
    "origin": pa.int64(),
    "origin_position": pa.int64(),
}

_TIME_MS_MAX = ((1 << 63) - 1) // 1_000
"""Later times than this don't fit into Spark's microseconds."""
_RUN_ROWS_MIN = 16
"""Runs that are shorter on average are written out number by number."""


class Run:
    """Records that follow each other both in the log that is read and where they were appended."""

    __slots__ = ("count", "first", "origin", "origin_first")

    def __init__(self, first: int, origin: int, origin_first: int, count: int) -> None:
        self.first, self.origin, self.origin_first, self.count = first, origin, origin_first, count

    def goes_on_with(self, stretch: Stretch) -> bool:
        return (
            self.origin == stretch.origin
            and self.origin_first + self.count == stretch.origin_first
            and self.first + self.count == stretch.first
        )


class Rows:
    """Collects decoded records of one log, and gives them as record batches."""

    def __init__(self, log: str, columns: Sequence[str]) -> None:
        self._log = log
        self._schema = pa.schema([(name, TYPES[name]) for name in columns])
        self.wanted = wanted(columns)
        self._clear()

    def _clear(self) -> None:
        self._runs: list[Run] = []
        self._stretches: list[Stretch] = []
        self._count = self._size = 0

    def add(self, stretches: Sequence[Stretch]) -> Iterator[RecordBatch]:
        """Take these, and give what is enough for a record batch."""
        for each in stretches:
            if self._runs and self._runs[-1].goes_on_with(each):
                self._runs[-1].count += each.count
            else:
                self._runs.append(Run(each.first, each.origin, each.origin_first, each.count))
            self._stretches.append(each)
            self._count += each.count
            self._size += each.size
            if self._count >= ROWS_MAX or self._size >= BYTES_ENOUGH:
                yield from self.rest()

    def rest(self) -> Iterator[RecordBatch]:
        """Give all that is held."""
        if self._count:
            arrays = [self._column(name) for name in self._schema.names]
            count = self._count
            self._clear()
            yield from _bounded(_record_batch(arrays, self._schema, count))

    def _column(self, name: str) -> Array:
        match name:
            case "position":
                return self._numbers([(run.first, run.count) for run in self._runs])
            case "origin_position":
                return self._numbers([(run.origin_first, run.count) for run in self._runs])
            case "origin":
                origins = (repeat(run.origin, run.count) for run in self._runs)
                if len({run.origin for run in self._runs}) == 1:
                    return pa.repeat(pa.scalar(self._runs[0].origin, pa.int64()), self._count)
                return pa.array(chain.from_iterable(origins), pa.int64(), size=self._count)
            case "key":
                return _joined(each.keys for each in self._stretches)
            case "value":
                return _joined(each.values for each in self._stretches)
            case "timestamp":
                return _times(_joined(each.stamps for each in self._stretches))
            case "headers":
                return _joined(each.headers for each in self._stretches)
            case _:
                assert name == LOG_COLUMN, name
                return pa.repeat(pa.scalar(self._log, pa.string()), self._count)

    def _numbers(self, runs: list[tuple[int, int]]) -> Array:
        if len(runs) * _RUN_ROWS_MIN > self._count:
            numbers = chain.from_iterable(range(first, first + count) for first, count in runs)
            return pa.array(numbers, pa.int64(), size=self._count)
        return pa.concat_arrays(
            [pc.add(_from_zero(count), pa.scalar(first, pa.int64())) for first, count in runs]
        )


def wanted(columns: Sequence[str]) -> Wanted:
    """What has to be decoded for these columns."""
    return Wanted(
        keys="key" in columns,
        values="value" in columns,
        stamps="timestamp" in columns,
        headers="headers" in columns,
    )


def _record_batch(arrays: list[Array], schema: Schema, count: int) -> RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # Spark counts rows without looking at any column.
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def _bounded(batch: RecordBatch) -> Iterator[RecordBatch]:
    """The same rows, cut where there are too many rows or bytes."""
    for first in range(0, batch.num_rows, ROWS_MAX):
        yield from _halves(batch.slice(first, ROWS_MAX))


def _halves(batch: RecordBatch) -> Iterator[RecordBatch]:
    if batch.nbytes <= BYTES_MAX or batch.num_rows == 1:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halves(batch.slice(0, middle))
    yield from _halves(batch.slice(middle))


def _joined(arrays: Iterable[Array]) -> Array:
    found = [*arrays]
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


def _times(times: Array) -> Array:
    """Null where a record has no time, or one that Spark can't express."""
    bounds = pc.min_max(times).as_py()
    if bounds["min"] < 0 or bounds["max"] > _TIME_MS_MAX:
        known = pc.and_(pc.greater_equal(times, 0), pc.less_equal(times, _TIME_MS_MAX))
        times = pc.if_else(known, times, pa.scalar(None, pa.int64()))
    return pc.multiply(times, 1_000).cast(TYPES["timestamp"])


_counted: list[Array] = [pa.array(range(ROWS_MAX), pa.int64())]


def _from_zero(count: int) -> Array:
    """So many numbers from 0 on, the longest kept for the next time."""
    if count > len(_counted[0]):
        _counted[0] = pa.array(range(2 * count), pa.int64())
    return _counted[0].slice(0, count)
