"""One connection of a client: bytes out, decoded replies in."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

from anabranch.client.driver.misdial import guess
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import FrameReader

A = TypeVar("A")

Replies = Sequence[tuple[int, A | AnabranchError]]

_JOINED_BYTES_MAX = 64 * 1024
"""Frames of a turn are joined up to this; past it copying costs more than it saves."""

_BEGIN_BYTES = 8
"""So many first bytes tell whether the other side speaks our protocol."""


class Wire(asyncio.Protocol, Generic[A]):
    """After `abort`, nothing more is heard of it."""

    def __init__(
        self,
        reader: FrameReader[A],
        heard: "Callable[[Wire[A], Replies[A]], None]",
        lost: "Callable[[Wire[A], str], None]",
        tls_scheme: str | None,
    ) -> None:
        """`tls_scheme`: what to write in place of the scheme of a plain connection, to use TLS."""
        self._reader = reader
        self._heard, self._lost = heard, lost
        self._tls_scheme = tls_scheme
        self._begin = b""
        self._aborted = False
        self._transport: asyncio.Transport
        self.line = -1
        """The line that it serves, once the link has taken it."""

    @property
    def closing(self) -> bool:
        return self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not every loop derives its transports from the standard library's.
        self._transport = cast("asyncio.Transport", transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if not self._begin:
            self._begin = data[:_BEGIN_BYTES]
        replies = self._reader.feed(data)
        if replies and not self._aborted:
            self._heard(self, replies)
        if self._reader.broken is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._aborted:
            return
        told = guess(self._begin, self._tls_scheme)
        reason = told or self._reader.broken or exc or "the server closed the connection"
        self._lost(self, str(reason))

    def send(self, buffers: list[Buffer]) -> None:
        if sum(map(len, buffers)) <= _JOINED_BYTES_MAX:
            self._transport.write(b"".join(buffers))
        else:
            self._transport.writelines(buffers)

    def abort(self) -> None:
        self._aborted = True
        self._transport.abort()
