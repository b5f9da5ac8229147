"""What is asked of a log of any engine where the types of logs differ."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from anabranch.client.bolt.log import Log
from anabranch.client.logs import AsyncLog
from anabranch.client.session.records import Appended, LogRecord
from anabranch.core.errors import BadRequest, ReceiptPending
from anabranch.core.types import Position

if TYPE_CHECKING:
    from anabranch.client.erwin_log import ErwinLog
    from anabranch.client.lazy_log import LazyLog
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
    unordered: int = 0
    """Records of an Erwin log below `settled` that are durable, and have no position yet."""


def belfast(log: AsyncLog) -> "SpeculativeLog":
    """The log as one that predicts positions; BadRequest if another engine serves it."""
    if not is_belfast(log):
        reason = f"it is a log of the {log.engine} engine, and this is only for belfast logs"
        raise BadRequest(f"the log {log.name}", reason)
    return log


def erwin(log: AsyncLog) -> "ErwinLog":
    """The log as one whose appends get their order later; BadRequest if another engine serves
    it.
    """
    if not is_erwin(log):
        reason = f"it is a log of the {log.engine} engine, and this is only for erwin logs"
        raise BadRequest(f"the log {log.name}", reason)
    return log


def is_bolt(log: AsyncLog) -> TypeGuard[Log]:
    return log.engine == BOLT


def is_belfast(log: AsyncLog) -> "TypeGuard[SpeculativeLog]":
    return log.engine == BELFAST


def is_erwin(log: AsyncLog) -> "TypeGuard[ErwinLog]":
    return log.engine == ERWIN


def is_lazy(log: AsyncLog) -> "TypeGuard[LazyLog]":
    """Is it a Bolt log whose appends go through a lazy front?"""
    return log.description.front is not None


async def bounds_of(log: AsyncLog, timeout: float | None = None) -> Bounds:
    """Where a log begins and ends now, or for a Bolt log when it was looked up."""
    if is_erwin(log):
        # What is durable and isn't ordered yet is waited for.
        end, now = await log.tail(timeout=timeout), await log.status(timeout=timeout)
        unordered = max(0, end - now.stable)
        return Bounds(min(now.trimmed, end), end, end, unordered=unordered)
    if is_belfast(log):
        end, status = await log.tail(timeout=timeout), await log.status(timeout=timeout)
        return Bounds(min(status.trimmed, end), end, end)
    found = log.description
    return Bounds(found.start, found.settled, found.tail, found.undecided or "")


async def bound(appended: Appended[Any], timeout: float | None = None) -> Appended[Any]:
    """The append with its position, in a log that binds positions after it has acknowledged. While
    an undecided fork withholds the position, with a receipt as text.

    DeadlineExceeded if the position isn't bound in time.
    """
    from anabranch.client.lazy_log import Receipt as LazyReceipt

    if appended.receipt is None:
        return appended
    if not isinstance(appended.receipt, LazyReceipt):
        return Appended(await appended.receipt.position(timeout=timeout), None)
    await appended.receipt.committed(timeout=timeout)
    try:
        return Appended(await appended.receipt.position(timeout=0), None)
    except ReceiptPending:
        return appended


async def portions_of(
    log: AsyncLog,
    first: Position,
    count: int | None,
    *,
    wait: float = 0,
    timeout: float | None = None,
) -> AsyncGenerator[list[LogRecord]]:
    """Yield records from a position on, in the portions in which they come; `count` at most."""
    if is_bolt(log):
        async for batch in log.read_batches(first, count, wait=wait, timeout=timeout):
            yield list(batch.records())
    elif is_belfast(log) or is_erwin(log):
        async for portion in log.portions(first, count, wait=wait, timeout=timeout):
            yield portion
    else:
        raise AssertionError(f"the client opens no {log.engine} logs")


async def last_position(log: AsyncLog, now: Bounds, count: int) -> Position:
    """Where the last so many records begin; in other logs than Bolt's no-ops lie between them.

    It doesn't wait for the order of an Erwin log's last records: each of them counts.
    """
    if is_bolt(log) or count <= now.unordered:
        return max(now.start, now.tail - count)
    end, count = now.settled - now.unordered, count - now.unordered
    span = count
    while True:
        first = max(now.start, end - span)
        found: list[Position] = []
        async for records in _ordered(log, first):
            found = [*found, *(each.position for each in records if each.position < end)][-count:]
        if len(found) == count:
            return found[0]
        if first == now.start or span >= SPAN_MAX:
            return first
        span *= 8


def _ordered(log: AsyncLog, first: Position) -> AsyncGenerator[list[LogRecord], None]:
    """Portions of what has its final position by now."""
    return log.portions(first, stable_only=True) if is_erwin(log) else portions_of(log, first, None)
