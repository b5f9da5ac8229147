"""A subscription to an Erwin log, as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

from anabranch.client.erwin.link import Link
from anabranch.client.erwin.subscriber import Subscriber
from anabranch.client.session.arguments import number, position, seconds
from anabranch.client.session.records import Deliver, Event
from anabranch.core.types import LogId, Position

RECORDS_MAX = 1_024
"""Of one portion, where nothing else is said; a batch isn't cut."""

_RECORDS_LIMIT = 1 << 31


class Events:
    """A subscription: iterate over it, within `async with` or until `close`.

    It goes on over lost connections and failed replicas, with nothing lost or repeated. Everything
    that comes is final.
    """

    def __init__(self, link: Link, log: LogId, start: Position | None) -> None:
        self._link, self._log = link, log
        self._start = None if start is None else position("a subscription's start", start)
        self._subscriber: Subscriber | None = None
        self._at_hand: deque[Event] = deque()

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
        """Everything below was given out: where another subscription goes on."""
        for event in self._at_hand.copy():
            if isinstance(event, Deliver):
                return event.record.position
        return (self._start or 0) if self._subscriber is None else self._subscriber.next

    async def __anext__(self) -> Event:
        """Raises what ends the subscription: PositionTrimmed, or Unavailable after `close`."""
        await self.fetch()
        return self._at_hand.popleft()

    def given(self) -> Event | None:
        """The next event; None if it is to be fetched first."""
        return self._at_hand.popleft() if self._at_hand else None

    async def fetch(self) -> None:
        """Wait until the next event is at hand."""
        while not self._at_hand:
            subscriber = await self._opened()
            await self._link.arrivals(subscriber)
            self._take(subscriber, RECORDS_MAX)

    async def take(
        self, *, records_max: int = RECORDS_MAX, timeout: float | None = None
    ) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds."""
        number("records_max", records_max, _RECORDS_LIMIT)
        limit_s = None if timeout is None else seconds("a timeout", timeout)
        try:
            async with asyncio.timeout(limit_s):
                while not self._at_hand:
                    subscriber = await self._opened()
                    await self._link.arrivals(subscriber)
                    self._take(subscriber, max(1, records_max))
        except TimeoutError:
            return []
        taken = list(self._at_hand)
        self._at_hand.clear()
        return taken

    def close(self) -> None:
        """Want no more of it."""
        if self._subscriber is not None:
            self._link.leave(self._subscriber)

    async def left(self) -> None:
        """The same as `close`, for another thread to have done on the loop."""
        self.close()

    async def reached(self) -> Position:
        """The same as `final`, for another thread to ask on the loop."""
        return self.final

    def _take(self, subscriber: Subscriber, records_max: int) -> None:
        self._at_hand += [Deliver(each, speculative=False) for each in subscriber.take(records_max)]
        self._link.taken(subscriber)

    async def _opened(self) -> Subscriber:
        if self._subscriber is None:
            if self._start is None:
                self._start = await self._link.tail(None)
            self._subscriber = Subscriber(self._start, self._log)
            self._link.open(self._subscriber)
        return self._subscriber
