"""Reads page by page, and subscriptions event by event, as an asyncio program holds them."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from types import TracebackType
from typing import Self, assert_never

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.subscription import News, Subscription, size_of
from anabranch.client.session import arguments
from anabranch.client.session.records import (
    Batch,
    Confirm,
    Deliver,
    Event,
    Fail,
    batches,
    cut,
)
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import (
    Confirmed,
    Delivered,
    Describe,
    Failed,
    Read,
    Records,
)
from anabranch.core.errors import BadRequest, BatchUnreadable
from anabranch.core.types import NEVER, Position

_EVERYTHING = (1 << 31) - 1


async def pages(
    link: Link,
    log: Description,
    start: Position,
    count: int | None,
    wait: float,
    timeout: float | None,
) -> AsyncGenerator[list[Batch], None]:
    """Portions of a read, as they arrive; the next one is on its way while one is used."""
    what = f"read {log.name}"
    start, wait = arguments.position(what, start), arguments.seconds(what, wait)
    left = _EVERYTHING if count is None else arguments.number(what, count, NEVER)
    if left == 0:
        raise BadRequest(what, "count must be 1 or more")
    call = _ask(link, log, start, left, timeout, wait)
    try:
        while True:
            page = await link.answered(call, Records)
            found = _cut_to(left, batches(page.runs, page.batches, log.name))
            if count is not None:
                left -= sum(batch.count for batch in found)
            more = bool(found) and left > 0 and page.next < page.settled
            if more:
                call = _ask(link, log, page.next, left, timeout)
            yield found
            if not more:
                return
    finally:
        link.drop(call)


def _ask(
    link: Link,
    log: Description,
    start: Position,
    count: int,
    timeout: float | None,
    wait: float = 0,
) -> Call:
    wait_ms = round(wait * 1_000)
    message = Read(log.id, start, count, link.session.settings.read_bytes, wait_ms)
    return link.begin(message, f"read {log.name}", link.milliseconds(timeout), wait_ms)


def _cut_to(count: int, found: Iterator[Batch]) -> list[Batch]:
    wanted: list[Batch] = []
    for batch in found:
        if count <= 0:
            break
        wanted.append(cut(batch, count))
        count -= batch.count
    return wanted


class Events:
    """A subscription: iterate over it, within `async with` or until `close`.

    It goes on over broken connections: no final record is delivered twice, and what was speculative
    when a connection broke is failed and delivered anew.
    """

    def __init__(
        self, link: Link, log: Description, start: Position | None, *, speculative: bool
    ) -> None:
        self._link, self._log, self._start = link, log, start
        self._speculative = speculative
        self._subscription: Subscription | None = None
        self._at_hand: deque[Event | BatchUnreadable] = deque()

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Raises what ends the subscription: Promoted, Squashed, OutOfRange after a trim.

        BatchUnreadable doesn't end it: what comes next lies after the records that it names.
        """
        await self.fetch()
        return self._next()

    def given(self) -> Event | None:
        """The next event; None if it is to be fetched first."""
        return self._next() if self._at_hand else None

    async def fetch(self) -> None:
        """Wait until the next event is at hand."""
        while not self._at_hand:
            await self._arrived(None)

    async def take(self, *, timeout: float | None = None) -> list[Event]:
        """The next events that came together; none if none came within `timeout` seconds."""
        limit_s = None if timeout is None else arguments.seconds("a timeout", timeout)
        if not self._at_hand and not await self._arrived(limit_s):
            return []
        taken = [self._next()]
        while self._at_hand and not isinstance(self._at_hand[0], BatchUnreadable):
            taken.append(self._next())
        return taken

    def _next(self) -> Event:
        first = self._at_hand.popleft()
        if isinstance(first, BatchUnreadable):
            raise first
        return first

    async def _arrived(self, limit_s: float | None) -> bool:
        """Wait for the next events that come together; false if none did in time."""
        try:
            async with asyncio.timeout(limit_s):
                subscription = await self._opened()
                news = await self._link.news(subscription)
        except TimeoutError:
            return False
        self._at_hand += _events(news, self._log.name)
        self._link.taken(subscription, size_of(news))
        return True

    def close(self) -> None:
        """Want no more of it."""
        if self._subscription is not None:
            self._link.leave(self._subscription)

    async def left(self) -> None:
        """The same as `close`, for another thread to have done on the loop."""
        self.close()

    async def _opened(self) -> Subscription:
        link = self._link
        if self._subscription is None:
            start = self._start
            if start is None:
                what = f"describe {self._log.name}"
                asked = Describe(self._log.id)
                start = (await link.ask(asked, Description, what, link.milliseconds(None))).settled
            self._subscription = Subscription(self._log.id, start, speculative=self._speculative)
            link.open(self._subscription)
        return self._subscription


def _events(news: News, log: str) -> "list[Event | BatchUnreadable]":
    match news:
        case Delivered(runs, contents, speculative):
            events: list[Event | BatchUnreadable] = []
            for batch in batches(runs, contents, log):
                try:
                    events += [Deliver(each, speculative) for each in batch.records()]
                except BatchUnreadable as error:
                    events.append(error)
            return events
        case Confirmed(up_to):
            return [Confirm(up_to)]
        case Failed(since):
            return [Fail(since)]
        case _:
            assert_never(news)
