"""A client's session on simulated connections: what a driver does for it, whatever the engine."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.client.session.effects import (
    Answered,
    Arrived,
    Connected,
    Dial,
    Disconnected,
    Effect,
    Event,
    HangUp,
    Heard,
    Roomy,
    Settled,
    Transmit,
)
from anabranch.client.session.parts import Subscription
from anabranch.client.session.pledge import Promise
from anabranch.client.session.session import Session
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.connection import Connection, Replies
from anabranch_sim.world.deployment import Deployment
from anabranch_sim.world.node import EPOCH, Node


class SessionDriver:
    """As `client/session/session.py` demands of a driver. Engines derive their clients from it."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.world = deployment.world
        self.name = name
        self._network = deployment.network
        self._driven: Session[Any, Any, Any]
        self._connections: dict[int, Connection] = {}
        """By the number of the line, as are the dials."""
        self._dials: dict[int, int] = {}
        self._timers = 0

    def find(self, address: str) -> Node | None:
        """The node that listens there, if any does."""
        raise NotImplementedError

    def on_settled(self, pledge: Promise[Any]) -> None:
        """The outcome of a batch of appends is known."""
        raise NotImplementedError

    def on_arrived(self, subscription: Subscription) -> None:
        """A subscription has something to take, or has ended."""
        raise NotImplementedError

    def drive(self, session: Session[Any, Any, Any]) -> None:
        """Start it."""
        self._driven = session
        self._perform(session.start(self._now()))

    def step(self, event: Event[Any]) -> None:
        self._perform(self._driven.step(self._now(), event))

    def reset(self, reason: str) -> None:
        """The network breaks one of its connections."""
        if self._connections:
            self.world.rng.choice(list(self._connections.values())).broken(reason)

    def _now(self) -> Nanoseconds:
        return EPOCH + self.world.now

    def _perform(self, effects: list[Effect[Any]]) -> None:
        for effect in effects:
            match effect:
                case Transmit(request, message, line):
                    connection = self._connections.get(line)
                    if connection is not None and connection.open:
                        connection.transmit(request, message)
                case Dial(line, address):
                    dial = self._dials[line] = self._dials.get(line, 0) + 1
                    delay = self.world.between(MS // 100, 2 * MS)
                    self.world.after(delay, partial(self._dial, line, dial, address))
                case HangUp(line):
                    self._dials[line] = self._dials.get(line, 0) + 1
                    if line in self._connections:
                        self._connections.pop(line).hang_up()
                case SetTimer(_, at):
                    self._timers += 1
                    self.world.late(at - EPOCH, partial(self._fire, self._timers))
                case Answered(call):
                    assert callable(call.waiter)
                    call.waiter(call)
                case Settled(pledge):
                    self.on_settled(pledge)
                case Arrived(subscription):
                    self.on_arrived(subscription)
                case Roomy():
                    pass

    def _dial(self, line: int, dial: int, address: str) -> None:
        if dial != self._dials[line]:
            return
        node = self.find(address)
        if node is None or not node.alive:
            self.step(Disconnected(f"{address} is down", line))
            return
        self._connections[line] = connection = Connection(
            self._network,
            self.name,
            node,
            self._if_current(line, dial, partial(self._heard, line)),
            self._if_current(line, dial, partial(self._broken, line)),
        )
        connected = partial(self.step, Connected(line))
        connection.connect(self._if_current(line, dial, connected))

    def _if_current(self, line: int, dial: int, action: Callable[..., None]) -> Callable[..., None]:
        """Nothing is reported of a connection that was hung up."""

        def report(*news: object) -> None:
            if self._dials[line] == dial:
                action(*news)

        return report

    def _heard(self, line: int, replies: Replies) -> None:
        if self.world.tracing:
            self.world.note(self.name, "receives", replies)
        self.step(Heard(replies, line))

    def _broken(self, line: int, reason: str) -> None:
        self._connections.pop(line, None)
        self.step(Disconnected(reason, line))

    def _fire(self, timer: int) -> None:
        if timer == self._timers:
            self.step(TimerFired("wake"))
