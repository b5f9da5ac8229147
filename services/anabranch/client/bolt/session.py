"""Bolt's session: where the service is one process, there is one line to it.

Where it is a pool of brokers, there is one to each broker that is used, and whatever is about a log
goes to the one that serves it. If that one can't be reached, goes silent or is about to stop, its
part is taken at once by any other that is there, for all of them can: moving is reconnecting
elsewhere. Appends go through `session.producer(log, name)`.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.dialect import DIALECT
from anabranch.client.bolt.producer import Producer
from anabranch.client.bolt.routes import Inquiry, Routes
from anabranch.client.bolt.routing import BrokerLine, Restless, Routing
from anabranch.client.bolt.subscription import Subscription
from anabranch.client.session import effects, session
from anabranch.client.session.commons import RandomBits
from anabranch.client.session.dialect import Greeting
from anabranch.client.session.parts import HasLog
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarm
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import (
    ClientMessage,
    Describe,
    ListBrokers,
    ServerMessage,
)
from anabranch.core.bolt.protocol.queries import Pool
from anabranch.core.errors import AnabranchError
from anabranch.core.types import LogId, Milliseconds

Effect = effects.Effect[ClientMessage]
Event = effects.Event[ServerMessage]

PRODUCERS_KEPT_MAX = 4_096
"""Logs that were appended to and whose sequence is continued when they are again."""

_START_BITS = 16


class Session(session.Session[ClientMessage, ServerMessage, Routing]):
    """One client's conversations with one service."""

    def __init__(
        self, settings: Settings, randbits: RandomBits, addresses: Sequence[str] = ("",)
    ) -> None:
        """`addresses`: of some of the brokers; the others are learned from them."""
        super().__init__(DIALECT, settings, randbits)
        self._commons.router = self
        self.restless: list[Restless] = []
        self._producers: dict[LogId, Producer] = {}
        first = randbits(_START_BITS) % len(addresses) if len(addresses) > 1 else 0
        turned = (*addresses[first:], *addresses[:first])
        self._routes = Routes(turned, settings.route_ms)
        self._home = self.line(turned[0])
        """The line for what concerns no broker in particular."""
        self._hedge: Alarm | None = None

    @property
    def spread(self) -> bool:
        return self._routes.spread

    def producer(self, log: LogId, name: str) -> Producer:
        """The one through which everything is appended to this log."""
        producer = self._producers.get(log)
        if producer is None:
            if self.ended:
                raise self.ended
            if len(self._producers) >= PRODUCERS_KEPT_MAX:
                self._retire_one()
            producer = self._producers[log] = Producer(self._commons, log, name)
        return producer

    def guard(self, scope: str, epoch: int) -> None:
        """Guard what is asked from now on; what was asked before keeps the epoch it had."""
        self.settings = self._commons.settings = replace(self.settings, guard=(scope, epoch))

    def place(self, log: LogId | None) -> BrokerLine:
        """The line to the broker that serves it, or else to one that is there."""
        if log is not None and self._routes.spread:
            address = self._routes.address(log)
            if address:
                routed = self.line(address)
                if routed.up:
                    return routed
                routed.dial()
        if not self._home.up:
            there = (each for each in self._lines if each.up)
            self._home = next(there, self._home)
        return self._home

    def learn(self, told: Description | Pool) -> None:
        if isinstance(told, Pool):
            self._routes.joined(told.brokers, self._commons.now, self.settings.backoff_ms_max)
        else:
            self._learn_route(told)

    def wants(self, line: BrokerLine) -> bool:
        """Dial again for parts that are placed there, or if there is no other broker."""
        if not self.servers_up:
            return True
        routes = self._routes
        return any(
            part.log is not None and routes.address(part.log) == line.address
            for part in self._parts
        )

    def back_off(self, line: BrokerLine) -> Milliseconds | None:
        return self._commons.pause(line.failures)

    def mistaken(self, line: BrokerLine, greeting: Greeting) -> str | None:
        before = self.welcome
        if before is None or before.cluster == greeting.cluster or not self.servers_up:
            return None
        return f"{line.address} belongs to cluster {greeting.cluster}, not to {before.cluster}"

    def rose(self, line: BrokerLine, greeting: Greeting) -> None:
        super().rose(line, greeting)
        for part in self._parts:
            if part.line is line:
                part.ready()
            else:
                self._put(part)
            self._use(part.log)

    def fell(self, line: BrokerLine, *, was_up: bool) -> None:
        """Parts that were there go on elsewhere, if another broker is there, and ask where to
        stay.
        """
        address, parts = line.address, self._parts
        if was_up:
            for part in parts:
                if part.line is line:
                    part.lost(sent=True)
        if was_up or line.failures == 1:
            self._routes.hasten(address, self._commons.now)
        self._seek()
        for part in parts:
            if part.line is line:
                self._put(part)
                self._use(part.log)
            elif part.log is not None and self._routes.address(part.log) == address:
                self._use(part.log)

    def rejected(self, line: BrokerLine, error: AnabranchError) -> None:
        """One broker that doesn't let us in doesn't matter while another does."""
        if self.servers_up:
            line.hang_up(error.message)
        else:
            self._end(error)

    @property
    def _parts(self) -> list[Call | Producer | Subscription]:
        kinds = (Call, Producer, Subscription)
        return [part for part in self._commons.parts.values() if isinstance(part, kinds)]

    def _start(self) -> None:
        self._seek()

    def _seek(self) -> None:
        """While no broker is there: dial the next, and soon one more, until one says welcome."""
        if self._hedge is not None:
            self._hedge.cancel()
            self._hedge = None
        if self.servers_up:
            return
        lines = [self.line(address) for address in self._routes.addresses]
        resting = [each for each in lines if each.resting]
        if resting:
            resting[0].dial()
        if len(resting) > 1:
            self._hedge = self._commons.alarms.after(self.settings.hedge_ms, self._seek)

    def _learn_route(self, description: Description) -> None:
        address = description.address
        known = self._known.get(address)
        # A broker that can't be reached where the log is placed: it may be placed anew soon.
        fails = known is not None and known.failures
        again_ms = self.settings.backoff_ms_max if fails else self.settings.route_ms
        if self._routes.learn(description, self._commons.now, again_ms):
            for part in self._parts:
                if part.log == description.id:
                    self._put(part)

    def _put(self, part: Call | Producer | Subscription) -> None:
        line = self.place(part.log)
        if line is not part.line:
            part.move(line)

    def _used(self, part: HasLog) -> None:
        self._use(part.log)

    def _use(self, log: LogId | None) -> None:
        """Look up what is old: where this log is served, and which brokers there are."""
        routes = self._routes
        if not routes.spread:
            return
        line = self.place(None)
        if not line.up:
            return
        now, again_ms = self._commons.now, self.settings.backoff_ms_max
        if log is not None and routes.look_up(log, now, again_ms):
            Inquiry(line, Describe(log), self._told)
        if routes.look_up_pool(now, again_ms):
            Inquiry(line, ListBrokers(), self._told)

    def _told(self, message: ServerMessage) -> None:
        if isinstance(message, Description | Pool):
            self.learn(message)

    def _pump(self) -> None:
        while self.restless:
            self.restless, restless = [], self.restless
            for producer in restless:
                if self._routes.spread:
                    self._use(producer.log)
                producer.pump()

    def _retire_one(self) -> None:
        for log, producer in self._producers.items():
            if producer.idle:
                del self._producers[log]
                return

    def _close(self, error: AnabranchError) -> None:
        self._producers.clear()
        if self._hedge is not None:
            self._hedge.cancel()
