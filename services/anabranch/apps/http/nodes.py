"""What HTTP asks of a log's own nodes, through a client: the records of Belfast and Erwin logs, and
appends to Bolt logs with a lazy front (decision 70).
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from anabranch.apps.http.calls import Asking
from anabranch.apps.http.models import Since
from anabranch.apps.http.records import Encoding, Sized, shown_portions
from anabranch.client.engines import (
    BOLT,
    Bounds,
    bound,
    bounds_of,
    is_belfast,
    is_erwin,
    is_lazy,
    portions_of,
)
from anabranch.client.logs import AsyncLog
from anabranch.client.session.records import Appended, Event, LogRecord
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Append, Read, Subscribe, Trim
from anabranch.core.errors import DeadlineExceeded, OutOfRange
from anabranch.core.records.record import Record
from anabranch.core.types import Milliseconds, Position

SHARD_CHARS_MAX = 200


def held_by_nodes(log: Description) -> bool:
    """Do brokers not have its records?"""
    return log.engine != BOLT


def shards_of(log: Description) -> int:
    """How many nodes push the records of a subscription."""
    return max(1, log.settings.shards if log.settings is not None else 1)


def taken_by_nodes(log: Description) -> bool:
    """Do brokers not take its appends?"""
    return held_by_nodes(log) or log.front is not None


class First(NamedTuple):
    """Where the first record of a batch is, as far as it is known."""

    position: Position | None
    receipt: str | None


async def append_at_nodes(
    ask: Asking,
    log: Description,
    records: Sequence[Record],
    key: str | None,
    shard: str | None,
    *,
    sync: bool,
) -> First:
    """Append one batch. `sync`: with its position, if that is bound in time."""
    await ask.permitted(Append(log.id, b""))
    opened = await ask.open(log)
    first = await ask.appended(log, _appended(opened, records, key, shard, ask.left_s))
    if first.position is not None or not sync:
        return First(first.position, None)
    try:
        found = await ask.timely(bound(first, ask.left_s), f"find a position in {log.name}")
    except DeadlineExceeded:
        return First(None, None)
    return First(found.position, None if found.receipt is None else str(found.receipt))


async def _appended(
    log: AsyncLog, records: Sequence[Record], key: str | None, shard: str | None, left_s: float
) -> Appended[Any]:
    """What became of the first record: the others are in the same batch."""
    if is_belfast(log):
        done = await log.append_many(
            records, shard=shard, together=True, request_id=key, timeout=left_s
        )
        return done[0]
    assert is_erwin(log) or is_lazy(log), f"brokers take appends to {log.name}"
    return (await log.append_many(records, together=True, request_id=key, timeout=left_s))[0]


async def trim_at_nodes(ask: Asking, log: Description, before: Position) -> None:
    """Repeated, it changes nothing more: it needs no key."""
    await ask.permitted(Trim(log.id, before, b""))
    ask.count_command()
    opened = await ask.open(log)
    trimmed = opened.trim(before, timeout=ask.left_s)
    await ask.timely(trimmed, f"trim {log.name}", changes=True)


class Opened(NamedTuple):
    """A read that has begun."""

    start: Position
    settled: Position
    tail: Position
    next: Position
    """Where to read on if there is nothing in it."""
    flow: AsyncGenerator[list[Sized]]


async def bounds_at_nodes(ask: Asking, log: Description) -> tuple[AsyncLog, Bounds]:
    """The log, and where it begins and ends by what its nodes say."""
    opened = await ask.open(log)
    return opened, await ask.timely(_bounds(opened, ask.left_s), f"ask where {log.name} ends")


async def _bounds(log: AsyncLog, left_s: float) -> Bounds:
    if not is_erwin(log):
        return await bounds_of(log, left_s)
    # Its leader knows all of it, and reads of what is stable needn't wait for the other members.
    status = await log.status(timeout=left_s)
    return Bounds(status.trimmed, status.stable, max(status.tail, status.stable))


async def begun(
    ask: Asking,
    log: Description,
    bounds: Bounds,
    start: Position | Since | None,
    otherwise: Position,
) -> Position:
    """The position to begin at, `otherwise` if none is said; raises if the log has no such."""
    begin = otherwise if start is None else await ask.position(log, start)
    if not bounds.start <= begin <= bounds.tail:
        raise OutOfRange(log.name, begin, bounds.start, bounds.tail)
    return begin


async def read_at_nodes(
    ask: Asking,
    log: Description,
    start: Position | Since | None,
    count: int,
    wait_ms: Milliseconds,
    encoding: Encoding | None,
) -> Opened:
    """Begin to read: refusals come before anything is answered."""
    await ask.permitted(Read(log.id, 0, count, 1))
    opened, bounds = await bounds_at_nodes(ask, log)
    begin = await begun(ask, log, bounds, start, bounds.start)
    what = f"read {log.name}"
    portions = portions_of(opened, begin, count, wait=wait_ms / 1_000, timeout=ask.left_s)
    first = await ask.timely(anext(portions, None), what, wait_ms)
    flow = _flow(log, first, portions, encoding)
    return Opened(bounds.start, bounds.settled, bounds.tail, max(begin, bounds.settled), flow)


async def _flow(
    log: Description,
    first: list[LogRecord] | None,
    portions: AsyncGenerator[list[LogRecord]],
    encoding: Encoding | None,
) -> AsyncGenerator[list[Sized]]:
    async with aclosing(portions):
        if first is None:
            return
        async for portion in shown_portions(first, log, encoding):
            yield portion
        async for records in portions:
            async for portion in shown_portions(records, log, encoding):
                yield portion


async def pushed_by_nodes(log: AsyncLog, message: Subscribe) -> AsyncGenerator[list[Event]]:
    """What a subscription gives, as long as the caller takes it."""
    async with log.subscribe(message.start, speculative=message.speculative) as events:
        while True:
            yield await events.take()
