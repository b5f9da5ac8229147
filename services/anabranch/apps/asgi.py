"""An ASGI application served inside the loop that runs everything else."""

import asyncio
import socket
import ssl
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_DRAIN_S = 5
_HEAD_S = 10
"""How long the head of a request may take to arrive, counted from its first byte."""
_HEAD_BYTES_MAX = 64 * 1024
"""Of the head as it arrives; an application may allow less of it."""
_IDLE_S = 30
"""How long a connection is kept between two requests."""


class BoundedHttp(HttpToolsProtocol):
    """HTTP whose requests begin in time and within bounds, which the parser itself doesn't see to.

    Whoever exceeds them is cut off: there is no request yet that could be answered.
    """

    _head_bytes = 0
    _head_alarm: asyncio.TimerHandle | None = None

    def connection_made(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
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
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_alarm = self.loop.call_later(_HEAD_S, self.transport.abort)

    def _head_done(self) -> None:
        if self._head_alarm is not None:
            self._head_alarm.cancel()
            self._head_alarm = None


class AsgiServer:
    """uvicorn without its hold on the process: signals and logs are the caller's."""

    def __init__(self, app: Any, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=BoundedHttp,
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
