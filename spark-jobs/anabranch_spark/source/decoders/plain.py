"""Columns of batches by the project's codec: it reads every batch that a log may hold."""

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import attrgetter

from anabranch.core.records.batch import HEADER as BATCH_HEADER
from anabranch.core.records.layout import faults
from anabranch.core.records.record import BATCH_HEADERS_CEILING
from anabranch.core.records.scan import HeaderBounds, portions
from anabranch.errors import BatchUnreadable, CorruptBatch, TooManyHeaders
from anabranch_spark.source.arrow import HEADER, Array, pa
from anabranch_spark.source.decoders.batches import Batch, Columns, Wanted

_Pairs = Sequence[tuple[str, bytes | None]]

_BOUNDS = HeaderBounds(BATCH_HEADERS_CEILING, BATCH_HEADERS_CEILING)
_keys = attrgetter("key")
_values = attrgetter("value")
_stamps = attrgetter("timestamp")
_headers = attrgetter("headers")


def columns(batches: Sequence[Batch], wanted: Wanted) -> Columns:
    """A `Decoder`."""
    lists = _Lists(wanted)
    for batch in batches:
        try:
            lists.add(batch)
        except TooManyHeaders as error:
            after = batch.first + batch.rows
            raise BatchUnreadable(batch.log, batch.first, after, error.message) from None
    return lists.columns()


class _Lists:
    """Contents of records, column by column. A column that nobody wants stays empty."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._stamps: list[int] = []
        self._headers: list[_Pairs] = []

    def add(self, batch: Batch) -> None:
        """Decode the whole batch, and keep the records that are meant."""
        wanted, where, count = self._wanted, batch.where, batch.header.count
        passed = 0
        try:
            for portion in portions(
                batch.head, batch.rest, BATCH_HEADER.size, count, _BOUNDS, where
            ):
                found = portion.records
                low, high = max(batch.low - passed, 0), batch.high - passed
                passed += len(found)
                if high <= 0:
                    continue
                if low > 0 or high < len(found):
                    found = found[low:high]
                if wanted.keys:
                    self._keys += map(_keys, found)
                if wanted.values:
                    self._values += map(_values, found)
                if wanted.stamps:
                    self._stamps += map(_stamps, found)
                if wanted.headers:
                    self._headers += map(_headers, found)
        except faults() as fault:
            raise CorruptBatch(f"its records can't be read: {fault}", where) from fault
        if passed != count:
            raise CorruptBatch(f"it has {passed} records and counts {count}", where)

    def columns(self) -> Columns:
        wanted = self._wanted
        return Columns(
            pa.array(self._keys, pa.binary()) if wanted.keys else None,
            pa.array(self._values, pa.binary()) if wanted.values else None,
            pa.array(self._stamps, pa.int64()) if wanted.stamps else None,
            _header_lists(self._headers) if wanted.headers else None,
        )


def _header_lists(headers: list[_Pairs]) -> Array:
    offsets = [*accumulate(map(len, headers), initial=0)]
    headed = [*chain.from_iterable(headers)] if offsets[-1] else []
    names = [name for name, _ in headed]
    values = [value for _, value in headed]
    pairs = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=[*HEADER]
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs)
