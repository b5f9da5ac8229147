"""An ASGI application served inside the loop that runs everything else."""

import asyncio
import socket
import ssl
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from anabranch.core.errors import Overloaded
from anabranch.shell.server.budgets import Budgets

_DRAIN_S = 5
_HEAD_S = 10
"""How long the head of a request may take to arrive, counted from its first byte."""
_HEAD_BYTES_MAX = 64 * 1024
"""Of the head as it arrives; an application may allow less of it."""
_IDLE_S = 30
"""How long a connection is kept between two requests."""


HTTP, PROBES = "(http)", "(probes)"
"""Listeners, as principals of a process's connections: who comes isn't known before a request."""


class Listener:
    """One port's part of the connections of a process."""

    def __init__(self, who: str, budgets: Budgets | None) -> None:
        self._who = who
        self._budgets = budgets
        self._idle: dict[BoundedHttp, None] = {}

    def enter(self, connection: "BoundedHttp") -> bool:
        """Somebody idle makes room; false if nobody does."""
        if not self._take():
            if not self._idle:
                return False
            oldest = next(iter(self._idle))
            self.leave(oldest)
            oldest.transport.abort()
            if not self._take():
                return False
        connection.entered = True
        self._idle[connection] = None
        return True

    def leave(self, connection: "BoundedHttp") -> None:
        self._idle.pop(connection, None)
        if connection.entered and self._budgets is not None:
            self._budgets.give(self._budgets.connections, self._who, 1)
        connection.entered = False

    def busy(self, connection: "BoundedHttp") -> None:
        self._idle.pop(connection, None)

    def idle(self, connection: "BoundedHttp") -> None:
        if connection.entered:
            self._idle[connection] = None

    def refusal(self) -> bytes:
        """An answer without a request, and the end."""
        limit = self._budgets.connections.limit if self._budgets else 0
        error = Overloaded("connections", limit, "connections_max")
        told = {"status": 503, "code": error.code, "detail": error.message, "facts": error.facts}
        body = msgspec.json.encode(told)
        return b"\r\n".join(
            (
                b"HTTP/1.1 503 Service Unavailable",
                b"Content-Type: application/problem+json",
                b"Content-Length: %d" % len(body),
                b"Retry-After: 1",
                b"Connection: close",
                b"",
                body,
            )
        )

    def _take(self) -> bool:
        return self._budgets is None or self._budgets.connections.take(self._who, 1)


class BoundedHttp(HttpToolsProtocol):
    """HTTP whose requests begin in time and within bounds, which the parser itself doesn't see to.

    Whoever exceeds them is cut off: there is no request yet that could be answered.
    """

    listener = Listener(HTTP, None)
    entered = False
    _head_bytes = 0
    _head_alarm: asyncio.TimerHandle | None = None

    def connection_made(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._await_head()
        if not self.listener.enter(self):
            transport.write(self.listener.refusal())
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
        self.listener.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_alarm is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        # One large piece may hold a head and its body: only a head that isn't over counts.
        if self._head_alarm is not None and self._head_bytes > _HEAD_BYTES_MAX:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_alarm is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._head_done()
        self.listener.busy(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self.listener.idle(self)
        super().on_response_complete()

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_alarm = self.loop.call_later(_HEAD_S, self.transport.abort)

    def _head_done(self) -> None:
        if self._head_alarm is not None:
            self._head_alarm.cancel()
            self._head_alarm = None


class AsgiServer:
    """uvicorn without its hold on the process: signals and logs are the caller's."""

    def __init__(
        self,
        app: Any,
        tls: ssl.SSLContext | None = None,
        *,
        budgets: Budgets | None = None,
        who: str = HTTP,
    ) -> None:
        self._tls = tls
        listener = Listener(who, budgets)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=type("CountedHttp", (BoundedHttp,), {"listener": listener}),
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_IDLE_S,
                timeout_graceful_shutdown=_DRAIN_S,
            )
        )
        self._sockets: list[socket.socket] = []
        self._serving: asyncio.Task[None] | None = None

    async def start(self, address: str, port: int) -> int:
        """Listen; says on which port."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address, port, type=socket.SOCK_STREAM)
        family, _, _, _, where = found[0]
        listener = socket.create_server(where[:2], family=family, reuse_port=False)
        self._sockets = [listener]
        config = self._server.config
        config.load()
        config.ssl = self._tls
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=self._sockets)
        self._serving = asyncio.create_task(self._server.main_loop())
        return listener.getsockname()[1]

    async def stop(self) -> None:
        assert self._serving is not None
        self._server.should_exit = True
        # The application is told first, so that what it streams ends and isn't waited for.
        await self._server.lifespan.shutdown()
        await self._serving
        await self._server.shutdown(sockets=self._sockets)
