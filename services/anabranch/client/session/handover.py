"""Records on their way from a program's threads to the loop that appends them, in order.

One wake-up of the loop serves all that was put until it comes: what a record costs is a place in a
queue.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.receipts import Receipt, appended
from anabranch.client.bolt.records import Appended
from anabranch.client.session.loop import LoopThread
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import MIB
from anabranch.core.records.record import Record

BYTES_MAX = MIB
"""Values that may be on their way; a thread that puts more waits until the loop has taken them."""

A = TypeVar("A")


class Handed:
    """One record; its pledge or error is there once the loop has taken it."""

    __slots__ = ("error", "index", "log", "pledge", "record", "timeout")

    def __init__(self, log: Log, record: Record, timeout: float | None) -> None:
        self.log, self.record, self.timeout = log, record, timeout
        self.pledge: Pledge | None = None
        self.error: AnabranchError | None = None
        self.index = 0

    @property
    def done(self) -> bool:
        return self.error is not None or (
            self.pledge is not None and self.pledge.outcome is not None
        )


class Handover:
    """Of one service, for all its logs and any number of threads."""

    def __init__(self, thread: LoopThread, service: Service) -> None:
        self.service = service
        self._thread = thread
        self._box: deque[Handed] = deque()
        self._bytes = 0
        self._announced = False
        self._taking: asyncio.Task[None] | None = None

    @property
    def closed(self) -> bool:
        return self._thread.closed

    def run(self, work: Coroutine[Any, Any, A]) -> A:
        """Have the loop do it, and wait."""
        return self._thread.run(work)

    def put(self, log: Log, record: Record, timeout: float | None) -> Handed:
        """The loop must be told, or asked for the outcome, before the record goes on its way."""
        log.link.milliseconds(timeout)  # what can't be one is refused here, not on the loop
        handed = Handed(log, record, timeout)
        self._box.append(handed)
        self._bytes += len(record.value or b"")
        return handed

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

    async def outcome(self, handed: Handed) -> Appended[Receipt]:
        await self.taken()
        if handed.error is not None:
            handed.log.link.heeded(handed.error)
            raise handed.error
        assert handed.pledge is not None, "what was taken has a pledge or an error"
        await handed.log.link.settled(handed.pledge)
        return appended(handed.log.link, handed.pledge, handed.index)

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
                pledge = await handed.log.pledge(handed.record, handed.timeout)
            except AnabranchError as error:
                handed.error = error
                handed.log.link.unheeded(error)
            else:
                handed.index = pledge.count - 1
                handed.pledge = pledge
        self._taking = None
