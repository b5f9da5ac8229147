"""Bytes of a slice become columns: the one seam behind which batches are decoded.

Checksums and counts are verified here, where bytes leave the store, whichever decoder makes
columns of what is verified.
"""

import gc
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from math import inf
from time import thread_time

import msgspec

from anabranch.core.records.batch import split, unpack, verify
from anabranch.core.records.record import BATCH_RECORDS_CEILING, UNPACKED_BYTES_CEILING
from anabranch.errors import BatchTooLarge, BatchUnreadable, CorruptBatch
from anabranch_spark.source.arrow import Array
from anabranch_spark.source.decoders import plain
from anabranch_spark.source.decoders.batches import Batch, Buffer, Columns, Decoder, Wanted

GROUP_BYTES = 4 << 20
"""Batches are decoded together until they have so many bytes: each group costs some calls."""
LOAD_S = 1.0
"""What it takes of the processor to load the compiled decoder."""


class Span(msgspec.Struct, frozen=True, gc=False):
    """Which records of some bytes are meant, and where they lie."""

    log: str
    first: int
    """Position of the first that is meant."""
    count: int
    skip: int
    """Records of the bytes before the first that is meant."""
    origin: int
    origin_first: int


class Stretch(msgspec.Struct, frozen=True):
    """Records that follow each other, column by column. None: nobody wants the column."""

    first: int
    origin: int
    origin_first: int
    count: int
    size: int
    """Bytes of all their batches, not compressed."""
    keys: Array
    values: Array
    stamps: Array
    headers: Array


class Switch:
    """The decoder of a process: the plain one, until it has taken as long as it takes to load the
    compiled one, where that is installed. So a short job never loads it, and a long one pays at
    most twice what it had to.
    """

    def __init__(self) -> None:
        self._compiled: Decoder | None = None
        self._left_s = LOAD_S if find_spec("numba") else inf

    def __call__(self, batches: Sequence[Batch], wanted: Wanted) -> Columns:
        """A `Decoder`."""
        if self._compiled is not None:
            return self._compiled(batches, wanted)
        if self._left_s <= 0:
            from anabranch_spark.source.decoders import compiled

            self._compiled = compiled.columns
            made = self._compiled(batches, wanted)
            # Spark's workers look for cycles after each task: not among all of numba.
            gc.freeze()
            return made
        began = thread_time()
        made = plain.columns(batches, wanted)
        self._left_s -= thread_time() - began
        return made


@cache
def decoder() -> Decoder:
    """The one of this process: Spark gives a Python worker many tasks, one after the other."""
    return Switch()


def decode(
    span: Span, content: Buffer, wanted: Wanted, columns: Decoder = plain.columns
) -> list[Stretch]:
    """The records that are meant. CorruptBatch or UnsupportedBatch if the bytes aren't what was
    written, or hold fewer records; BatchUnreadable if to decode them would cost too much.
    """
    view = memoryview(content)
    where = f"at {span.origin_first} of log {span.origin}"
    found: list[Stretch] = []
    group: list[Batch] = []
    passed, end, size = 0, span.skip + span.count, 0
    for offset, length, _ in split(view, where):
        # Batches of which nothing is meant are verified too: their counts place the others.
        batch = view[offset : offset + length]
        header = verify(batch, where)
        low, high = max(span.skip - passed, 0), min(end - passed, header.count)
        if low < high:
            ahead = passed + low - span.skip
            first, there = (
                span.first + ahead,
                f"at {span.origin_first + ahead} of log {span.origin}",
            )
            try:
                if header.count > BATCH_RECORDS_CEILING:
                    raise BatchTooLarge(header.count, BATCH_RECORDS_CEILING)
                head, rest = unpack(batch, header, UNPACKED_BYTES_CEILING, there)
            except BatchTooLarge as error:
                after = first + high - low
                raise BatchUnreadable(span.log, first, after, error.message) from None
            group.append(Batch(span.log, first, low, high, header, head, rest, there))
            size += group[-1].size
            if size >= GROUP_BYTES:
                found.append(_stretch(span, group, wanted, columns))
                group, size = [], 0
        passed += header.count
    if group:
        found.append(_stretch(span, group, wanted, columns))
    if passed < end:
        raise CorruptBatch(f"{end} records were named and {passed} came", where)
    return found


def _stretch(span: Span, group: list[Batch], wanted: Wanted, columns: Decoder) -> Stretch:
    first = group[0].first
    made = columns(group, wanted)
    return Stretch(
        first,
        span.origin,
        span.origin_first + first - span.first,
        sum(batch.rows for batch in group),
        sum(batch.size for batch in group),
        *made,
    )
