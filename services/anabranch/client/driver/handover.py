"""Records on their way from a program's threads to the loop that appends them, in order.

One wake-up of the loop serves all that was put until it comes: what a record costs is a place in a
queue.
"""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, Generic, Protocol, TypeVar

from anabranch.client.driver.loop import LoopThread
from anabranch.client.driver.pending import Target, result
from anabranch.client.session.commons import RECORD_FRAMING_BYTES
from anabranch.client.session.pledge import Promise
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import MIB
from anabranch.core.records.record import Record

BYTES_MAX = MIB
"""Records that may be on their way; a thread that puts more waits until the loop has taken them."""

P = TypeVar("P", bound=Promise[Any])
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Taker(Target[P, R_co], Protocol[P, R_co]):
    """A log that takes records one by one."""

    async def pledge(self, made: Record, timeout: float | None) -> P:
        """Have a record taken once there is room: it is the last of the pledge."""
        ...


class Handed(Generic[P, R]):
    """One record; its pledge or error is there once the loop has taken it."""

    __slots__ = ("error", "index", "pledge", "record", "taker", "timeout")

    def __init__(self, taker: Taker[P, R], record: Record, timeout: float | None) -> None:
        self.taker, self.record, self.timeout = taker, record, timeout
        self.pledge: P | None = None
        self.error: AnabranchError | None = None
        self.index = 0

    @property
    def done(self) -> bool:
        return self.error is not None or (
            self.pledge is not None and self.pledge.outcome is not None
        )


class Appending(Generic[P, R]):
    """An append on its way, as a program without an event loop holds it."""

    __slots__ = ("_handed", "_loop")

    def __init__(self, loop: "Handover", handed: Handed[P, R]) -> None:
        self._loop, self._handed = loop, handed

    def __repr__(self) -> str:
        return f"<append, {'done' if self.done else 'on its way'}>"

    @property
    def done(self) -> bool:
        return self._handed.done

    def result(self) -> R:
        """Wait for it; raises what became of it, if it wasn't appended."""
        return self._loop.run(self._loop.outcome(self._handed))


class Handover:
    """Of one connection, for all its logs and any number of threads."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._box: deque[Handed[Any, Any]] = deque()
        self._bytes = 0
        self._announced = False
        self._taking: asyncio.Task[None] | None = None

    @property
    def closed(self) -> bool:
        return self._thread.closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the loop do it, and wait."""
        return self._thread.run(work)

    def run_last(self, work: Coroutine[Any, Any, None]) -> None:
        """Have the loop do it after all that was put, and stop the loop."""
        self._thread.run_last(work)

    def put(self, handed: Handed[Any, Any]) -> None:
        """The loop must be told, or asked for the outcome, before the record goes on its way."""
        self._box.append(handed)
        made = handed.record
        size = made.size if made.key or made.headers else len(made.value or b"")
        self._bytes += size + RECORD_FRAMING_BYTES

    def announce(self) -> None:
        """Tell the loop; wait for it where it is too far behind."""
        if self._bytes > BYTES_MAX:
            self.run(self.taken())
        elif not self._announced:
            self._announced = True
            self._thread.loop.call_soon_threadsafe(self._start)

    async def taken(self) -> None:
        """Everything that was put has its pledge or error."""
        self._start()
        if self._taking is not None:
            await asyncio.shield(self._taking)

    async def outcome(self, handed: Handed[P, R]) -> R:
        """Wait until it is known."""
        await self.taken()
        taker = handed.taker
        if handed.error is not None:
            taker.link.heeded(handed.error)
            raise handed.error
        assert handed.pledge is not None, "what was taken has a pledge or an error"
        await taker.link.settled(handed.pledge)
        return result(taker, handed.pledge, handed.index)

    def _start(self) -> None:
        self._announced = False
        if self._box and self._taking is None:
            self._taking = self._thread.loop.create_task(self._take())

    async def _take(self) -> None:
        box = self._box
        while box:
            self._bytes = 0
            handed = box.popleft()
            try:
                pledge = await handed.taker.pledge(handed.record, handed.timeout)
            except AnabranchError as error:
                handed.error = error
                handed.taker.link.unheeded(error)
            else:
                handed.index = pledge.count - 1
                handed.pledge = pledge
        self._taking = None


def each(loop: Handover, items: AsyncGenerator[T, None]) -> Iterator[T]:
    """Item by item, each fetched when it is asked for."""

    async def following() -> tuple[T] | None:
        async for item in items:
            return (item,)
        return None

    try:
        while found := loop.run(following()):
            yield found[0]
    finally:
        if not loop.closed:
            loop.run(items.aclose())
