"""Where the records of a read came from: runs over whole batches, cut anywhere by fork points.

On a continuous fork positions shift as local records interleave (AgileLog, 5.5). So each record
delivered also names its origin: the log it was appended to, and its position there at that time.
The origin is the record's identity: forks, promotions, orphaning and compaction keep it.
"""

from collections.abc import Iterator, Sequence
from itertools import count, repeat
from typing import NamedTuple

import msgspec

from anabranch.core.errors import BatchTooLarge, BatchUnreadable, CorruptBatch, TooManyHeaders
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import split, verify
from anabranch.core.records.record import Record, decode_verified
from anabranch.core.types import LogId, Position


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Records that follow each other both in the log that is read and where they were appended."""

    first: Position
    """In the log that is read, of the first record that is meant."""
    count: int
    """How many are meant."""
    skip: int
    """Leading records of the bytes that aren't."""
    origin_log: LogId
    origin_first: Position
    """Of the first record that is meant, when it was appended."""
    length: int
    """Bytes of whole batches; records past `skip + count` aren't meant either."""


class Stretch(NamedTuple):
    """The records of one batch that are meant."""

    first: Position
    origin_log: LogId
    origin_first: Position
    records: list[Record]


Delivery = tuple[Position, LogId, Position, Record]
"""Position in the log that is read, origin log, position there, record."""


def identity(origin_log: LogId, origin_position: Position) -> str:
    """What tells a record from all others of a log service, wherever it is read."""
    return f"{origin_log}-{origin_position}"


def deliveries(
    runs: Sequence[Run], batches: Sequence[Buffer], name: str = ""
) -> Iterator[Delivery]:
    """Record by record, what `stretches` gives batch by batch."""
    for first, log, origin_first, records in stretches(runs, batches, name):
        yield from zip(count(first), repeat(log), count(origin_first), records, strict=False)


def stretches(runs: Sequence[Run], batches: Sequence[Buffer], name: str = "") -> Iterator[Stretch]:
    """What these runs mean in these bytes, taken as one; each batch is verified first.

    `name` is that of the log that is read, for errors.
    """
    content = memoryview(batches[0] if len(batches) == 1 else b"".join(batches))
    named = sum(run.length for run in runs)
    if named != len(content):
        raise CorruptBatch(f"{len(content)} bytes came for runs of {named}", "of a read")
    start = 0
    for run in runs:
        yield from _stretches(run, content[start : start + run.length], name)
        start += run.length


def _stretches(run: Run, content: memoryview, name: str) -> Iterator[Stretch]:
    where = f"at {run.origin_first} of log {run.origin_log}"
    passed = 0
    """Records of the run's bytes that lie before the batch at hand."""
    end = run.skip + run.count
    for offset, length, _ in split(content, where):
        if passed >= end:
            return
        # Also of a batch of which nothing is meant: its count moves what comes after it.
        batch = content[offset : offset + length]
        header = verify(batch, where)
        low = max(run.skip - passed, 0)
        high = min(end - passed, header.count)
        if low < high:
            ahead = passed + low - run.skip
            first = run.first + ahead
            try:
                records = decode_verified(batch, header, where)
            except (BatchTooLarge, TooManyHeaders) as error:
                log = name or str(run.origin_log)
                raise BatchUnreadable(log, first, first + high - low, error.message) from None
            yield Stretch(first, run.origin_log, run.origin_first + ahead, records[low:high])
        passed += header.count
    if passed < end:
        raise CorruptBatch(f"{end} records were named and {passed} came", where)
