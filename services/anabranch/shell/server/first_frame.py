"""A node's one port: whoever comes says in the first frame whether it is a node or a client."""

import asyncio
import socket
import ssl
from typing import cast

from anabranch.core.belfast.protocol.codec import CODEC
from anabranch.core.belfast.protocol.messages import Hello
from anabranch.core.budget import STRANGERS
from anabranch.core.errors import BadFrame, Overloaded
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import GREETING, GREETING_BYTES_MAX, Greeting, decode_greeting
from anabranch.shell.net.tls import bears_name
from anabranch.shell.peers.connection import HANDSHAKE_S
from anabranch.shell.peers.dialer import is_address, parse_address
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.server.belfast_clients import Clients

_BACKLOG = 1_024

First = Greeting | Hello


def first_frames() -> "FrameReader[First]":
    """Reads the first frame of a connection and no other."""
    kind, decode = CODEC.hello
    return FrameReader({GREETING: decode_greeting, kind: decode}, GREETING_BYTES_MAX)


class Door:
    """Listens for both; `tls` with an authority asks nodes for their certificates, not clients
    (`tls.listening(..., strangers=True)`).
    """

    def __init__(self, mesh: Mesh, clients: Clients) -> None:
        self._listener: asyncio.Server | None = None
        self._checks = False
        self.mesh = mesh
        self.clients = clients
        self.strangers: dict[Stranger, None] = {}

    async def start(self, on: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        self._checks = tls is not None and tls.verify_mode is not ssl.CERT_NONE
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Stranger(self),
            sock=on,
            backlog=_BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_S if tls else None,
        )

    async def stop(self) -> None:
        """Nobody comes in any more; clients get what they have begun."""
        if self._listener is not None:
            self._listener.close()
        for stranger in list(self.strangers):
            stranger.abort()
        await self.clients.stop()

    def crowded(self, stranger: "Stranger") -> Overloaded | None:
        """Whoever has been a stranger for longest makes room; why nobody does."""
        connections = self.clients.budgets.connections
        taken = connections.take(STRANGERS, 1)
        if not taken and self.strangers:
            oldest = next(iter(self.strangers))
            self.leave(oldest)
            oldest.abort()
            taken = connections.take(STRANGERS, 1)
        if not taken:
            return Overloaded("connections", connections.limit, "connections_max")
        self.strangers[stranger] = None
        return None

    def leave(self, stranger: "Stranger") -> None:
        if stranger in self.strangers:
            del self.strangers[stranger]
            budgets = self.clients.budgets
            budgets.give(budgets.connections, STRANGERS, 1)

    def enter(self, stranger: "Stranger", transport: asyncio.Transport, first: First) -> None:
        self.leave(stranger)
        if isinstance(first, Greeting):
            known = not self._checks or _is_who_it_says(transport, first)
            self.mesh.welcome(transport, first, known)
        else:
            self.clients.welcome(transport, first)


def _is_who_it_says(transport: asyncio.Transport, greeting: Greeting) -> bool:
    """A node is named by the address at which it is dialed, and that is in its certificate."""
    named = is_address(greeting.node)
    return named and bears_name(transport, parse_address(greeting.node)[0])


class Stranger(asyncio.Protocol):
    """Somebody at the door, of whom no more than one small frame is taken."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._reader = first_frames()
        self._transport: asyncio.Transport
        self._patience: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports offer the same, but aren't asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._patience = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._silent)
        crowded = self._door.crowded(self)
        if crowded is not None:
            self._turn_away(crowded)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cancel()
        self._door.leave(self)

    def data_received(self, data: bytes) -> None:
        found = self._reader.feed(data)
        if self._transport.is_closing():
            return
        if self._reader.broken is not None:
            self._turn_away(self._reader.broken)
        elif found:
            _, first = found[0]
            if isinstance(first, BadFrame):
                self._turn_away(BadFrame("the first one must say hello, or greet"))
            elif len(found) > 1 or self._reader.pending_bytes:
                self._turn_away(BadFrame("nothing comes before the first one is answered"))
            else:
                self._patience.cancel()
                self._door.enter(self, self._transport, first)

    def abort(self) -> None:
        self._transport.abort()

    def _turn_away(self, error: BadFrame | Overloaded) -> None:
        self._door.clients.dismiss(self._transport, error)

    def _silent(self) -> None:
        self._door.clients.counters.left_silent += 1
        self._transport.abort()
