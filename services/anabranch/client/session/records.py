"""What a program appends and reads: records with their places, batches, receipts, subscribers'
events.

Batches arrive as they lie in the log, and are verified here, where they leave the network (CRC32C).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

import msgspec

from anabranch.client.session.arguments import number, text
from anabranch.core.errors import BadRequest, CorruptBatch
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import split, verify
from anabranch.core.records.origins import Run, deliveries, identity
from anabranch.core.records.record import UNSTAMPED, Record
from anabranch.core.types import LogId, Milliseconds, Position

Header = tuple[str, bytes | None]
Headers = Mapping[str, bytes | None] | list[Header] | tuple[Header, ...]
"""Pairs where a name comes more than once."""
Time = datetime | Milliseconds
"""A moment; as a number, milliseconds since 1970. A datetime must know its time zone."""

_TIMESTAMP_END = 1 << 63
_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_BYTES_OR_NONE = (bytes, type(None))
_HEADERS = "a record's headers"

R = TypeVar("R")


class Origin(NamedTuple):
    """Where a record was appended: the log's id, and its position there when it was appended.

    A promotion may move the record to another position, and to another log; its origin stays.
    """

    log: LogId
    position: Position


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """A record at its place in the log that was read."""

    position: Position
    value: bytes | None
    key: bytes | None
    headers: tuple[Header, ...]
    timestamp: Milliseconds
    origin_log: LogId
    origin_position: Position
    shard: str = ""
    """Of a Belfast log: where it was appended."""

    @property
    def origin(self) -> Origin:
        """Where it was appended: another log, if it was read on a fork that inherits it."""
        return Origin(self.origin_log, self.origin_position)

    @property
    def id(self) -> str:
        """Its origin as text: the same wherever the record is read, in every log that has it, and
        no other record's of this service.
        """
        return identity(self.origin_log, self.origin_position)


class Appended(NamedTuple, Generic[R]):
    """An append that is durable: its position, or a receipt for it.

    A Bolt log withholds the position while a promotable fork is undecided, for it may still move.
    An Erwin log binds it after the append has returned.
    """

    position: Position | None
    receipt: R | None


class Batch(msgspec.Struct, frozen=True):
    """Records that were appended together, as they lie in the log; its checksum was verified."""

    first: Position
    """Of its first record that is meant."""
    count: int
    """How many of its records are meant: a fork point may cut a batch."""
    raw: Buffer
    """The whole batch: Kafka's RecordBatch v2, byte for byte."""
    run: Run
    log: str = ""
    """The name of the log that was read."""

    @property
    def origin(self) -> Origin:
        """Of its first record that is meant."""
        return Origin(self.run.origin_log, self.run.origin_first)

    def records(self) -> Iterator[LogRecord]:
        """Decode the records that are meant; BatchUnreadable if that would cost too much."""
        decoded = deliveries((self.run,), (self.raw,), self.log)
        for position, log, there, record in decoded:
            yield LogRecord(
                position, record.value, record.key, record.headers, record.timestamp, log, there
            )


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """The next record; a speculative one is confirmed or failed later."""

    record: LogRecord
    speculative: bool


class Confirm(msgspec.Struct, frozen=True, gc=False):
    """What was delivered below this position is final."""

    up_to: Position


class Fail(msgspec.Struct, frozen=True, gc=False):
    """Forget what was delivered from this position on; what is there now is delivered next."""

    since: Position


Event = Deliver | Confirm | Fail


def batches(runs: Sequence[Run], contents: Sequence[Buffer], log: str = "") -> Iterator[Batch]:
    """Each batch by itself, verified, and which of its records are meant."""
    content = memoryview(contents[0] if len(contents) == 1 else b"".join(contents))
    start = 0
    for run in runs:
        yield from _of_run(run, content[start : start + run.length], log)
        start += run.length
    if start != len(content):
        raise CorruptBatch(f"{len(content)} bytes came for runs of {start}", "of a read")


def _of_run(run: Run, content: memoryview, log: str) -> Iterator[Batch]:
    where = f"at {run.origin_first} of log {run.origin_log}"
    passed, end = 0, run.skip + run.count
    for offset, length, _ in split(content, where):
        raw = content[offset : offset + length]
        header = verify(raw, where)
        low, high = max(run.skip - passed, 0), min(end - passed, header.count)
        if low < high:
            ahead = passed + low - run.skip
            first, count = run.first + ahead, high - low
            alone = Run(first, count, low, run.origin_log, run.origin_first + ahead, length)
            yield Batch(first, count, raw, alone, log)
        passed += header.count
    if passed < end:
        raise CorruptBatch(f"{end} records were named and {passed} came", where)


def cut(batch: Batch, count: int) -> Batch:
    """The same, with at most so many of its records meant."""
    if batch.count <= count:
        return batch
    run = msgspec.structs.replace(batch.run, count=count)
    return Batch(batch.first, count, batch.raw, run, batch.log)


def record(
    value: bytes | None,
    key: bytes | None = None,
    headers: Headers = (),
    timestamp: Time | None = None,
) -> Record:
    """To be appended. What couldn't be encoded is refused here, with nothing appended."""
    if type(value) not in _BYTES_OR_NONE or type(key) not in _BYTES_OR_NONE:
        raise BadRequest("a record", "its value and its key must be bytes or None")
    pairs = _pairs(headers) if headers else ()
    return Record(value, key, pairs, UNSTAMPED if timestamp is None else milliseconds(timestamp))


def checked(value: bytes | Record) -> Record:
    """The same of one of many."""
    if not isinstance(value, Record):
        return record(value)
    stamp = value.timestamp
    return record(value.value, value.key, value.headers, None if stamp == UNSTAMPED else stamp)


def _pairs(headers: Headers) -> tuple[Header, ...]:
    # Callers needn't be typed, and the codec would take a part of a batch before it noticed.
    if isinstance(headers, Mapping):
        pairs = tuple(headers.items())
    elif isinstance(headers, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        pairs = tuple(headers)
    else:
        raise BadRequest(_HEADERS, "they must be a dict, or a list of pairs")
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2:  # a pair
            raise BadRequest(_HEADERS, "each must be a tuple of a name and a value")
        name, value = pair
        if type(name) is not str or type(value) not in _BYTES_OR_NONE:
            raise BadRequest(_HEADERS, "names must be text and values bytes or None")
        if not name.isascii():
            text("a header's name", name)
    return pairs


def milliseconds(time: Time) -> Milliseconds:
    """Since 1970."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise BadRequest(f"the time {time}", "it must say its time zone")
        # In whole numbers: `timestamp()` is a float, which may fall a millisecond short.
        time = (time - _1970) // _MILLISECOND
    return number("a time in milliseconds since 1970", time, _TIMESTAMP_END)
