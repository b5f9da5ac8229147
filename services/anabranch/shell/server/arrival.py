"""A connection until it is known who has connected: a client of some engine, or a node.

No more than one small frame is read, and as much behind it. While an authority finds out who the
client is nothing more is read.
"""

import asyncio
from typing import TYPE_CHECKING, Any, cast

from anabranch.core.errors import AnabranchError, BadFrame, Overloaded
from anabranch.core.errors.refused import Refused
from anabranch.core.wire.frames import CONNECTION, HEADER
from anabranch.core.wire.peers import Greeting
from anabranch.shell.peers.connection import keep_alive
from anabranch.shell.server.budgets import FirstFrame, Share
from anabranch.shell.server.connection import Connection, address_of
from anabranch.shell.server.service import Absence, Service

if TYPE_CHECKING:
    from anabranch.shell.server.frame_server import FrameServer

HANDSHAKE_S = 10.0
"""A connection whose client isn't known by then is closed."""


class Arrival(asyncio.Protocol):
    def __init__(self, server: "FrameServer") -> None:
        self._server = server
        self._share = Share(server.budgets, self)
        self._first = FirstFrame()
        self._reader = server.first_frames()
        self._protocol = server.fallback
        self._transport: asyncio.Transport
        self._alarm: asyncio.TimerHandle
        self._admission: asyncio.Task[None] | None = None
        self._known = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports offer the same, but aren't asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        keep_alive(self._transport.get_extra_info("socket"))
        self._alarm = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._end_silent)
        welcome = self._server.room.enter(self)
        self._server.enter(self, welcome=welcome)
        if not welcome:
            limit = self._server.budgets.connections.limit
            self._turn_away(CONNECTION, Overloaded("connections", limit, "connections_max"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._known:
            return
        self._alarm.cancel()
        if self._admission is not None:
            self._admission.cancel()
        self._leave_room()
        self._server.leave(self)

    def data_received(self, data: bytes) -> None:
        self._server.counters.bytes_in += len(data)
        if self._transport.is_closing():
            return
        frame = self._first.feed(data)
        if frame is not None:
            self._take(frame)
        if not self._known and self._first.crowded is not None:
            self._turn_away(CONNECTION, self._first.crowded)

    def finish(self) -> None:
        """The server stops, and nothing has been asked yet."""
        self._transport.close()

    def abort(self) -> None:
        self._leave_room()
        self._transport.abort()

    def make_way(self) -> None:
        self._server.counters.left_silent += 1
        self.abort()

    def resume(self) -> None:
        """Nothing here waits for room."""

    def _take(self, frame: bytes) -> None:
        _, kind, *_ = HEADER.unpack_from(frame)
        self._protocol = self._server.protocol_of(kind)
        found = self._reader.feed(frame)
        if self._reader.broken is not None:
            self._turn_away(CONNECTION, self._reader.broken)
            return
        [(request, first)] = found or [(CONNECTION, BadFrame("it is no frame"))]
        if isinstance(first, BadFrame):
            self._turn_away(request, BadFrame("the first one must say hello"))
        elif isinstance(first.message, Greeting):
            self._hand_to_peers(first.message)
        else:
            assert first.protocol is not None, "only nodes greet"
            self._protocol = first.protocol
            try:
                service = self._server.service(first.protocol, first.message)
                self._admit(service, request, first.message)
            except AnabranchError as error:
                self._turn_away(request, error)

    def _hand_to_peers(self, greeting: Greeting) -> None:
        if self._first.rest():
            self._turn_away(CONNECTION, BadFrame("nothing comes before the first one is answered"))
            return
        self._leave_to_successor()
        self._leave_room()
        self._server.leave(self)
        self._server.meet_node(self._transport, greeting)

    def _admit(self, service: Service | Absence, request: int, hello: Any) -> None:
        """Raises if it is known that this client isn't let in."""
        if service.authority.known(hello.token):
            self._serve(service, request, hello)
            return
        peer = self._transport.get_extra_info("peername")
        self._transport.pause_reading()
        admission = service.authority.admit(hello.token, str(peer[0]) if peer else "")

        def found(task: asyncio.Task[None]) -> None:
            self._admission = None
            if task.cancelled() or self._transport.is_closing():
                return
            error = task.exception()
            if error is None:
                self._transport.resume_reading()
                self._serve(service, request, hello)
            elif isinstance(error, AnabranchError):
                self._turn_away(request, error)
            else:
                self._transport.abort()
                raise error

        self._admission = asyncio.get_running_loop().create_task(admission)
        self._admission.add_done_callback(found)

    def _serve(self, service: Service | Absence, request: int, hello: Any) -> None:
        if isinstance(service, Absence):
            self._turn_away(request, service.error)
            return
        self._server.room.leave(self)
        crowded = self._share.enter(service.authority.principal(hello.token))
        if crowded is not None:
            self._turn_away(request, crowded)
            return
        self._leave_to_successor()
        connection = Connection(self._server, service, self._transport, self._share, hello)
        self._server.replace(self, connection)
        self._transport.set_protocol(connection)
        connection.start(request, self._first.rest())

    def _leave_room(self) -> None:
        self._share.leave(self._reader)
        self._server.room.leave(self)

    def _leave_to_successor(self) -> None:
        self._known = True
        self._alarm.cancel()

    def _turn_away(self, request: int, error: AnabranchError) -> None:
        """Say why, and close. A server that knows no engine has no frames to say it in."""
        self._server.counters.refused += 1
        refused = Refused.of(error)
        self._server.refused(address_of(self._transport), request, refused)
        if self._protocol is not None:
            self._transport.write(b"".join(self._protocol.codec.encode_reply(request, refused)))
        self._transport.close()

    def _end_silent(self) -> None:
        self._server.counters.left_silent += 1
        self._transport.abort()
