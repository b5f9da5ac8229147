"""A client's machine on a table: its clock, connection and server do only what a test says."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.session import Effect, Event, Session
from anabranch.client.bolt.subscription import Subscription
from anabranch.client.session.effects import (
    Answered,
    Arrived,
    Asked,
    Connected,
    Dial,
    Disconnected,
    HangUp,
    Heard,
    Opened,
    Roomy,
    Settled,
    Transmit,
    Written,
)
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    Append,
    Appended,
    ClientMessage,
    Hello,
    Ping,
    ServerMessage,
    Survey,
    Welcome,
)
from anabranch.core.bolt.protocol.queries import Census
from anabranch.core.errors import AnabranchError, SequenceGap
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer, SetTimer, TimerFired
from anabranch.core.records.batch import verify
from anabranch.core.records.record import Record, decode
from anabranch.core.types import MS, LogId, Nanoseconds
from anabranch.core.wire.session import Cancel

WELCOME = Welcome(PROTOCOL_VERSION, "c", "s", 1_000, 10_000, 100)
LOG = LogId(1)
BEGIN: Nanoseconds = 1_000_000 * MS

Answer = ServerMessage | AnabranchError


@dataclass
class ModelLog:
    """A log as the state machine keeps it: values, and what it remembers of producers (spec D4)."""

    values: list[bytes | None] = field(default_factory=list[bytes | None])
    producers: dict[int, tuple[int, int, dict[int, int]]] = field(
        default_factory=dict[int, tuple[int, int, dict[int, int]]]
    )

    def append(self, batch: Buffer) -> Appended | SequenceGap:
        header = verify(batch, "")
        producer, sequence = header.producer_id, header.base_sequence
        epoch, expected, places = self.producers.get(producer, (-1, 0, {}))
        if header.producer_epoch > epoch:
            if sequence:
                return SequenceGap("log", producer, 0, sequence)
            epoch, expected, places = header.producer_epoch, 0, {}
        if header.producer_epoch == epoch and sequence in places:
            return Appended(places[sequence])
        if header.producer_epoch < epoch or sequence != expected:
            return SequenceGap("log", producer, expected, sequence)
        places = {**places, sequence: len(self.values)}
        self.producers[producer] = (epoch, expected + header.count, places)
        self.values += [record.value for record in decode(batch)]
        return Appended(places[sequence])


class World:
    """Holds what the session asked for until the test lets it happen."""

    def __init__(self, settings: Settings, seed: int = 7) -> None:
        self.session = Session(settings, Random(seed).getrandbits)
        self.now = BEGIN
        self.log = ModelLog()
        self.dialing = False
        self.connected = False
        self.requests: deque[tuple[int, ClientMessage]] = deque()
        self.replies: deque[tuple[int, Answer]] = deque()
        self.wandering: deque[Append] = deque()
        """Requests of broken connections that may still reach the log."""
        self.settled: list[Pledge] = []
        self.answered: list[Call] = []
        self.arrived: list[Subscription] = []
        self.roomy = 0
        self.timer: Nanoseconds | None = None
        self._perform(self.session.start(self.now))

    def step(self, event: Event) -> None:
        self._perform(self.session.step(self.now, event))

    def append(self, *values: bytes, timeout_ms: int = 30_000) -> list[Pledge]:
        producer = self.session.producer(LOG, "log")
        pledges = [producer.add(Record(value), timeout_ms) for value in values]
        self.step(Written())
        return pledges

    def ask(self, message: ClientMessage, timeout_ms: int = 30_000, wait_ms: int = 0) -> Call:
        call = Call(message, "do it", timeout_ms, wait_ms)
        self.step(Asked(call))
        return call

    def subscribe(self, start: int = 0) -> Subscription:
        subscription = Subscription(LOG, start, speculative=True)
        self.step(Opened(subscription))
        return subscription

    def connect(self) -> None:
        """Let the dialing succeed, and the server say its welcome."""
        assert self.dialing
        self.dialing, self.connected = False, True
        self.step(Connected())
        request, hello = self.requests.popleft()
        assert isinstance(hello, Hello)
        self.hear(request, WELCOME)

    def cut(self) -> None:
        """Break the connection: what was on its way to the server may arrive later, or never."""
        self._disconnect()
        self.step(Disconnected("it broke"))

    def hear(self, request: int, *messages: Answer) -> None:
        self.step(Heard([(request, message) for message in messages]))

    def take(self, kind: type[Any] = object) -> tuple[int, Any]:
        """The oldest request, as the server gets it."""
        request, message = self.requests.popleft()
        assert isinstance(message, kind), message
        return request, message

    @property
    def appends(self) -> list[Append]:
        """Those on their way to the server."""
        return [each for _, each in self.requests if isinstance(each, Append)]

    def refuse(self, error: AnabranchError) -> None:
        """Answer the oldest request so."""
        request, _ = self.take()
        self.hear(request, Refused.of(error))

    def serve(self) -> None:
        """Have the server do the oldest request; its answer stays on the way."""
        request, message = self.requests.popleft()
        match message:
            case Append(_, batch):
                done = self.log.append(batch)
                reply = Refused.of(done) if isinstance(done, AnabranchError) else done
                self.replies.append((request, reply))
            case Ping():
                self.replies.append((request, Done()))
            case Survey():
                self.replies.append((request, Census("c", 1, 0, 0, 0, 0, 0)))
            case Cancel():
                pass
            case _:
                raise AssertionError(f"the model server can't do {message}")

    def deliver(self) -> None:
        """The oldest answer arrives."""
        request, message = self.replies.popleft()
        self.hear(request, message)

    def advance(self, ms: int) -> None:
        """Time passes; the timer fires whenever it is due."""
        end = self.now + ms * MS
        while self.timer is not None and self.timer <= end:
            self.now, self.timer = max(self.now, self.timer), None
            self.step(TimerFired("alarms"))
        self.now = end

    def heal(self, until: Callable[[], bool], turns: int = 1_000) -> None:
        """From now on everything works, until this holds."""
        for _ in range(turns):
            if until():
                return
            if self.dialing:
                self.connect()
            while self.requests:
                self.serve()
            while self.replies:
                self.deliver()
            self.advance(10)
        raise AssertionError("it doesn't come to rest")

    def _disconnect(self) -> None:
        self.connected = False
        self.wandering += [each for _, each in self.requests if isinstance(each, Append)]
        self.requests.clear()
        self.replies.clear()

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Dial():
                    assert not self.dialing
                    assert not self.connected
                    self.dialing = True
                case HangUp():
                    self._disconnect()
                case Transmit(request, message):
                    assert self.connected, "nothing can be sent"
                    self.requests.append((request, message))
                case Settled(pledge):
                    assert isinstance(pledge, Pledge)
                    assert pledge not in self.settled
                    self.settled.append(pledge)
                case Answered(call):
                    assert isinstance(call, Call)
                    self.answered.append(call)
                case Arrived(subscription):
                    assert isinstance(subscription, Subscription)
                    self.arrived.append(subscription)
                case Roomy():
                    self.roomy += 1
                case SetTimer(_, at):
                    self.timer = at
