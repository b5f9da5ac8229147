"""Verified batches, and the columns that decoders make of them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from anabranch.core.records.batch import Header
from anabranch_spark.source.arrow import Array

Buffer = bytes | bytearray | memoryview


class Wanted(NamedTuple):
    """The contents that somebody will look at; the others aren't made."""

    keys: bool = True
    values: bool = True
    stamps: bool = True
    headers: bool = True


class Batch(NamedTuple):
    """One batch, verified and uncompressed."""

    log: str
    first: int
    """Position of the first record that is meant."""
    low: int
    high: int
    """Which of its records are meant: those from `low` on, up to below `high`."""
    header: Header
    head: Buffer
    rest: Buffer
    """Its records, if they were compressed; else they are in `head`, behind the header."""
    where: str
    """For messages."""

    @property
    def rows(self) -> int:
        """Number of records that are meant."""
        return self.high - self.low

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return len(self.head) + len(self.rest)


class Columns(NamedTuple):
    """The records that are meant of some batches, in order. None: nobody wants the column."""

    keys: Array
    values: Array
    stamps: Array
    """Milliseconds, as producers gave them."""
    headers: Array


Decoder = Callable[[Sequence[Batch], Wanted], Columns]
"""It raises CorruptBatch for records that can't be read, and BatchUnreadable for those that would
cost too much.
"""
