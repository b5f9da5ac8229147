"""A client's machine before a pool of brokers: each dies, drains, falls silent and comes back when
a test says so. The log itself is one, as it is behind real brokers.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.unit.client.bolt.world import BEGIN, Answer, ModelLog
from tests.unit.described import described

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.session import Effect, Event, Session
from anabranch.client.bolt.subscription import Subscription, size_of
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
    Taken,
    Transmit,
    Written,
)
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Description, Done
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    Append,
    Appended,
    ClientMessage,
    Delivered,
    Describe,
    Hello,
    ListBrokers,
    Ping,
    Read,
    Subscribe,
    Survey,
    Trim,
    Welcome,
)
from anabranch.core.bolt.protocol.queries import BrokerSeat, Census, Pool
from anabranch.core.bolt.state.placement import READY
from anabranch.core.errors import AnabranchError, BrokerDraining
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.records.origins import Run
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS, LogId, Nanoseconds
from anabranch.core.wire.session import Cancel, Credit

WELCOME = Welcome(PROTOCOL_VERSION, "c", "s", 1_000, 10_000, 100)


def description(log: LogId, address: str) -> Description:
    return described(log, f"log{log}", broker=address, address=address)


@dataclass
class ModelBroker:
    address: str
    alive: bool = True
    silent: bool = False
    draining: bool = False
    served: list[ClientMessage] = field(default_factory=list[ClientMessage])


@dataclass
class Cable:
    """One line of the session, and what is on its way in both directions."""

    broker: ModelBroker
    dialing: bool = True
    connected: bool = False
    requests: deque[tuple[int, ClientMessage]] = field(
        default_factory=deque[tuple[int, ClientMessage]]
    )
    replies: deque[tuple[int, Answer]] = field(default_factory=deque[tuple[int, Answer]])
    subscribed: dict[int, tuple[LogId, int]] = field(default_factory=dict[int, tuple[LogId, int]])


class PoolWorld:
    """Nothing happens by itself, except that what can't succeed fails when it is tried."""

    def __init__(
        self, brokers: int = 3, *, given: int | None = None, seed: int = 7, **settings: int
    ) -> None:
        names = [f"b{number}:1" for number in range(brokers)]
        self.brokers = {name: ModelBroker(name) for name in names}
        self.logs = {LogId(1): ModelLog(), LogId(2): ModelLog()}
        self.placed = {LogId(1): names[0], LogId(2): names[-1]}
        self.done: list[bytes] = []
        self.cables: dict[int, Cable] = {}
        self.wandering: deque[Append] = deque()
        self.settled: list[Pledge] = []
        self.answered: list[Call] = []
        self.now = BEGIN
        self.timer: Nanoseconds | None = None
        chosen = Settings(**settings)  # pyright: ignore[reportArgumentType]
        self.session = Session(chosen, Random(seed).getrandbits, names[:given])
        self._perform(self.session.start(self.now))

    def step(self, event: Event) -> None:
        self._perform(self.session.step(self.now, event))

    def append(self, *values: bytes, log: int = 1, timeout_ms: int = 30_000) -> list[Pledge]:
        producer = self.session.producer(LogId(log), f"log{log}")
        pledges = [producer.add(Record(value), timeout_ms) for value in values]
        self.step(Written())
        return pledges

    def ask(self, message: ClientMessage, timeout_ms: int = 30_000, wait_ms: int = 0) -> Call:
        call = Call(message, "do it", timeout_ms, wait_ms)
        self.step(Asked(call))
        return call

    def subscribe(self, log: int = 1, start: int = 0) -> Subscription:
        subscription = Subscription(LogId(log), start, speculative=True)
        self.step(Opened(subscription))
        return subscription

    def kill(self, address: str) -> None:
        """What it has taken it may yet do; what it would answer is lost."""
        self.brokers[address].alive = False
        for line in [
            line for line, cable in self.cables.items() if cable.broker.address == address
        ]:
            self.cut(line)

    def cut(self, line: int) -> None:
        cable = self.cables[line]
        if cable.dialing or cable.connected:
            self._clear(cable)
            self.step(Disconnected("it broke", line))

    def dialed(self, line: int) -> None:
        """It succeeds if somebody is there."""
        cable = self.cables[line]
        assert cable.dialing
        cable.dialing = False
        if cable.broker.alive:
            cable.connected = True
            self.step(Connected(line))
        else:
            self.step(Disconnected(f"{cable.broker.address} is dead", line))

    def serve(self, line: int) -> None:
        """The oldest request on this line is done; its answer stays on the way."""
        cable = self.cables[line]
        broker = cable.broker
        request, message = cable.requests.popleft()
        if broker.silent:
            cable.requests.appendleft((request, message))
            return
        broker.served.append(message)
        refused = broker.draining and isinstance(message, Append | Read | Subscribe)
        if refused:
            cable.replies.append((request, Refused.of(BrokerDraining(broker.address))))
            return
        self._serve(cable, request, message)

    def deliver(self, line: int) -> None:
        request, message = self.cables[line].replies.popleft()
        self.step(Heard([(request, message)], line))

    def push(self, line: int, request: int) -> None:
        """What a subscriber hasn't got yet."""
        cable = self.cables[line]
        log, begin = cable.subscribed[request]
        values = self.logs[log].values[begin:]
        if values:
            batch = encode([Record(value) for value in values], now=1)
            run = Run(begin, len(values), 0, log, begin, len(batch))
            cable.replies.append((request, Delivered([run], [batch], False)))
            cable.subscribed[request] = log, begin + len(values)

    def advance(self, ms: int) -> None:
        end = self.now + ms * MS
        while self.timer is not None and self.timer <= end:
            self.now, self.timer = max(self.now, self.timer), None
            self.step(TimerFired("alarms"))
        self.now = end

    def run(self, ms: int = 100) -> None:
        """Everything that can happen does, for a while."""
        for _ in range(max(1, ms // 10)):
            busy = True
            while busy:
                busy = False
                for line, cable in list(self.cables.items()):
                    if cable.dialing:
                        busy = True
                        self.dialed(line)
                    while cable.requests and not cable.broker.silent:
                        busy = True
                        self.serve(line)
                    for request in list(cable.subscribed):
                        self.push(line, request)
                    while cable.replies:
                        busy = True
                        self.deliver(line)
            self.advance(10)

    def line_to(self, address: str) -> int:
        """The one that is connected."""
        return next(
            line
            for line, cable in self.cables.items()
            if cable.broker.address == address and cable.connected
        )

    def served(self, address: str, kind: type) -> int:
        return sum(isinstance(each, kind) for each in self.brokers[address].served)

    def heal(self) -> None:
        for broker in self.brokers.values():
            broker.alive, broker.silent, broker.draining = True, False, False

    def _serve(self, cable: Cable, request: int, message: ClientMessage) -> None:
        match message:
            case Hello():
                reply: Answer = WELCOME
            case Append(log, batch):
                done = self.logs[log].append(batch)
                reply = Refused.of(done) if isinstance(done, AnabranchError) else done
            case Describe(log):
                assert not isinstance(log, str)
                reply = description(log, self.placed[log])
            case ListBrokers():
                reply = Pool([BrokerSeat(each, each, 1, READY, 0, 0, 0) for each in self.brokers])
            case Ping():
                reply = Done()
            case Survey():
                reply = Census("c", 1, 0, 0, 0, 0, 0)
            case Trim(_, _, once):
                if once not in self.done:
                    self.done.append(once)
                reply = Done()
            case Subscribe(log, start):
                cable.subscribed[request] = log, start
                return
            case Cancel(other):
                cable.subscribed.pop(other, None)
                return
            case Credit():
                return
            case _:
                raise AssertionError(f"the model broker can't do {message}")
        cable.replies.append((request, reply))

    def _clear(self, cable: Cable) -> None:
        cable.dialing = cable.connected = False
        self.wandering += [each for _, each in cable.requests if isinstance(each, Append)]
        cable.requests.clear()
        cable.replies.clear()
        cable.subscribed.clear()

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Dial(line, address):
                    old = self.cables.get(line)
                    assert old is None or not (old.dialing or old.connected)
                    broker = self.brokers.get(address) or ModelBroker(address, alive=False)
                    self.cables[line] = Cable(broker)
                case HangUp(line):
                    self._clear(self.cables[line])
                case Transmit(request, message, line):
                    cable = self.cables[line]
                    assert cable.connected, "nothing can be sent"
                    cable.requests.append((request, message))
                case Settled(pledge):
                    assert isinstance(pledge, Pledge)
                    assert pledge not in self.settled
                    self.settled.append(pledge)
                case Answered(call):
                    assert isinstance(call, Call)
                    self.answered.append(call)
                case Arrived() | Roomy():
                    pass
                case SetTimer(_, at):
                    self.timer = at


def appended(pledge: Pledge) -> bool:
    return isinstance(pledge.outcome, Appended)


def taken(world: PoolWorld, subscription: Subscription) -> list[Any]:
    events: list[Any] = []
    while subscription.news:
        news = subscription.news.popleft()
        world.step(Taken(subscription, size_of(news)))
        if isinstance(news, Delivered):
            events += [
                each for run in news.runs for each in range(run.first, run.first + run.count)
            ]
        else:
            events.append(news)
    return events
