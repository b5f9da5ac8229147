"""A connected socket to a host of which some addresses may be dead: tried side by side.

Names are resolved anew for each connection, but resolvers on the way keep answers for up to half a
minute after a pod is gone, or keep that there was none. So whoever knows by other means where the
host is gives a hint.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Iterable
from typing import Any

STAGGER_S = 0.25
"""An address has so much of a start before the next one is tried as well."""

_Address = tuple[socket.AddressFamily, Any]


class Hint:
    """The address at which the host was met last, if it isn't only known by name."""

    def __init__(self, host: str = "") -> None:
        self.host = host
        self.news = asyncio.Event()
        """Somebody has just met the host: it is worth an attempt at once."""

    def met(self, host: str) -> None:
        self.host = host
        self.news.set()


async def reach(host: str, port: int, hint: Hint | None = None) -> socket.socket:
    """Raises OSError if no address takes a connection; whoever calls sets the time limit."""
    race = _Race(host, port, hint or Hint())
    try:
        return await race.run()
    finally:
        race.end()


class _Race:
    def __init__(self, host: str, port: int, hint: Hint) -> None:
        self._loop = asyncio.get_running_loop()
        self._port = port
        self._hint = hint
        self._todo = deque[_Address]()
        self._tried: set[Any] = set()
        self._errors: list[OSError] = []
        self._attempts: dict[asyncio.Task[socket.socket], None] = {}
        self._won: socket.socket | None = None
        self._resolving = self._loop.create_task(self._resolve(host))
        self._news: asyncio.Task[bool] | None = None

    async def run(self) -> socket.socket:
        self._take_hint()
        while True:
            if self._todo:
                self._try(self._todo.popleft())
            pending: set[asyncio.Task[Any]] = {*self._attempts}
            if not self._resolving.done():
                pending.add(self._resolving)
            if not pending and not self._todo:
                raise self._failure()
            await self._wait(pending)
            if (won := self._look()) is not None:
                return won

    def end(self) -> None:
        """Nothing is left behind. It waits for nothing either: whoever is cancelled while it waits
        would lose the socket that it was about to get.
        """
        for attempt in self._attempts:
            attempt.add_done_callback(self._close)
        for task in (self._resolving, self._news, *self._attempts):
            if task is not None:
                task.cancel()

    def _close(self, attempt: asyncio.Task[socket.socket]) -> None:
        if not attempt.cancelled() and attempt.exception() is None:
            made = attempt.result()
            if made is not self._won:
                made.close()

    async def _wait(self, pending: set[asyncio.Task[Any]]) -> None:
        if self._news is None:
            self._news = self._loop.create_task(self._hint.news.wait())
        timeout_s = STAGGER_S if self._todo else None
        await asyncio.wait(
            {*pending, self._news}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if self._news.done():
            self._news = None
            self._take_hint()

    def _look(self) -> socket.socket | None:
        for attempt in [each for each in self._attempts if each.done()]:
            error = attempt.exception()
            if error is None:
                self._won = attempt.result()
                return self._won
            del self._attempts[attempt]
            if not isinstance(error, OSError):
                raise error
            self._errors.append(error)
        return None

    def _take_hint(self) -> None:
        """Whoever was met has its turn at once."""
        self._hint.news.clear()
        if self._hint.host:
            flags = socket.AI_NUMERICHOST
            found = socket.getaddrinfo(self._hint.host, self._port, flags=flags)
            self._tried.discard(found[0][4])
            self._add(((family, at) for family, _, _, _, at in found[:1]), first=True)

    async def _resolve(self, host: str) -> None:
        try:
            found = await self._loop.getaddrinfo(host, self._port, type=socket.SOCK_STREAM)
        except OSError as error:
            self._errors.append(error)
            return
        self._add((family, at) for family, _, _, _, at in found)

    def _add(self, found: Iterable[_Address], *, first: bool = False) -> None:
        for address in found:
            if address[1] not in self._tried:
                self._tried.add(address[1])
                (self._todo.appendleft if first else self._todo.append)(address)

    def _try(self, address: _Address) -> None:
        self._attempts[self._loop.create_task(self._connect(*address))] = None

    async def _connect(self, family: socket.AddressFamily, address: Any) -> socket.socket:
        made = socket.socket(family, socket.SOCK_STREAM)
        connected = False
        try:
            made.setblocking(False)
            # asyncio sets this only on sockets that it makes itself. Without it a small frame waits
            # for the acknowledgement of the one before, which the other side delays by 40 ms.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(made, address)
            connected = True
        finally:
            if not connected:
                made.close()
        return made

    def _failure(self) -> OSError:
        if len(self._errors) == 1:
            return self._errors[0]
        return OSError("; ".join(dict.fromkeys(map(str, self._errors))) or "it has no address")


def is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 1 << 16


def parse_address(address: str) -> tuple[str, int]:
    """`host:port`, the host in brackets if it is an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
