"""A server in memory for the tests of programs: `with anabranch.testing.server() as server`.

It runs on a thread of the same process, on free ports of loopback, and forgets everything at the
end. Its clock can be moved forward, so that a program that asks for what there was at a time, or
lets forks expire, is tested without waiting.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from anabranch.apps.http import build
from anabranch.apps.settings import Settings
from anabranch.apps.up import Embedded, Endpoint, serve
from anabranch.client.driver.loop import LoopThread
from anabranch.core.limits import Limits
from anabranch.core.types import Nanoseconds
from anabranch.shell.runtime.clock import Clock

_NS = 1_000_000_000


class MovedClock(Clock):
    """The wall clock, and as far ahead of it as it was moved."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead: Nanoseconds = 0

    def now(self) -> Nanoseconds:
        return super().now() + self._ahead

    def move(self, seconds: float) -> None:
        self._ahead += round(seconds * _NS)


class Server:
    """A running server: where it is reached, and what time it is there."""

    def __init__(self, endpoint: Endpoint, clock: MovedClock, moved: Callable[[], None]) -> None:
        self.url = f"anabranch://{endpoint.frames}"
        """For `anabranch.connect`."""
        self.http = f"http://{endpoint.http}"
        self._clock = clock
        self._moved = moved

    @property
    def time(self) -> datetime:
        """What a record would be committed at now, to the millisecond and in UTC."""
        now = self._clock.now() // 1_000_000
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=now)

    def advance(self, seconds: float) -> datetime:
        """Move the server's clock forward; the time there after that.

        What is committed from here on is at least as late, and what was acknowledged before is
        earlier if `seconds` is 0.001 or more.
        """
        if not seconds >= 0:
            raise ValueError(f"a clock can't be moved by {seconds} s: time only goes forward")
        self._clock.move(seconds)
        self._moved()
        return self.time


@contextmanager
def server(*, limits: Limits | None = None) -> Generator[Server]:
    """Serve until the block ends."""
    clock, stop = MovedClock(), asyncio.Event()
    settings = Settings(memory=True, port=0, http_port=0, limits=limits or Limits())
    embedded: list[Embedded] = []

    def app(each: Embedded) -> object:
        embedded.append(each)
        return build(each)

    async def started() -> tuple[Endpoint, asyncio.Task[None]]:
        ready = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve(settings, ready.set_result, app=app, stop=stop, clock=clock)
        )
        await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await serving
        return ready.result(), serving

    async def stopped() -> None:
        stop.set()
        await serving

    async def moved() -> None:
        embedded[0].host.clock_moved()

    thread = LoopThread()
    try:
        endpoint, serving = thread.run(started())
        try:
            yield Server(endpoint, clock, lambda: thread.run(moved()))
        finally:
            thread.run(stopped())
    finally:
        thread.stop()
