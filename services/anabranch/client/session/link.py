"""The asyncio driver of a session: it moves bytes and keeps time, and decides nothing.

One connection, no task per request. What is written in one turn of the loop is sent at its end, at
once.
"""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import TypeVar, cast

from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.subscription import News, Subscription
from anabranch.client.session import arguments
from anabranch.client.session.call import Call
from anabranch.client.session.effects import (
    Answered,
    Arrived,
    Asked,
    Connected,
    Dial,
    Disconnected,
    Dropped,
    Effect,
    Ended,
    Event,
    HangUp,
    Heard,
    Left,
    Opened,
    Roomy,
    Settled,
    Taken,
    Transmit,
    Written,
)
from anabranch.client.session.endpoint import Endpoint, address
from anabranch.client.session.misdial import guess, untrusted
from anabranch.client.session.session import Session
from anabranch.client.session.settings import Settings
from anabranch.client.session.waiters import Waiter, wake, wake_all
from anabranch.core.alarms import Alarms
from anabranch.core.bolt.protocol.codec import encode_request, replies
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.errors import AnabranchError, BadFrame, BadRequest
from anabranch.core.machine import Buffer, SetTimer, TimerFired
from anabranch.core.types import MS, Milliseconds
from anabranch.shell.net.connect import reach
from anabranch.shell.net.tls import trusting
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.randomness import randbits

CONNECT_S = 5.0
"""How long one attempt to open a connection may take."""

_JOINED_BYTES_MAX = 64 * 1024
"""Frames of a turn are joined up to this; past it copying costs more than it saves."""

_REQUEST_BITS = 128

_BEGIN_BYTES = 8
"""By so many first bytes what isn't ours is known."""

A = TypeVar("A")


class Wire(asyncio.Protocol):
    """One connection; it is dead to the link once the link has another, or none."""

    def __init__(self, link: "Link", line: int) -> None:
        self.line = line
        self._link = link
        self._reader = replies()
        self._begin = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not every loop derives its transports from the standard library's.
        self.transport = cast("asyncio.Transport", transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if not self._begin:
            self._begin = data[:_BEGIN_BYTES]
        replies = self._reader.feed(data)
        if replies:
            self._link.heard(self, replies)
        if self._reader.broken is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        told = guess(self._begin, over_tls=self._link.endpoint.tls is not None)
        reason = told or self._reader.broken or exc or "the server closed the connection"
        self._link.lost(self, str(reason))


class Link:
    """A session, and the loop it lives in."""

    def __init__(self, endpoint: Endpoint, settings: Settings) -> None:
        self.endpoint = endpoint
        self.session = Session(settings, randbits, list(map(str, endpoint.addresses)))
        self.failed: AnabranchError | None = None
        """The first error of an append that nobody was waiting for."""
        self._clock = Clock()
        self._loop = asyncio.get_running_loop()
        self._tls = None if endpoint.tls is None else trusting(endpoint.tls)
        self._wires: dict[int, Wire] = {}
        self._dialing: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._out: dict[int, list[Buffer]] = {}
        self._written = False
        self._rooms: list[Waiter] = []
        self._quiets: list[Waiter] = []

    def start(self) -> None:
        self._perform(self.session.start(self._clock.now()))

    def close(self) -> None:
        """What waits still is told so."""
        self.step(Ended())
        for each in self._dialing.values():
            each.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def step(self, event: Event) -> None:
        self._perform(self.session.step(self._clock.now(), event))

    def heard(self, wire: Wire, replies: "list[tuple[int, ServerMessage | BadFrame]]") -> None:
        if wire is self._wires.get(wire.line):
            self.step(Heard(replies, wire.line))

    def lost(self, wire: Wire, reason: str) -> None:
        if wire is self._wires.get(wire.line):
            del self._wires[wire.line]
            self.step(Disconnected(reason, wire.line))

    def flush(self) -> None:
        """Send at once what producers were given."""
        self._written = False
        self.step(Written())

    def written(self) -> None:
        """Producers were given records; they are sent together at the end of this turn."""
        if not self._written:
            self._written = True
            self._loop.call_soon(self.flush)

    async def ask(
        self,
        message: ClientMessage,
        answer: type[A],
        what: str,
        timeout_ms: Milliseconds,
        wait_ms: Milliseconds = 0,
    ) -> A:
        call = self.begin(message, what, timeout_ms, wait_ms)
        return await self.answered(call, answer)

    def begin(
        self, message: ClientMessage, what: str, timeout_ms: Milliseconds, wait_ms: int = 0
    ) -> Call:
        """Ask without waiting."""
        return self.put(Call(message, what, timeout_ms, wait_ms))

    def put(self, call: Call) -> Call:
        self.step(Asked(call))
        return call

    def unheeded(self, error: AnabranchError) -> None:
        """Nobody has seen yet why this append failed; keep the first such error for `flush`."""
        self.failed = self.failed or error

    def heeded(self, error: AnabranchError) -> None:
        if self.failed is error:
            self.failed = None

    def drop(self, call: Call) -> None:
        """Nobody wants the answer any more, if it isn't there yet."""
        if not call.finished:
            self.step(Dropped(call))

    def open(self, subscription: Subscription) -> None:
        self.step(Opened(subscription))

    def taken(self, subscription: Subscription, size: int) -> None:
        self.step(Taken(subscription, size))

    def leave(self, subscription: Subscription) -> None:
        self.step(Left(subscription))

    def now_ms(self) -> Milliseconds:
        """Since 1970, as records that say nothing else are stamped."""
        return self._clock.now() // MS

    def once(self) -> bytes:
        """The id of one request, under which it is done once however often it is sent."""
        return randbits(_REQUEST_BITS).to_bytes(_REQUEST_BITS // 8, "big")

    def milliseconds(self, timeout: float | None) -> Milliseconds:
        """Of a timeout in seconds, or of the settings."""
        return arguments.milliseconds(timeout, self.session.settings.timeout_ms)

    async def answered(self, call: Call, answer: type[A]) -> A:
        if not call.finished:
            call.waiter = self._loop.create_future()
            try:
                await call.waiter
            except asyncio.CancelledError:
                self.drop(call)
                raise
        if call.error is not None:
            raise call.error
        if not isinstance(call.answer, answer):
            raise BadFrame(f"{type(call.answer).__name__} came where {answer.__name__} was asked")
        return call.answer

    async def settled(self, pledge: Pledge) -> None:
        """Any number may wait for one pledge, and any of them may leave."""
        if pledge.outcome is None:
            waiter = self._loop.create_future()
            pledge.waiters.append(waiter)
            await waiter

    async def room(self, timeout_ms: Milliseconds) -> bool:
        """Wait until appends that were refused as Overloaded may be tried again; False if in
        vain.
        """
        return await self._within(self._rooms, timeout_ms)

    async def quiet(self) -> None:
        """Wait until no append is pending; each has its deadline."""
        while self.session.pending_bytes:
            waiter = self._loop.create_future()
            self._quiets.append(waiter)
            await waiter

    async def news(self, subscription: Subscription) -> News:
        while not subscription.news:
            if subscription.error is not None:
                raise subscription.error
            subscription.waiter = self._loop.create_future()
            await subscription.waiter
        return subscription.news.popleft()

    async def _within(self, waiters: list[Waiter], timeout_ms: Milliseconds) -> bool:
        waiter: Waiter = self._loop.create_future()
        waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                await waiter
        except TimeoutError:
            return False
        return True

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(request, message, line):
                    self._out.setdefault(line, []).extend(encode_request(request, message))
                case Settled(pledge):
                    self._settle(pledge)
                case Answered(each) | Arrived(each):
                    wake(each.waiter)
                case Roomy():
                    wake_all(self._rooms)
                case SetTimer(_, at):
                    self._set_timer(at)
                case Dial(line, where):
                    self._dialing[line] = self._loop.create_task(self._dial(line, where))
                case HangUp(line):
                    self._hang_up(line)
        if self._out:
            self._send()

    def _settle(self, pledge: Pledge) -> None:
        if isinstance(pledge.outcome, AnabranchError) and not pledge.waiters:
            self.unheeded(pledge.outcome)
        for waiter in pledge.waiters:
            wake(waiter)
        pledge.waiters.clear()
        if not self.session.pending_bytes:
            wake_all(self._quiets)

    def _send(self) -> None:
        out, self._out = self._out, {}
        for line, buffers in out.items():
            wire = self._wires.get(line)
            if wire is None:
                continue
            if sum(map(len, buffers)) <= _JOINED_BYTES_MAX:
                wire.transport.write(b"".join(buffers))
            else:
                wire.transport.writelines(buffers)

    def _set_timer(self, at: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, at - self._clock.now()) / 1e9
        self._timer = self._loop.call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self.step(TimerFired(Alarms.KEY))

    async def _dial(self, line: int, where: str) -> None:
        shown = f"{self.endpoint.scheme}://{where}"
        try:
            host, port = address(where)
            token = await self._token()
            context = None if self._tls is None else self._tls.current()
            checked = (self.endpoint.server_name or host) if context else None
            async with asyncio.timeout(CONNECT_S):
                sock = await reach(host, port)
                _, wire = await self._loop.create_connection(
                    lambda: Wire(self, line), sock=sock, ssl=context, server_hostname=checked
                )
        except TimeoutError:
            failure = f"{shown} did not answer within {CONNECT_S:g} s"
        except ssl.SSLError as error:
            failure = f"{shown} can't be reached: {untrusted(error)}"
        except (OSError, UnicodeError, BadRequest) as error:
            failure = f"{shown} can't be reached: {error}"
        else:
            if not wire.transport.is_closing():
                self._dialing.pop(line, None)
                self._wires[line] = wire
                self.step(Connected(line, token))
                return
            failure = f"{shown} closed the connection at once"
        self._dialing.pop(line, None)
        self.step(Disconnected(failure, line))

    async def _token(self) -> str | None:
        """What the file holds now: whoever renews it needn't tell us."""
        file = self.endpoint.token_file
        if not file:
            return None
        try:
            return (await asyncio.to_thread(Path(file).read_text, "utf-8")).strip()
        except (OSError, ValueError) as error:
            raise BadRequest(f"the token file {file}", str(error)) from None

    def _hang_up(self, line: int) -> None:
        self._out.pop(line, None)
        task = self._dialing.pop(line, None)
        if task is not None:
            task.cancel()
        wire = self._wires.pop(line, None)
        if wire is not None:
            wire.transport.abort()
