"""What commands ask of a log of any engine, where the client's types of logs differ."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from anabranch.client.bolt.log import Log
from anabranch.client.logs import AsyncLog
from anabranch.client.session.records import LogRecord
from anabranch.core.errors import BadRequest
from anabranch.core.types import Position

if TYPE_CHECKING:
    from anabranch.client.erwin_log import ErwinLog
    from anabranch.client.speculative_log import SpeculativeLog

BOLT, BELFAST, ERWIN = "bolt", "belfast", "erwin"

SPAN_MAX = 1_000_000
"""The last records among no-ops are looked for among so many of the last positions."""


class Bounds(NamedTuple):
    """Where a log begins and ends."""

    start: Position
    """The first position that can be read."""
    settled: Position
    """Reads end here."""
    tail: Position
    """The position that the next record gets, as far as it is known."""
    undecided: str = ""
    """The fork that keeps `settled` below `tail`, if one does."""


def belfast(log: AsyncLog) -> "SpeculativeLog":
    """The log as one that has shards and sequencers; BadRequest if another engine serves it."""
    if not is_belfast(log):
        reason = f"it is a log of the {log.engine} engine, which has no shards and sequencers"
        raise BadRequest(f"the log {log.name}", reason)
    return log


def is_bolt(log: AsyncLog) -> TypeGuard[Log]:
    return log.engine == BOLT


def is_belfast(log: AsyncLog) -> "TypeGuard[SpeculativeLog]":
    return log.engine == BELFAST


def is_erwin(log: AsyncLog) -> "TypeGuard[ErwinLog]":
    return log.engine == ERWIN


async def bounds_of(log: AsyncLog) -> Bounds:
    """Where a log begins and ends now, or for a Bolt log when it was looked up."""
    if is_belfast(log) or is_erwin(log):
        # What is durable in an Erwin log and isn't ordered yet is waited for.
        settled, status = await log.tail(), await log.status()
        return Bounds(min(status.trimmed, settled), settled, settled)
    now = log.description
    return Bounds(now.start, now.settled, now.tail, now.undecided or "")


async def portions_of(
    log: AsyncLog, first: Position, count: int | None
) -> AsyncGenerator[list[LogRecord]]:
    """Yield records from a position on, in the portions in which they come; `count` at most."""
    if is_bolt(log):
        async for batch in log.read_batches(first, count):
            yield list(batch.records())
    elif is_belfast(log) or is_erwin(log):
        async for portion in log.portions(first, count):
            yield portion
    else:
        raise AssertionError(f"the client opens no {log.engine} logs")


async def last_position(log: AsyncLog, now: Bounds, count: int) -> Position:
    """Where the last so many records begin; in other logs than Bolt's no-ops lie between them."""
    if is_bolt(log) or not count:
        return max(now.start, now.tail - count)
    span = count
    while True:
        first = max(now.start, now.settled - span)
        found: list[Position] = []
        async for records in portions_of(log, first, None):
            found = [*found, *(each.position for each in records)][-count:]
        if len(found) == count:
            return found[0]
        if first == now.start or span >= SPAN_MAX:
            return first
        span *= 8
