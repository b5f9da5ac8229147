"""A subscription event by event, as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from anabranch.client.belfast.checks import check_filter, shard_names
from anabranch.client.belfast.event_queue import EventQueue
from anabranch.client.belfast.rollback import Predicate
from anabranch.client.session.arguments import number, position, seconds
from anabranch.client.session.records import Event
from anabranch.core.belfast.protocol.messages import Directory, Locate, Where
from anabranch.core.types import NEVER, NOWHERE, LogId, Position

if TYPE_CHECKING:
    from anabranch.client.belfast.link import Link

RECORDS_MAX = 1_024
"""Of one portion, where nothing else is said."""

RECORDS_LIMIT = 1 << 31
"""One portion has fewer."""


class Events:
    """A subscription: iterate over it, within `async with` or until `close`.

    It goes on over lost connections and failed replicas, with nothing failed, lost or repeated.
    Where a shard failed as a whole, one Fail tells from where on everything comes again.
    """

    def __init__(
        self,
        link: "Link",
        start: Position | None,
        where: Where | Predicate | None,
        shards: Sequence[str] | None,
        *,
        speculative: bool,
        until: Position = NEVER,
        log: LogId = NOWHERE,
    ) -> None:
        """`until`: nothing more is waited for once everything below was given out."""
        self._link, self._log, self._where, self._until = link, log, where, until
        self._start = None if start is None else position("a subscription's start", start)
        self._shards = None if shards is None else shard_names(shards)
        if where is not None:
            check_filter(where)
        self._speculative = speculative
        self._queue: EventQueue | None = None

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

    @property
    def final(self) -> Position:
        """Everything below was given out and is known to be confirmed: where another subscription
        goes on, with nothing repeated or left out for a program that acts on what is confirmed.

        It moves also where there is nothing to deliver.
        """
        return (self._start or 0) if self._queue is None else self._queue.final

    async def __anext__(self) -> Event:
        """Raises what ends the subscription: PositionTrimmed, or Unavailable after `close`."""
        while (event := self.given()) is None:
            await self.fetch()
        return event

    def given(self) -> Event | None:
        """The next event; None if it is to be fetched first."""
        return None if self._queue is None else self._queue.pop()

    async def fetch(self) -> None:
        """Wait until the next event is at hand."""
        queue = await self._opened()
        while queue.empty:
            await self._arrival(queue)
            self._take(queue)

    async def take(
        self, *, records_max: int = RECORDS_MAX, timeout: float | None = None
    ) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds.

        `records_max`: with 0, only what is told of records that were delivered before.
        """
        number("records_max", records_max, RECORDS_LIMIT)
        limit_s = None if timeout is None else seconds("a timeout", timeout)
        queue = self._queue
        if queue is None or queue.empty:
            try:
                async with asyncio.timeout(limit_s):
                    queue = await self._opened()
                    # A portion may hold only records that a function in `where` leaves out.
                    while queue.empty and queue.final < self._until:
                        await self._arrival(queue, records=records_max > 0)
                        self._take(queue, records_max)
            except TimeoutError:
                return []
        return queue.pop_all()

    async def _arrival(self, queue: EventQueue, *, records: bool = True) -> None:
        queue.check()
        await self._link.arrivals(queue.subscriber, records=records)

    def _take(self, queue: EventQueue, records_max: int = RECORDS_MAX) -> None:
        queue.take(records_max)
        self._link.taken(queue.subscriber)

    def close(self) -> None:
        """Want no more of it."""
        if self._queue is not None:
            self._link.leave(self._queue.subscriber)

    async def left(self) -> None:
        """The same as `close`, for another thread to have done on the loop."""
        self.close()

    async def reached(self) -> Position:
        """The same as `final`, for another thread to ask on the loop."""
        return self.final

    async def _opened(self) -> EventQueue:
        if self._queue is None:
            from anabranch.client.belfast.subscriber import Subscriber

            link, start = self._link, self._start
            if start is None:
                told = await link.ask(Locate(), Directory, "ask where the log ends", None)
                start = self._start = told.confirmed
            pushed = self._where if isinstance(self._where, Where) else None
            only = None if isinstance(self._where, Where) else self._where
            subscriber = Subscriber(
                start, pushed, only, self._shards, self._log, speculative=self._speculative
            )
            subscriber.until = self._until
            self._queue = EventQueue(subscriber)
            link.open(subscriber)
        return self._queue
