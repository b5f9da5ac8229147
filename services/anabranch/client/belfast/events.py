"""A subscription event by event, as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from anabranch.client.belfast.rollback import Predicate
from anabranch.client.records import Deliver, Event
from anabranch.core.belfast.messages import Directory, Locate, Where
from anabranch.core.errors import BadRequest
from anabranch.core.types import Position

if TYPE_CHECKING:
    from anabranch.client.belfast.link import Link
    from anabranch.client.belfast.subscriber import Subscriber

RECORDS_MAX = 1_024
"""Of one portion, where nothing else is said."""


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
    ) -> None:
        if start is not None and start < 0:
            raise BadRequest("a subscription", "its start must be 0 or more")
        self._link, self._start, self._where = link, start, where
        self._shards = None if shards is None else frozenset(shards)
        if self._shards is not None and not self._shards:
            raise BadRequest("a subscription", "its shards must be named, or left out for all")
        self._speculative = speculative
        self._subscriber: Subscriber | None = None
        self._at_hand: deque[Event] = deque()
        self._sound = True

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
        """Everything below was delivered and is confirmed: where another subscription goes on.

        It moves also where there is nothing to deliver.
        """
        if self._subscriber is None:
            return self._start or 0
        final = self._subscriber.final
        # A copy, for without an event loop it is another thread that gives them out.
        for event in self._at_hand.copy():
            if isinstance(event, Deliver):
                return min(final, event.record.position)
        return final

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
            self._at_hand.extend(await self.take())

    async def take(
        self, *, records_max: int = RECORDS_MAX, timeout: float | None = None
    ) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds.

        `records_max`: with 0, only what is told of records that were delivered before.
        """
        if self._at_hand:
            at_hand = list(self._at_hand)
            self._at_hand.clear()
            return at_hand
        if not self._sound:
            raise BadRequest("this subscription", "what chooses its records raised an error")
        subscriber = await self._opened()
        try:
            async with asyncio.timeout(timeout):
                await self._link.arrival(subscriber, records=records_max > 0)
        except TimeoutError:
            return []
        # What the caller's function didn't decide on must not be passed over.
        self._sound = False
        events = subscriber.take(records_max)
        self._sound = True
        self._link.taken(subscriber)
        return events

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

    async def _opened(self) -> "Subscriber":
        if self._subscriber is None:
            from anabranch.client.belfast.subscriber import Subscriber

            link, start = self._link, self._start
            if start is None:
                told = await link.ask(Locate(), Directory, "ask where the log ends", None)
                start = self._start = told.confirmed
            pushed = self._where if isinstance(self._where, Where) else None
            only = None if isinstance(self._where, Where) else self._where
            self._subscriber = Subscriber(
                start, pushed, only, self._shards, speculative=self._speculative
            )
            link.open(self._subscriber)
        return self._subscriber
