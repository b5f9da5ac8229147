"""The frame server: listens, and knows every connection from its first byte to its last."""

import asyncio
import socket
import ssl
from dataclasses import dataclass

from anabranch.core.bolt.protocol.messages import PROTOCOL_VERSION, Welcome
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Token
from anabranch.ports import Authority
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.runtime.driver import Host, Seat, seat_of
from anabranch.shell.server.budgets import Budgets
from anabranch.shell.server.connection import HANDSHAKE_S, Connection
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.otlp import Context, parse_traceparent
from anabranch.shell.telemetry.request_log import Complaints

DRAIN_S = 5.0
"""How long a stopping server waits for what it has begun."""
_BACKLOG = 1_024


@dataclass(slots=True)
class ServerCounters:
    """Since the process began."""

    accepted: int = 0
    turned_away: int = 0
    refused: int = 0
    left_silent: int = 0
    left_unread: int = 0
    left_lapsed: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(slots=True)
class ServerGauges:
    connections: int = 0


class FrameServer:
    """Serves one machine of a host to clients that an authority lets in; without one, to those that
    know the token, if there is one.
    """

    def __init__(  # noqa: PLR0913  # all but the first three have a default, or a name
        self,
        host: Host,
        node: str,
        limits: Limits,
        *,
        cluster: str,
        version: str,
        token: Tokens | str | None = None,
        authority: Authority | None = None,
        log: Log | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        self.budgets = budgets or Budgets(limits)
        self._complaints = Complaints(log) if log else None
        self._host = host
        self._node = node
        self.authority: Authority = authority or SharedToken(token)
        self._connections: dict[Connection, None] = {}
        self._strangers: dict[Connection, None] = {}
        self._listener: asyncio.Server | None = None
        self._contexts: dict[int, Context] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self.limits = limits
        self.counters = ServerCounters()
        self.gauges = ServerGauges()
        self.welcome = Welcome(
            PROTOCOL_VERSION,
            cluster,
            version,
            limits.record_bytes_max,
            limits.batch_bytes_max,
            limits.batch_records_max,
        )

    async def start(self, address: str, port: int) -> int:
        """Listen; says on which port, which matters if 0 was asked for."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Connection(self), address, port, backlog=_BACKLOG
        )
        return self._listener.sockets[0].getsockname()[1]

    async def take_over(self, on: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Answer on a socket that listens already, and from here on is this server's."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Connection(self),
            sock=on,
            backlog=_BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_S if tls else None,
        )

    async def stop(self) -> None:
        """Accept no more, answer what has begun, then close."""
        assert self._listener is not None
        self._listener.close()
        for connection in list(self._connections):
            connection.finish()
        # Machines that have stopped answer nothing more.
        patience_s = 0 if self._host.failed.done() else DRAIN_S
        try:
            await asyncio.wait_for(self._empty.wait(), patience_s)
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
            await self._empty.wait()

    def enter(self, connection: Connection, *, welcome: bool) -> None:
        """Known until it leaves, also if it isn't welcome: it has yet to be told."""
        self._connections[connection] = None
        if welcome:
            self._strangers[connection] = None
        self.gauges.connections += 1
        self._empty.clear()
        if welcome:
            self.counters.accepted += 1
        else:
            self.counters.turned_away += 1

    def make_room(self) -> bool:
        """Among strangers, by ending who has been one for longest; false if there is none."""
        if not self._strangers:
            return False
        oldest = next(iter(self._strangers))
        del self._strangers[oldest]
        self.counters.left_silent += 1
        oldest.abort()
        return True

    def met(self, connection: Connection) -> None:
        """It has said who it is."""
        self._strangers.pop(connection, None)

    def leave(self, connection: Connection) -> None:
        del self._connections[connection]
        self._strangers.pop(connection, None)
        self.gauges.connections -= 1
        if not self._connections:
            self._empty.set()

    def failed(self, client: str, request: int, refused: Refused) -> None:
        """For an operator to know, if it is worth it."""
        if self._complaints is not None:
            now_s = asyncio.get_running_loop().time()
            self._complaints.note(client, request, refused, now_s)

    def seat(self, connection: Connection, traceparent: str = "") -> Seat:
        seat = self._host.seat(self._node, connection)
        context = parse_traceparent(traceparent)
        if context is not None:
            self._contexts[seat.number] = context
        return seat

    def vacated(self, seat: Seat) -> None:
        self._contexts.pop(seat.number, None)

    def context(self, token: Token) -> Context | None:
        """The client's span that this request is part of, if it named one."""
        return self._contexts.get(seat_of(token))
