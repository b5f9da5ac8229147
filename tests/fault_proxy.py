"""An HTTP proxy that spoils what a test names: for stores that must be survived, not trusted.

It runs in a thread of its own, in front of one server; `spoil` decides for every request.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from anabranch.apps.processes.ports import HOST

END_S = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    number: int
    """Counted from 1, over all connections."""
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Spoil:
    """What becomes of one request; nothing, if nothing is set."""

    status: int = 0
    """Answer this, and never ask the server."""
    code: str = ""
    """The store's word for it."""
    lost: bool = False
    """The server does it, and its answer is never heard."""
    flipped_request: int = -1
    """The byte of the content that is another one when it arrives."""
    flipped: int = -1
    """The byte of the answer's content that is another one."""
    kept: int = -1
    """So much of the answer's content comes, and then the connection ends."""
    trickled: int = -1
    """So much of it comes, and then nothing more, for as long as the client has patience."""
    headers: dict[str, str] = field(default_factory=dict)
    """In place of the answer's own."""


NOTHING = Spoil()


class FaultProxy:
    def __init__(self, upstream: str) -> None:
        """`upstream` is host:port."""
        host, _, port = upstream.partition(":")
        self._upstream = (host, int(port))
        self.spoil: Callable[[Request], Spoil] = lambda _: NOTHING
        self.requests: list[Request] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._serving = threading.Event()
        self._ends = asyncio.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._serving.wait(END_S), "the proxy did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ends.set)
        self._thread.join(END_S)
        assert not self._thread.is_alive(), "the proxy did not end"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._serving.set()
        await self._ends.wait()
        server.close()
        # Who has just connected begins first: a task that never ran leaves its connection open.
        await asyncio.sleep(0)
        while everything := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
            await asyncio.sleep(0)  # and connections that were closed tell so

    async def _connected(self, here: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            there, forth = await asyncio.open_connection(*self._upstream)
            try:
                while await self._exchange(here, back, there, forth):
                    pass
            finally:
                forth.close()
        back.close()

    async def _exchange(
        self,
        here: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
    ) -> bool:
        """One request and its answer; false if the connection ends with it."""
        first, headers = await _head(here)
        if headers.pop("expect", None):
            back.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        method, path, _ = first.split(" ")
        content = await here.readexactly(int(headers.get("content-length", 0)))
        request = Request(len(self.requests) + 1, method, path)
        self.requests.append(request)
        spoil = self.spoil(request)
        if spoil.status:
            back.write(_refusal(spoil))
            await back.drain()
            return True
        forth.write(_written(first, headers, _flipped(content, spoil.flipped_request)))
        first, headers = await _head(there)
        while first.split(" ")[1] == "100":
            first, headers = await _head(there)
        empty = method == "HEAD" or first.split(" ")[1] in {"204", "304"}
        content = b"" if empty else await there.readexactly(int(headers.get("content-length", 0)))
        if spoil.lost:
            return False
        headers |= spoil.headers
        content = _flipped(content, spoil.flipped)
        cut = max(spoil.kept, spoil.trickled)
        back.write(_written(first, headers, content if cut < 0 else content[:cut]))
        await back.drain()
        if spoil.trickled >= 0:
            await here.read(1)  # until the client has had enough
        return cut < 0


async def _head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    fields = (line.partition(":") for line in rest)
    return first, {name.lower(): value.strip() for name, _, value in fields}


def _written(first: str, headers: dict[str, str], content: bytes) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + content


def _flipped(content: bytes, at: int) -> bytes:
    if at < 0 or at >= len(content):
        return content
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def _refusal(spoil: Spoil) -> bytes:
    error = f"<Error><Code>{spoil.code}</Code><Message>so the test wants it</Message></Error>"
    content = "" if spoil.status < 300 else error
    first = f"HTTP/1.1 {spoil.status} {spoil.code}"
    return _written(first, {"content-length": str(len(content))}, content.encode())
