"""The asyncio driver of a session: it moves bytes and keeps time, and decides nothing.

One connection to a server, no task per request. What is written in one turn of the loop is sent at
its end, at once.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from anabranch.client.driver.misdial import untrusted
from anabranch.client.driver.waiters import Waiter, wake, wake_all
from anabranch.client.driver.wire import Replies, Wire
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
from anabranch.client.session.endpoint import WITHIN, Address, Endpoint, address
from anabranch.client.session.parts import Subscription
from anabranch.client.session.pledge import Promise
from anabranch.client.session.session import Session
from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError, BadFrame, BadRequest
from anabranch.core.machine import Buffer, SetTimer, TimerFired
from anabranch.core.types import MS, Milliseconds
from anabranch.shell.net.connect import Hint, reach
from anabranch.shell.net.tls import trusting
from anabranch.shell.runtime.clock import Clock

CONNECT_S = 5.0
"""How long one attempt to open a connection may take."""

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")
W = TypeVar("W", bound=Wire[Any])

_TOKEN_FILE_BYTES_MAX = 1 << 20
"""Far above any token."""


class Link(Generic[Q, A]):
    """A session, and the loop it lives in."""

    def __init__(self, endpoint: Endpoint, machine: Session[Q, A, Any]) -> None:
        self.endpoint = endpoint
        self._machine = machine
        self._failed: AnabranchError | None = None
        """The first error of an append that nobody was waiting for."""
        self._clock = Clock()
        self._loop = asyncio.get_running_loop()
        self._tls = None if endpoint.tls is None else trusting(endpoint.tls)
        self._wires: dict[int, Wire[A]] = {}
        self._dialing: dict[int, asyncio.Task[None]] = {}
        self._hints: dict[int, tuple[str, Hint]] = {}
        """For each dialed line, its address and where others have met that server."""
        self._timer: asyncio.TimerHandle | None = None
        self._out: dict[int, list[Buffer]] = {}
        self._turn = 0
        self._written = False
        self._rooms: list[Waiter] = []
        self._quiets: list[Waiter] = []

    def start(self) -> None:
        self._perform(self._machine.start(self._clock.now()))

    def close(self) -> None:
        """Whatever still waits gets an error."""
        self.step(Ended())
        for each in self._dialing.values():
            each.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def step(self, event: Event[A]) -> None:
        self._perform(self._machine.step(self._clock.now(), event))

    def flush(self) -> None:
        """Send at once what producers were given."""
        self._written = False
        self.step(Written())

    def written(self) -> None:
        """Producers were given records; they are sent together at the end of this turn."""
        if not self._written:
            self._written = True
            self._loop.call_soon(self.flush)

    def put(self, call: Call[Q, A, Any]) -> None:
        """Ask without waiting."""
        self.step(Asked(call))

    def drop(self, call: Call[Q, A, Any]) -> None:
        """Nobody wants the answer any more, if it isn't there yet."""
        if not call.finished:
            self.step(Dropped(call))

    async def answered(self, call: Call[Q, A, Any], answer: type[T]) -> T:
        """Wait for the answer of a call that was put."""
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

    def unheeded(self, error: AnabranchError) -> None:
        """Nobody has seen yet why this append failed; keep the first such error for `flush`."""
        self._failed = self._failed or error

    def heeded(self, error: AnabranchError) -> None:
        if self._failed is error:
            self._failed = None

    def raise_unheeded(self) -> None:
        """The first error of an append that nobody awaited."""
        error, self._failed = self._failed, None
        if error is not None:
            raise error

    def open(self, subscription: Subscription) -> None:
        self.step(Opened(subscription))

    def taken(self, subscription: Subscription, size: int = 0) -> None:
        self.step(Taken(subscription, size))

    def leave(self, subscription: Subscription) -> None:
        self.step(Left(subscription))
        wake(subscription.waiter)

    async def arrival(self, subscription: Subscription, ready: Callable[[], bool]) -> None:
        """Wait until there is something to take; raises why nothing more comes."""
        while not ready():
            if subscription.error is not None:
                raise subscription.error
            waiter: Waiter = self._loop.create_future()
            subscription.waiter = waiter
            await waiter

    def now_ms(self) -> Milliseconds:
        """Since 1970, as records that say nothing else are stamped."""
        return self._clock.now() // MS

    def milliseconds(self, timeout: float | None) -> Milliseconds:
        """Of a timeout in seconds, or of the settings."""
        return arguments.milliseconds(timeout, self._machine.settings.timeout_ms)

    async def settled(self, pledge: Promise[Any]) -> None:
        """Any number may wait for one pledge, and any of them may leave."""
        if pledge.outcome is None:
            waiter = self._loop.create_future()
            pledge.waiters.append(waiter)
            await waiter

    async def room(self, timeout_ms: Milliseconds) -> bool:
        """Wait until appends that were refused as Overloaded may be tried again; False if in
        vain.
        """
        waiter: Waiter = self._loop.create_future()
        self._rooms.append(waiter)
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                await waiter
        except TimeoutError:
            return False
        return True

    async def quiet(self) -> None:
        """Wait until no append is pending; each has its deadline."""
        while self._machine.pending_bytes:
            waiter: Waiter = self._loop.create_future()
            self._quiets.append(waiter)
            await waiter

    def wire(self, line: int) -> Wire[A]:
        """For one connection of this line; benchmarks make one of another kind."""
        return self.wire_of(Wire[A], line)

    def wire_of(self, kind: type[W], line: int) -> W:
        """A wire that reports to this link."""
        tls_scheme = self.endpoint.tls_scheme if self.endpoint.tls is None else None
        return kind(self._machine.codec(line).replies(), self._heard, self._lost, tls_scheme)

    def _perform(self, effects: list[Effect[Q]]) -> None:
        for effect in effects:
            match effect:
                case Transmit(request, message, line):
                    out = self._out.setdefault(line, [])
                    out.extend(self._machine.codec(line).encode_request(request, message))
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

    def _settle(self, pledge: Promise[Any]) -> None:
        if isinstance(pledge.outcome, AnabranchError) and not pledge.waiters:
            self.unheeded(pledge.outcome)
        for waiter in pledge.waiters:
            wake(waiter)
        pledge.waiters.clear()
        if not self._machine.pending_bytes:
            wake_all(self._quiets)

    def _send(self) -> None:
        out, self._out = self._out, {}
        for line, buffers in out.items():
            wire = self._wires.get(line)
            if wire is not None:
                wire.send(buffers)

    def _heard(self, wire: Wire[A], replies: Replies[A]) -> None:
        line = self._line_of(wire)
        if line is not None:
            self.step(Heard(replies, line))
            if self._dialing:
                self._hint_all()

    def _lost(self, wire: Wire[A], reason: str) -> None:
        line = self._line_of(wire)
        if line is not None:
            del self._wires[line]
            self.step(Disconnected(reason, line))

    def _line_of(self, wire: Wire[A]) -> int | None:
        """A wire is dead to the link once its line has another, or none."""
        return wire.line if self._wires.get(wire.line) is wire else None

    def _set_timer(self, at: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, at - self._clock.now()) / 1e9
        self._timer = self._loop.call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self.step(TimerFired(Alarms.KEY))

    def _hint_all(self) -> None:
        """What is heard of a server while it is being dialed counts at once."""
        for where, hint in self._hints.values():
            host = self._machine.host_of(where)
            if host != hint.host:
                hint.met(host)

    async def _dial(self, line: int, where: str) -> None:
        hint = Hint(self._machine.host_of(where))
        self._hints[line] = where, hint
        shown = f"{self.endpoint.scheme}://{where}"
        try:
            if where.startswith(WITHIN):
                service = self._next_of_service()
                shown = f"{self.endpoint.scheme}://{service}{where}"
            else:
                service = address(where)
            host, port = service
            token = await self._token()
            context = None if self._tls is None else self._tls.current()
            checked = (self.endpoint.server_name or host) if context else None
            async with asyncio.timeout(CONNECT_S):
                sock = await reach(host, port, hint)
                _, wire = await self._loop.create_connection(
                    partial(self.wire, line), sock=sock, ssl=context, server_hostname=checked
                )
        except TimeoutError:
            failure = f"{shown} did not answer within {CONNECT_S:g} s"
        except ssl.SSLError as error:
            failure = f"{shown} can't be reached: {untrusted(error, self.endpoint.plain_scheme)}"
        except (OSError, UnicodeError, BadRequest) as error:
            failure = f"{shown} can't be reached: {_reason(error)}"
        else:
            if not wire.closing:
                self._dialed(line)
                wire.line = line
                self._wires[line] = wire
                self.step(Connected(line, token))
                return
            failure = f"{shown} closed the connection at once"
        self._dialed(line)
        self.step(Disconnected(failure, line))

    def _dialed(self, line: int) -> None:
        self._dialing.pop(line, None)
        self._hints.pop(line, None)

    def _next_of_service(self) -> Address:
        """Where the service itself listens; of several brokers, each in its turn."""
        self._turn += 1
        return self.endpoint.addresses[self._turn % len(self.endpoint.addresses)]

    async def _token(self) -> str | None:
        """What the file holds now: it may be renewed at any time."""
        file = self.endpoint.token_file
        if not file:
            return None
        try:
            return (await asyncio.to_thread(_begin_of, file)).decode().strip()
        except (OSError, ValueError) as error:
            raise BadRequest(f"the token file {file}", str(error)) from None

    def _hang_up(self, line: int) -> None:
        self._out.pop(line, None)
        self._hints.pop(line, None)
        task = self._dialing.pop(line, None)
        if task is not None:
            task.cancel()
        wire = self._wires.pop(line, None)
        if wire is not None:
            wire.abort()


def _begin_of(file: str) -> bytes:
    """A whole token, but not all of a device that never ends; ValueError if there is more."""
    with Path(file).open("rb") as opened:
        found = opened.read(_TOKEN_FILE_BYTES_MAX + 1)
    if len(found) > _TOKEN_FILE_BYTES_MAX:
        raise ValueError(f"it is larger than {_TOKEN_FILE_BYTES_MAX} bytes")
    return found


def _reason(error: Exception) -> str:
    """In the system's words: `Connection refused`, not which call of Python's failed."""
    if isinstance(error, OSError) and error.errno and error.strerror:
        return os.strerror(error.errno) if error.errno > 0 else error.strerror
    return str(error)
