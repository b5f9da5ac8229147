"""A network between a client and a real server that loses what it is told to lose.

It knows frames, and passes them whole and in order, as a connection does. What it does besides is
what connections do: they break before a request arrives, or after it was done and before its answer
does; or an answer is late.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from anabranch.client.driver.loop import LoopThread
from anabranch.core.wire.frames import HEADER, LENGTH_BYTES

HOST = "127.0.0.1"


class Fate(Enum):
    PASS = auto()
    LOSE_REQUEST = auto()
    """The connection breaks, and the request never arrives."""
    LOSE_ANSWER = auto()
    """It is done, and the connection breaks in place of its answer."""
    HOLD = auto()
    """Its answer, and whatever comes after that, waits for `release`."""


class Network:
    """In front of one server. `fate` decides about each request but the first of a connection."""

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.removeprefix("anabranch://").partition(":")
        self._upstream = host, int(port)
        self.fate: Callable[[], Fate] = lambda: Fate.PASS
        self.connections = 0
        self.port = 0
        self.refusing = False
        """Whoever connects is hung up on at once."""
        self._held = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"anabranch://{HOST}:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cut(self) -> None:
        """Every connection breaks."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def release(self) -> None:
        """Let held answers go."""
        self._held.set()
        self._held = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            if not self.refusing:
                await self._connect(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # one of the two has left
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(*self._upstream)
        both = {writer, forth}
        self._writers |= both
        fates: dict[int, Fate] = {}
        pumps = [
            asyncio.ensure_future(self._requests(reader, forth, fates)),
            asyncio.ensure_future(self._answers(back, writer, fates)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in pumps:
                each.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fates: dict[int, Fate]
    ) -> None:
        number, frame = await _frame(reader)
        while True:
            if fates.get(number) is Fate.LOSE_REQUEST:
                return
            writer.write(frame)
            await writer.drain()
            number, frame = await _frame(reader)
            fates[number] = self.fate()

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fates: dict[int, Fate]
    ) -> None:
        while True:
            number, frame = await _frame(reader)
            match fates.pop(number, Fate.PASS):
                case Fate.LOSE_ANSWER:
                    return
                case Fate.HOLD:
                    await self._held.wait()
                case _:
                    pass
            writer.write(frame)
            await writer.drain()


async def _frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    header = await reader.readexactly(HEADER.size)
    length, *_, number = HEADER.unpack(header)
    return number, header + await reader.readexactly(LENGTH_BYTES + length - HEADER.size)


@contextmanager
def network(upstream: str) -> Generator[tuple[Network, LoopThread]]:
    """It lives on a thread of its own, on which its coroutines are run."""
    thread = LoopThread()
    try:
        made = Network(upstream)
        thread.run(made.start())
        try:
            yield made, thread
        finally:
            thread.run(made.stop())
    finally:
        thread.stop()
