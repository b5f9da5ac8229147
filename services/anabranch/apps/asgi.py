"""An ASGI application served inside the loop that runs everything else."""

import asyncio
import socket
import ssl
from functools import partial
from typing import Any, cast

import msgspec
import uvicorn
from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from anabranch.core.budget import EVERYBODY, Budget
from anabranch.core.errors import Overloaded
from anabranch.shell.net.handshake import secured
from anabranch.shell.net.room import Room
from anabranch.shell.server.budgets import Budgets

_DRAIN_S = 5
_HEAD_S = 10
"""How long the head of a request may take to arrive, counted from its first byte."""
_HEAD_BYTES_MAX = 64 * 1024
"""Of the head as it arrives; an application may allow less of it."""
_IDLE_S = 30
"""How long a connection is kept between two requests."""


PIPELINED_MAX = 16
"""Requests of one connection that may wait behind the one that is being answered, with it."""
PROBE_CONNECTIONS = 64
"""Those of the probes' port, which nobody else can take: who watches a process gets through to it
however many others hold all of its connections.
"""

_HTTP = "(http)"
"""All who come over HTTP, as a principal of a process's connections: who comes isn't known before
a request.
"""


def _refusal(limit: int) -> bytes:
    """An answer without a request, and the end."""
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


class _Overrun(Exception):
    """A request is one too many for its connection."""


class BoundedHttp(HttpToolsProtocol):
    """HTTP whose requests begin in time and within bounds, which the parser itself doesn't see to.

    Whoever exceeds them is cut off: there is no request yet that could be answered.
    """

    room: Room
    spares_busy = True
    """Whether a connection that is being answered is kept when others need its place."""
    pipelined_max = PIPELINED_MAX
    """So many requests are taken before the first of them is answered. Those are answered, and
    then the connection is closed.
    """
    _overrun = False
    _head_bytes = 0
    _head_alarm: asyncio.TimerHandle | None = None

    def connection_made(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._await_head()
        if not self.room.enter(self):
            transport.write(_refusal(self.room.limit))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
        self.room.leave(self)
        super().connection_lost(exc)

    def make_way(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, without its lines in the log about what strangers send."""
        self._unset_keepalive_if_required()
        if self._overrun:
            return
        if self._head_alarm is not None:
            self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess] - is open
        except HttpParserUpgrade:
            # It has been taken for a request without the upgrade.
            pass
        except HttpParserError:
            if not self._overrun:
                self.send_400_response("Invalid HTTP request received.")
            return
        # One large piece may hold a head and its body: only a head that isn't over counts.
        if self._head_alarm is not None and self._head_bytes > _HEAD_BYTES_MAX:
            self.transport.abort()

    def on_message_begin(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        answered = cycle is None or cycle.response_complete
        if not answered and len(self.pipeline) + 1 >= self.pipelined_max:
            self._overrun = True
            self.cycle.keep_alive = False
            # The parser stops, before it makes anything of the rest.
            raise _Overrun
        super().on_message_begin()
        if self._head_alarm is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._head_done()
        if self.spares_busy:
            self.room.protect(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self.room.expose(self)
        super().on_response_complete()

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_alarm = self.loop.call_later(_HEAD_S, self.transport.abort)

    def _head_done(self) -> None:
        if self._head_alarm is not None:
            self._head_alarm.cancel()
            self._head_alarm = None


class ProbeHttp(BoundedHttp):
    """One request and its answer. Whoever doesn't fetch the answer makes way for the next ones."""

    spares_busy = False
    pipelined_max = 1


class AsgiServer:
    """uvicorn without its hold on the process: signals and logs are the caller's."""

    def __init__(
        self,
        app: Any,
        tls: ssl.SSLContext | None,
        room: Room,
        protocol: type[BoundedHttp] = BoundedHttp,
    ) -> None:
        counted = type("CountedHttp", (protocol,), {"room": room})

        def made(**given: Any) -> asyncio.Protocol:
            return secured(partial(counted, **given), tls, room)()

        self._room = room
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=made,  # pyright: ignore[reportArgumentType] - called, as a class is
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
        self._room.clear()
        await self._server.shutdown(sockets=self._sockets)


def http_server(app: Any, tls: ssl.SSLContext | None, budgets: Budgets) -> AsgiServer:
    """For clients: its connections are part of the process's."""
    return AsgiServer(app, tls, Room(budgets.connections, _HTTP))


def probe_server(app: Any) -> AsgiServer:
    """For those who watch the process, with connections of its own. `app` must close each."""
    return AsgiServer(app, None, Room(Budget(PROBE_CONNECTIONS), EVERYBODY), ProbeHttp)
