"""The asyncio driver of a Belfast session: it moves bytes and keeps time, and decides nothing."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from functools import partial
from pathlib import Path
from typing import TypeVar

from anabranch.client.belfast.appends import Pledge
from anabranch.client.belfast.call import Call
from anabranch.client.belfast.connection import ClientLine
from anabranch.client.belfast.effects import (
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
from anabranch.client.belfast.endpoint import BelfastEndpoint
from anabranch.client.belfast.session import Session
from anabranch.client.belfast.settings import Settings
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.session import arguments
from anabranch.client.session.waiters import Waiter, wake, wake_all
from anabranch.core.alarms import Alarms
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION, Hello, ToClient, ToServer
from anabranch.core.errors import AnabranchError, BadFrame, BadRequest
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.types import Milliseconds
from anabranch.shell.net.connect import Hint
from anabranch.shell.net.tls import trusting
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.randomness import randbits

A = TypeVar("A")


class Link:
    """A session, and the loop it lives in."""

    def __init__(self, endpoint: BelfastEndpoint, settings: Settings, delay_us: int = 0) -> None:
        """`delay_us`: what the way to a node takes beyond what it does, for benchmarks."""
        self.endpoint = endpoint
        self.session = Session(endpoint.cluster, settings, randbits, endpoint.nodes)
        self._delay_us = delay_us
        self._failed: AnabranchError | None = None
        """The first error of an append that nobody was waiting for."""
        self._clock = Clock()
        self._loop = asyncio.get_running_loop()
        self._tls = None if endpoint.tls is None else trusting(endpoint.tls)
        self._lines: dict[str, ClientLine] = {}
        self._dialing: dict[str, asyncio.Task[None]] = {}
        self._hints: dict[str, Hint] = {}
        """Where nodes that are being dialed were met last."""
        self._timer: asyncio.TimerHandle | None = None
        self._heard: dict[str, list[tuple[int, ToClient]]] = {}
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

    def written(self) -> None:
        """Appends were added; they are sent together at the end of this turn."""
        if not self._written:
            self._written = True
            self._loop.call_soon(self._flush)

    async def ask(self, message: ToServer, answer: type[A], what: str, timeout: float | None) -> A:
        call = Call(message, what, self.milliseconds(timeout))
        self.step(Asked(call))
        if not call.finished:
            call.waiter = self._loop.create_future()
            try:
                await call.waiter
            except asyncio.CancelledError:
                self.step(Dropped(call))
                raise
        if call.error is not None:
            raise call.error
        if not isinstance(call.answer, answer):
            raise BadFrame(f"{type(call.answer).__name__} came where {answer.__name__} was asked")
        return call.answer

    def milliseconds(self, timeout: float | None) -> Milliseconds:
        """Of a timeout in seconds, or of the settings."""
        return arguments.milliseconds(timeout, self.session.settings.timeout_ms)

    def open(self, subscriber: Subscriber) -> None:
        self.step(Opened(subscriber))

    def taken(self, subscriber: Subscriber) -> None:
        self.step(Taken(subscriber))

    def leave(self, subscriber: Subscriber) -> None:
        self.step(Left(subscriber))
        wake(subscriber.waiter)

    async def arrival(self, subscriber: Subscriber, *, records: bool) -> None:
        """Wait until there is something to take; raises why there will be nothing any more."""
        while not subscriber.ready(records=records):
            if subscriber.error is not None:
                raise subscriber.error
            subscriber.waiter = self._loop.create_future()
            await subscriber.waiter

    def heeded(self, error: AnabranchError) -> None:
        if self._failed is error:
            self._failed = None

    def raise_unheeded(self) -> None:
        """The first error of an append that nobody awaited."""
        error, self._failed = self._failed, None
        if error is not None:
            raise error

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
        while self.session.pending_bytes:
            waiter: Waiter = self._loop.create_future()
            self._quiets.append(waiter)
            await waiter

    def _flush(self) -> None:
        self._written = False
        self.step(Written())

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(node, request, message):
                    line = self._lines.get(node)
                    if line is not None:
                        line.send(request, message)
                case Settled(pledge):
                    self._settle(pledge)
                case Answered(each) | Arrived(each):
                    wake(each.waiter)
                case Roomy():
                    wake_all(self._rooms)
                case SetTimer(_, at):
                    self._set_timer(at)
                case Dial(node):
                    self._dialing[node] = self._loop.create_task(self._dial(node))
                case HangUp(node):
                    self._hang_up(node)

    def _settle(self, pledge: Pledge) -> None:
        if isinstance(pledge.outcome, AnabranchError) and not pledge.waiters:
            self._failed = self._failed or pledge.outcome
        for waiter in pledge.waiters:
            wake(waiter)
        pledge.waiters.clear()
        if not self.session.pending_bytes:
            wake_all(self._quiets)

    def _set_timer(self, at: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, at - self._clock.now()) / 1e9
        self._timer = self._loop.call_later(delay_s, self.step, TimerFired(Alarms.KEY))

    def _hear(self, node: str, request: int, message: ToClient) -> None:
        """What comes in one turn of the loop is one step."""
        heard = self._heard.setdefault(node, [])
        if not heard:
            self._loop.call_soon(self._listen, node)
        heard.append((request, message))

    def _listen(self, node: str) -> None:
        heard = self._heard.pop(node, None)
        if heard and node in self._lines:
            self.step(Heard(node, heard))
            for dialed in self._hints.keys() & self._dialing.keys():
                self._hint(dialed)

    def _lost(self, node: str, reason: str) -> None:
        self._listen(node)
        if self._lines.pop(node, None) is not None:
            self.step(Disconnected(node, reason))

    def _hint(self, node: str) -> Hint:
        """What is heard of a node while it is being dialed counts at once."""
        hint = self._hints.setdefault(node, Hint())
        host = self.session.whereabouts.hosts.get(node, "")
        if host != hint.host:
            hint.met(host)
        return hint

    async def _dial(self, node: str) -> None:
        refusal: AnabranchError | None = None
        endpoint = self.endpoint.at
        try:
            token = await self._token()
            settings = self.session.settings
            shown = token or settings.token
            line = await ClientLine.dialed(
                node,
                Hello(BELFAST_VERSION, self.endpoint.cluster, settings.client, shown),
                heard=partial(self._hear, node),
                lost=partial(self._lost, node),
                tls=None if self._tls is None else self._tls.current(),
                server_name=endpoint.server_name,
                hint=self._hint(node),
                delay_us=self._delay_us,
            )
        except AnabranchError as error:
            reason, refusal = error.message, error
        else:
            self._dialing.pop(node, None)
            self._lines[node] = line
            self.step(Connected(node, line.welcome))
            return
        self._dialing.pop(node, None)
        self.step(Disconnected(node, reason, refusal))

    async def _token(self) -> str | None:
        """What the file holds now: whoever renews it needn't tell us."""
        file = self.endpoint.at.token_file
        if not file:
            return None
        try:
            return (await asyncio.to_thread(Path(file).read_text, "utf-8")).strip()
        except (OSError, ValueError) as error:
            raise BadRequest(f"the token file {file}", str(error)) from None

    def _hang_up(self, node: str) -> None:
        self._heard.pop(node, None)
        task = self._dialing.pop(node, None)
        if task is not None:
            task.cancel()
        line = self._lines.pop(node, None)
        if line is not None:
            line.close()
