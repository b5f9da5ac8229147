"""The client as a machine: whatever it decides is decided here, and a driver moves bytes and keeps
time.

A driver
1. makes one `Session(settings, randbits, addresses)` and gives it `start(now)`, then one event at a
   time with `step(now, event)`; both return effects, to be performed in the order given (see
   effects.py);
2. answers every Dial with one Connected or Disconnected of the same line. A connection carries
   frames in order, each once, until it breaks: then nothing more comes of it. After HangUp nothing
   of it is reported;
3. keeps one timer: SetTimer moves it, TimerFired says that it was due;
4. appends with `session.producer(log, name).add(record, timeout_ms)` (or `add_batch`), which
   returns the Pledge whose last record it is, or raises what makes it impossible. Then, once after
   any number of these, it gives Written. Settled tells when `pledge.outcome` is there;
5. asks with Asked(Call(...)), whose `answer` or `error` is there when Answered comes;
6. subscribes with Opened(Subscription(...)); at each Arrived it takes what it likes off `news`, and
   gives Taken with the bytes that this had. `error` ends it, once `news` is empty.

Where the service is one process, there is one line to it. Where it is a pool of brokers, there is
one to each broker that is used, and whatever is about a log goes to the one that serves it. If that
one can't be reached, goes silent or is about to end, its part is taken at once by any other that is
there, for all of them can: moving is reconnecting elsewhere.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from anabranch.client.bolt.producer import Producer
from anabranch.client.session.conversation import Conversation
from anabranch.client.session.effects import (
    Asked,
    Connected,
    Disconnected,
    Dropped,
    Effect,
    Ended,
    Event,
    Heard,
    Left,
    Opened,
    Taken,
    Written,
)
from anabranch.client.session.line import Commons, Line, Part, RandomBits
from anabranch.client.session.routes import Inquiry, Routes
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarm
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import (
    Describe,
    ListBrokers,
    ServerMessage,
    Welcome,
)
from anabranch.core.bolt.protocol.queries import Pool
from anabranch.core.errors import AnabranchError, BadRequest, Unavailable
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.producers import REMEMBERED
from anabranch.core.types import LogId, Nanoseconds

PRODUCERS_KEPT_MAX = 4_096
"""Logs that were appended to and whose sequence is continued when they are again."""

_START_BITS = 16


class Session:
    """One client's conversations with one service, over as many connections as it takes."""

    def __init__(
        self, settings: Settings, randbits: RandomBits, addresses: Sequence[str] = ("",)
    ) -> None:
        """`addresses`: of some of the brokers; the others are learned from them."""
        if not 1 <= settings.batches_in_flight_max <= REMEMBERED:
            raise BadRequest("batches_in_flight_max", f"it must be from 1 to {REMEMBERED}")
        self.settings = settings
        self.ended: AnabranchError | None = None
        """Why nothing can be asked any more."""
        self.welcome: Welcome | None = None
        """What a server said of itself, last."""
        self._commons = Commons(settings, randbits, self)
        self._producers: dict[LogId, Producer] = {}
        first = randbits(_START_BITS) % len(addresses) if len(addresses) > 1 else 0
        turned = (*addresses[first:], *addresses[:first])
        self._routes = Routes(turned, settings.route_ms)
        self._commons.spread = self._routes.spread
        self._lines: list[Conversation] = []
        self._known: dict[str, Conversation] = {}
        self._home = self._conversation(turned[0])
        """Who is asked what concerns no broker in particular."""
        self._hedge: Alarm | None = None

    @property
    def pending_bytes(self) -> int:
        """Appends that are held until they are acknowledged."""
        return self._commons.pending_bytes

    @property
    def brokers_up(self) -> int:
        """How many of them are there, as far as is known."""
        return sum(each.line.up for each in self._lines)

    @property
    def let_in(self) -> bool:
        return self.welcome is not None

    @property
    def trouble(self) -> str:
        """Why no broker is."""
        return self._commons.trouble

    def start(self, now: Nanoseconds) -> list[Effect]:
        self._commons.alarms.now = now
        self._seek()
        return self._turn()

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

    def check_record(self, size: int) -> None:
        """Raises if no server takes a record of so many bytes."""
        self._commons.check_record(size)

    def check_batch(self, size: int, count: int) -> None:
        """Raises if no server takes a batch of so many bytes and records."""
        self._commons.check_batch(size, count)

    def step(self, now: Nanoseconds, event: Event) -> list[Effect]:
        self._commons.alarms.now = now
        match event:
            case Heard(replies, line):
                self._lines[line].hear(replies)
            case Written():
                pass
            case TimerFired():
                self._commons.alarms.ring()
            case Asked(part) | Opened(part):
                self._use(part.log)
                part.begin(self._commons)
                if self.ended:
                    part.close(self.ended)
            case Dropped(call):
                call.drop()
            case Taken(subscription, size):
                self._use(subscription.log)
                subscription.taken(size)
            case Left(subscription):
                subscription.leave()
            case Connected(line, token):
                self._lines[line].connected(token)
            case Disconnected(reason, line):
                self._lines[line].broken(reason)
            case Ended():
                self._end(Unavailable("this client", "it was closed"))
            case _:
                assert_never(event)
        return self._turn()

    def guard(self, scope: str, epoch: int) -> None:
        """Of what is asked from now on; what was asked before keeps the epoch it had."""
        self.settings = self._commons.settings = replace(self.settings, guard=(scope, epoch))

    def place(self, log: LogId | None) -> Line:
        """The line to the broker that serves it, or else to one that is there."""
        if log is not None and self._routes.spread:
            address = self._routes.address(log)
            if address:
                routed = self._conversation(address)
                if routed.line.up:
                    return routed.line
                routed.dial()
        if not self._home.line.up:
            there = (each for each in self._lines if each.line.up)
            self._home = next(there, self._home)
        return self._home.line

    def learn(self, told: Description | Pool) -> None:
        if isinstance(told, Pool):
            self._routes.joined(told.brokers, self._commons.now, self.settings.backoff_ms_max)
        else:
            self._learn_route(told)

    def wants(self, conversation: Conversation) -> bool:
        """Whoever is placed there goes there when it is back, and nobody else needs it."""
        if not self.brokers_up:
            return True
        routes = self._routes
        return any(
            part.log is not None and routes.address(part.log) == conversation.address
            for part in self._commons.parts.values()
        )

    def mistaken(self, conversation: Conversation, welcome: Welcome) -> str | None:
        before = self.welcome
        if before is None or before.cluster == welcome.cluster or not self.brokers_up:
            return None
        address = conversation.address
        return f"{address} belongs to cluster {welcome.cluster}, not to {before.cluster}"

    def rose(self, conversation: Conversation, welcome: Welcome) -> None:
        self.welcome = welcome
        self._commons.opened(welcome)
        for part in list(self._commons.parts.values()):
            if part.line is conversation.line:
                part.ready()
            else:
                self._put(part)
            self._use(part.log)

    def fell(self, conversation: Conversation, *, was_up: bool) -> None:
        """Those who were there go on elsewhere, if anybody else is there, and ask where to stay."""
        line, address = conversation.line, conversation.address
        parts = list(self._commons.parts.values())
        if was_up:
            for part in parts:
                if part.line is line:
                    part.lost()
        if was_up or conversation.failures == 1:
            self._routes.hasten(address, self._commons.now)
        self._seek()
        for part in parts:
            if part.line is line:
                self._put(part)
                self._use(part.log)
            elif part.log is not None and self._routes.address(part.log) == address:
                self._use(part.log)

    def rejected(self, conversation: Conversation, error: AnabranchError) -> None:
        """One broker that won't have us doesn't matter while another will."""
        if self.brokers_up:
            conversation.hang_up(error.message)
        else:
            self._end(error)

    def _conversation(self, address: str) -> Conversation:
        found = self._known.get(address)
        if found is None:
            found = Conversation(self._commons, len(self._lines), address, self)
            self._known[address] = found
            self._lines.append(found)
        return found

    def _seek(self) -> None:
        """Nobody is there: dial the next, and soon one more, until somebody says welcome."""
        if self._hedge is not None:
            self._hedge.cancel()
            self._hedge = None
        if self.brokers_up:
            return
        conversations = [self._conversation(address) for address in self._routes.addresses]
        resting = [each for each in conversations if each.resting]
        if resting:
            resting[0].dial()
        if len(resting) > 1:
            self._hedge = self._commons.alarms.after(self.settings.hedge_ms, self._seek)

    def _learn_route(self, description: Description) -> None:
        address = description.address
        known = self._known.get(address)
        # Where it is placed nobody was met: it may be placed anew soon.
        fails = known is not None and known.failures
        again_ms = self.settings.backoff_ms_max if fails else self.settings.route_ms
        moved = self._routes.learn(description, self._commons.now, again_ms)
        self._commons.spread = self._routes.spread
        if moved:
            for part in list(self._commons.parts.values()):
                if part.log == description.id:
                    self._put(part)

    def _put(self, part: Part) -> None:
        line = self.place(part.log)
        if line is not part.line:
            part.move(line)

    def _use(self, log: LogId | None) -> None:
        """Look up what is old: where this log is served, and who the brokers are."""
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

    def _turn(self) -> list[Effect]:
        commons = self._commons
        while commons.restless:
            commons.restless, restless = [], commons.restless
            for producer in restless:
                if commons.spread:
                    self._use(producer.log)
                producer.pump()
        commons.effects, effects = [], commons.effects
        for timing in commons.timing:
            assert isinstance(timing, SetTimer), "alarms set timers and do nothing else"
            effects.append(timing)
        commons.timing.clear()
        return effects

    def _retire_one(self) -> None:
        for log, producer in self._producers.items():
            if producer.idle:
                del self._producers[log]
                return

    def _end(self, error: AnabranchError) -> None:
        if self.ended:
            return
        self.ended = error
        for conversation in self._lines:
            conversation.line.up = False
        for part in list(self._commons.parts.values()):
            part.close(error)
        self._producers.clear()
        if self._hedge is not None:
            self._hedge.cancel()
        for conversation in self._lines:
            conversation.end()
