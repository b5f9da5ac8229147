"""One connection between two processes of a cluster, whichever side of it: frames in and out.

It is ended when the other side has been silent for too long, doesn't fetch what it is sent, or
can't be followed. Letters of a turn are written together at its end.
"""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeGuard, TypeVar, cast

import msgspec

from anabranch.core.errors import BadFrame
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import PULSE_FRAME, Pulse, encode_letter
from anabranch.shell.net.tls import bears_name
from anabranch.shell.peers.half_letters import HalfLetter, LetterRoom
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.telemetry.log import Log

PULSE_S = 1.0
PULSES_MISSED_MAX = 5
"""So many pulses of ours without a word from the other side, and it is taken for gone."""
HANDSHAKE_S = 10.0
"""A connection over which no greeting has come by then is ended."""
_KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3))
_UNACKNOWLEDGED_MS = 10_000
_JOINED_BYTES_MAX = 64 * 1024
"""What a turn says is joined up to this; past it copying costs more than it saves."""

M = TypeVar("M")


@dataclass(slots=True)
class PeerCounters:
    """Since the process began."""

    connections: int = 0
    refused: int = 0
    letters_in: int = 0
    letters_out: int = 0
    lost: int = 0
    unreadable: int = 0
    left_silent: int = 0
    left_unread: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(slots=True)
class PeerGauges:
    connected: int = 0


class Owner(Protocol[M]):
    """Who knows what is heard on a connection."""

    def made(self, line: "Line[M]") -> None: ...

    def heard(self, line: "Line[M]", message: M) -> None: ...

    def lost(self, line: "Line[M]", why: str) -> None:
        """It is over; called once, also if nobody was ever greeted."""
        ...


class Line(asyncio.Protocol, Generic[M]):
    def __init__(
        self,
        owner: Owner[M],
        reader: FrameReader[M],
        limits: Limits,
        counters: PeerCounters,
        log: Log,
        room: LetterRoom | None = None,
    ) -> None:
        """`room`: of the letters of those who dial."""
        self._owner = owner
        self._half = HalfLetter(room, self) if room is not None else None
        self._reader = reader
        self._limits = limits
        self._counters = counters
        self._log = log
        self._transport: asyncio.Transport
        self._alarm: asyncio.TimerHandle
        self._out: list[Buffer] = []
        self._missed = 0
        self._why = ""
        self.peer = ""
        """The node at the other side, once it has greeted."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports offer the same, but aren't asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        set_up(self._transport.get_extra_info("socket"))
        self._counters.connections += 1
        self._alarm = self._loop.call_later(HANDSHAKE_S, self._silent)
        self._owner.made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._alarm.cancel()
        self._out.clear()
        if self._half is not None:
            self._half.end()
        self._owner.lost(self, self._why or (str(exc) if exc else "the other side has ended it"))

    def data_received(self, data: bytes) -> None:
        self._missed = 0
        self._counters.bytes_in += len(data)
        for _, message in self._reader.feed(data):
            if self._transport.is_closing():
                return
            if isinstance(message, BadFrame):
                self._unreadable(message)
            elif not isinstance(message, Pulse):
                self._owner.heard(self, message)
        if self._reader.broken is not None:
            self.end(self._reader.broken.message)
        self._make_room()

    def resume(self) -> None:
        """There may be room for the letter that has begun to come."""
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._make_room()

    def late(self) -> None:
        self._counters.left_silent += 1
        self.abort("a letter of it has begun, and takes too long to come")

    def _make_room(self) -> None:
        """Its rest isn't read before there is some. Whoever waits for long seems silent, and dials
        again.
        """
        closing = self._transport.is_closing()
        if self._half is not None and not closing and not self._half.look(self._reader):
            self._transport.pause_reading()

    def shows(self, name: str) -> bool:
        """Whether the other side's certificate was issued for this name."""
        return bears_name(self._transport, name)

    @property
    def host(self) -> str | None:
        """The address of the other side's machine, if the socket has one."""
        name = self._transport.get_extra_info("peername")
        return cast("tuple[str, int]", name)[0] if isinstance(name, tuple) else None

    def greeted(self, peer: str, reader: FrameReader[M] | None = None) -> None:
        """Both sides are known to each other; from here on `reader` reads, if one is given."""
        assert not self.peer, "one greeting is enough"
        if reader is not None:
            if self._reader.pending_bytes:
                self.end("it wrote letters before it was greeted")
                return
            self._reader = reader
        self.peer = peer
        self._alarm.cancel()
        self._alarm = self._loop.call_later(PULSE_S, self._pulse)

    def say(self, frame: bytes) -> None:
        """At once, outside the order of letters."""
        self._transport.write(frame)

    def send(self, letter: msgspec.Struct) -> None:
        if reached("peers.send"):
            return
        frame = encode_letter(letter)
        size = sum(map(len, frame))
        if size > self._limits.peer_frame_bytes_max:
            # The other side would end the connection, and the letter be repeated on the next one.
            self._counters.lost += 1
            self._log.error("a letter is too large to send", to=self.peer, bytes=size)
            return
        self._counters.letters_out += 1
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += frame

    def end(self, why: str) -> None:
        """What was said before still goes out."""
        self._why = self._why or why
        self._transport.close()

    def abort(self, why: str) -> None:
        self._why = self._why or why
        self._transport.abort()

    def make_way(self) -> None:
        """Nobody has greeted, and another has come."""
        self._counters.left_silent += 1
        self.abort("others need its place before it has greeted")

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def _flush(self) -> None:
        out, self._out = self._out, []
        if not out or self._transport.is_closing():
            return
        self._counters.bytes_out += write_all(self._transport, out)
        if self._transport.get_write_buffer_size() > self._limits.peer_unsent_bytes_max:
            self._counters.left_unread += 1
            self.abort("it doesn't read what it is sent (peer_unsent_bytes_max)")

    def _unreadable(self, error: BadFrame) -> None:
        """Before the greeting it is no peer; later it may be a newer one, which loses a letter."""
        self._counters.unreadable += 1
        if not self.peer:
            self.end(f"no process of a cluster speaks so: {error.message}")
            return
        self._log.warning("a letter can't be read", sender=self.peer, reason=error.message)

    def _pulse(self) -> None:
        """A process that was stopped finds one missed, however long that was."""
        self._missed += 1
        if self._missed > PULSES_MISSED_MAX:
            self._silent()
            return
        self._transport.write(PULSE_FRAME)
        self._alarm = self._loop.call_later(PULSE_S, self._pulse)

    def _silent(self) -> None:
        self._counters.left_silent += 1
        self.abort("nothing was heard of it for too long")


def write_all(transport: asyncio.Transport, out: Sequence[Buffer]) -> int:
    """Say how many bytes that are."""
    if len(out) == 1:
        transport.write(out[0])
        return len(out[0])
    size = sum(map(len, out))
    if size <= _JOINED_BYTES_MAX:
        transport.write(b"".join(out))
    else:
        transport.writelines(out)
    return size


def set_up(connection: socket.socket | None) -> None:
    """Small letters go out at once, and a link that was cut is noticed."""
    if not _is_tcp(connection):
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(connection)
    # Where a system has no such option, pulses must do.
    with suppress(AttributeError, OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)


def keep_alive(connection: socket.socket | None) -> None:
    """Notice that the other side's machine is gone, also while nothing is sent."""
    if not _is_tcp(connection):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Where a system has no such options, its own intervals must do.
    with suppress(AttributeError, OSError):
        for name, value in _KEEPALIVE:
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _is_tcp(connection: socket.socket | None) -> TypeGuard[socket.socket]:
    return connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}
