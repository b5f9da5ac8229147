"""A connection of a listening port from its acceptance until TLS is set up.

A listener that is given a context tells its protocols of a connection only after the handshake: who
never finishes one would hold an open file that nobody has counted. So connections are accepted as
they are, counted in a `Room`, and TLS comes after.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from anabranch.shell.net.room import Room

HANDSHAKE_S = 10.0
"""A handshake that isn't over by then ends the connection."""


def secured(
    make: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None, room: Room
) -> Callable[[], asyncio.Protocol]:
    """What a listener makes of each connection: what `make` gives, once TLS is set up if there is
    any. Until then the connection is in the room; what comes after it must enter by itself.
    """
    return make if tls is None else lambda: Handshake(make, tls, room)


class Handshake(asyncio.Protocol):
    def __init__(
        self, make: Callable[[], asyncio.Protocol], tls: ssl.SSLContext, room: Room
    ) -> None:
        self._make = make
        self._tls = tls
        self._room = room
        self._plain: asyncio.Transport
        self._shaking: asyncio.Task[None] | None = None
        self._came = bytearray()
        """Before TLS began, or right behind the handshake."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports offer the same, but aren't asyncio's.
        self._plain = cast("asyncio.Transport", transport)
        if not self._room.enter(self):
            # A sentence could only be read after the handshake.
            self._plain.abort()
            return
        self._plain.pause_reading()
        loop = asyncio.get_running_loop()
        self._shaking = loop.create_task(self._shake())
        # After the first step of that task, and what it has the loop do next.
        loop.call_soon(loop.call_soon, self._hand_on)

    def data_received(self, data: bytes) -> None:
        self._came += data

    def _hand_on(self) -> None:
        """What came before TLS began is its first part: uvloop starts to read, paused or not."""
        came, self._came = self._came, bytearray()
        follower = self._plain.get_protocol()
        if not came or follower is self or self._plain.is_closing():
            return
        tls = cast("asyncio.BufferedProtocol", follower)
        while came:
            buffer = memoryview(tls.get_buffer(len(came)))
            size = min(len(buffer), len(came))
            buffer[:size] = came[:size]
            tls.buffer_updated(size)
            del came[:size]

    def make_way(self) -> None:
        assert self._shaking is not None, "whoever is in a room has begun"
        self._shaking.cancel()
        # What the loop does to set up TLS comes first: it mustn't find the transport closed.
        asyncio.get_running_loop().call_soon(self._plain.abort)

    async def _shake(self) -> None:
        try:
            transport = await self._secure()
        finally:
            self._room.leave(self)
        if transport is None or transport.is_closing():
            return
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._came:
            protocol.data_received(bytes(self._came))

    async def _secure(self) -> asyncio.Transport | None:
        """None if the other side can't be followed, or has gone."""
        if self._plain.is_closing():
            return None
        loop = asyncio.get_running_loop()
        try:
            return await loop.start_tls(
                self._plain, self, self._tls, server_side=True, ssl_handshake_timeout=HANDSHAKE_S
            )
        except OSError:  # errors of TLS and those of time are such, too
            self._plain.abort()
            return None
