"""The server of frames: one listener for the clients of every engine, and for nodes.

It knows every connection from its first byte to its last. What a client says first decides which
service it gets, by its engine and the machine that it asks for.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from anabranch.core.errors import Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.core.wire.frames import Decoder, FrameReader
from anabranch.core.wire.peers import GREETING, Greeting, decode_greeting
from anabranch.shell.net.handshake import secured
from anabranch.shell.net.room import Room
from anabranch.shell.server.arrival import Arrival
from anabranch.shell.server.budgets import HELLO_BYTES_MAX, Budgets
from anabranch.shell.server.connection import Connection
from anabranch.shell.server.service import Absence, Service
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.request_log import RequestLog

DRAIN_S = 5.0
"""How long a stopping server waits for what it has begun."""
_BACKLOG = 1_024


@dataclass(slots=True)
class ServerCounters:
    """Since the process began."""

    accepted: int = 0
    turned_away: int = 0
    refused: int = 0
    over_quota: int = 0
    left_silent: int = 0
    left_unread: int = 0
    left_lapsed: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(slots=True)
class ServerGauges:
    connections: int = 0


class Peers(Protocol):
    """Other nodes, which dial this process where its clients do."""

    def welcome(self, transport: asyncio.Transport, greeting: Greeting, *, checked: bool) -> None:
        """`checked`: nodes must show certificates for their names."""
        ...


class First(NamedTuple):
    """A first frame; `protocol` is None for a node's."""

    protocol: ClientProtocol | None
    message: Any


class FrameServer:
    """Serves what `serve` was given, to clients whom the authority of their service lets in."""

    def __init__(
        self,
        limits: Limits,
        *,
        budgets: Budgets | None = None,
        log: Log | None = None,
        peers: Peers | None = None,
    ) -> None:
        self.limits = limits
        self.budgets = budgets or Budgets(limits)
        self.counters = ServerCounters()
        self.gauges = ServerGauges()
        self.peers = peers
        self.requests = RequestLog(log) if log else None
        self._services: dict[tuple[str, str], Service] = {}
        self._absences: dict[tuple[str, str], Absence] = {}
        self._protocols: dict[str, ClientProtocol] = {}
        self._first: dict[int, Decoder[First]] | None = None
        self._connections: dict[Connection | Arrival, None] = {}
        self.room = Room(self.budgets.connections)
        """Of those who haven't said who they are."""
        self._left = asyncio.Event()
        self._listener: asyncio.Server | None = None
        self._checks_nodes = False

    def serve(self, service: Service) -> None:
        """From here on, to clients whose hello asks for it."""
        key = service.protocol.name, service.name
        assert key not in self._services, f"{key} is served already"
        self._services[key] = service
        self._absences.pop(key, None)
        self.expect(service.protocol)

    def explain(self, protocol: ClientProtocol, name: str, absence: Absence | None) -> None:
        """Say why this machine isn't served, until it is; None: it is expected no more."""
        key = protocol.name, name
        assert key not in self._services, f"{key} is served"
        if absence is None:
            self._absences.pop(key, None)
        else:
            self._absences[key] = absence

    def expect(self, protocol: ClientProtocol) -> None:
        """Understand clients of this engine also while none of its machines is served here."""
        self._protocols[protocol.name] = protocol
        self._first = None

    async def withdraw(self, service: Service) -> None:
        """Take no more of its clients, answer what they have asked, and close."""
        self._services.pop((service.protocol.name, service.name), None)
        await self._drain(
            [service], lambda each: isinstance(each, Connection) and each.service is service
        )

    def service(self, protocol: ClientProtocol, hello: Any) -> Service | Absence:
        """The one that this hello asks for; raises if this server can't serve the client."""
        node = protocol.node(hello)
        service = self._services.get((protocol.name, node))
        if service is None and not node.startswith("/"):
            # One that is alone is dialed by names that it needn't know.
            service = self._services.get((protocol.name, ""))
        if service is None and (protocol.name, node) in self._absences:
            return self._absences[protocol.name, node]
        if service is None:
            reason = "no such node is served here now: its log was deleted, or is served elsewhere"
            raise Unavailable(f"node {node or 'without a name'}", reason)
        objection = protocol.objection(hello, service.welcome)
        if objection is not None:
            raise objection
        return service

    @property
    def fallback(self) -> ClientProtocol | None:
        """In whose frames somebody is turned away of whom nothing is known yet. None: there is
        nothing for clients here, only for nodes.
        """
        served = (service.protocol for service in self._services.values())
        return next(served, next(iter(self._protocols.values()), None))

    def protocol_of(self, kind: int) -> ClientProtocol | None:
        """In whose frames to answer a first frame of this kind, whatever is in it."""
        found = (each for each in self._protocols.values() if each.codec.hello[0] == kind)
        return next(found, self.fallback)

    def first_frames(self) -> FrameReader[First]:
        """Reads the first frame of a connection, and no other."""
        if self._first is None:
            self._first = self._first_decoders()
        return FrameReader(self._first, HELLO_BYTES_MAX)

    def _first_decoders(self) -> dict[int, Decoder[First]]:
        ways: dict[int, list[tuple[ClientProtocol | None, Decoder[Any]]]] = {}
        for protocol in self._protocols.values():
            kind, decode = protocol.codec.hello
            ways.setdefault(kind, []).append((protocol, decode))
        if self.peers is not None:
            ways.setdefault(GREETING, []).append((None, decode_greeting))
        return {kind: _any_of(found) for kind, found in ways.items()}

    async def start(self, address: str, port: int) -> int:
        """Listen; says on which port, which matters if 0 was asked for."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Arrival(self), address, port, backlog=_BACKLOG
        )
        return self._listener.sockets[0].getsockname()[1]

    async def take_over(self, on: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Answer on a socket that listens already, and from here on is this server's.

        A context that verifies certificates may still let in clients without one; nodes need one.
        """
        self._checks_nodes = tls is not None and tls.verify_mode is not ssl.CERT_NONE
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            secured(lambda: Arrival(self), tls, self.room), sock=on, backlog=_BACKLOG
        )

    async def stop(self) -> None:
        """Accept no more, answer what has begun, then close."""
        assert self._listener is not None
        self._listener.close()
        self.room.clear()
        await self._drain(list(self._services.values()), lambda _: True)

    def enter(self, arrival: Arrival, *, welcome: bool) -> None:
        """Known until it leaves, also if it isn't welcome: it has yet to be told."""
        self._connections[arrival] = None
        self.gauges.connections += 1
        if welcome:
            self.counters.accepted += 1
        else:
            self.counters.turned_away += 1

    def replace(self, arrival: Arrival, connection: Connection) -> None:
        """The client of this arrival is known, and has a connection now."""
        del self._connections[arrival]
        self._connections[connection] = None

    def leave(self, connection: Connection | Arrival) -> None:
        del self._connections[connection]
        self.gauges.connections -= 1
        self._left.set()

    def meet_node(self, transport: asyncio.Transport, greeting: Greeting) -> None:
        assert self.peers is not None, "first_frames reads no greeting without peers"
        self.peers.welcome(transport, greeting, checked=self._checks_nodes)

    def refused(self, client: str, request: int, refused: Refused) -> None:
        """Log it, if it is worth that."""
        if self.requests is not None:
            now_s = asyncio.get_running_loop().time()
            self.requests.refused(client, request, refused, now_s)

    async def _drain(
        self, services: list[Service], which: Callable[[Connection | Arrival], bool]
    ) -> None:
        for each in filter(which, list(self._connections)):
            each.finish()
        # Machines that have stopped answer nothing more.
        stopped = all(service.host.failed.done() for service in services)
        try:
            async with asyncio.timeout(0 if stopped else DRAIN_S):
                await self._until_gone(which)
        except TimeoutError:
            for each in filter(which, list(self._connections)):
                each.abort()
            await self._until_gone(which)

    async def _until_gone(self, which: Callable[[Connection | Arrival], bool]) -> None:
        while any(map(which, self._connections)):
            self._left.clear()
            await self._left.wait()


def _any_of(ways: list[tuple[ClientProtocol | None, Decoder[Any]]]) -> Decoder[First]:
    """Frames of one kind may open connections of several protocols: one of them can be read."""

    def decode(data: bytes | memoryview, start: int, end: int) -> First:
        *others, (last, decode_last) = ways
        for protocol, decode_one in others:
            try:
                return First(protocol, decode_one(data, start, end))
            except msgspec.DecodeError:
                continue
        return First(last, decode_last(data, start, end))

    return decode
