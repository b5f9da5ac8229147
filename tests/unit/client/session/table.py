"""A session of any engine on a table. Its driver keeps its duties, and sees that the session does.

Nothing happens by itself: a test dials, welcomes, answers, breaks and lets time pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.unit.client.session.stage import CLUSTER

from anabranch.client.belfast.call import Call as BelfastCall
from anabranch.client.belfast.session import Session as BelfastSession
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.bolt.call import Call as BoltCall
from anabranch.client.bolt.session import Session as BoltSession
from anabranch.client.bolt.subscription import Subscription
from anabranch.client.session import effects as of_session
from anabranch.client.session.pledge import Promise
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol import messages as of_belfast
from anabranch.core.bolt.protocol import messages as of_bolt
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.records.record import Record
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds

BEGIN: Nanoseconds = 1_000_000 * MS
NODES = ["a:1", "b:1"]
LOG = LogId(1)
SHARD = "s"


@dataclass(frozen=True)
class Play:
    """What a test needs of an engine to have its session do all that a session does."""

    session: Callable[[Settings], Any]
    welcome: Any
    ask: Callable[[Milliseconds], Any]
    append: Callable[[Any, Record, Milliseconds], Promise[Any]]
    subscribe: Callable[[], Any]


def _bolt_append(session: Any, record: Record, timeout_ms: Milliseconds) -> Promise[Any]:
    return session.producer(LOG, "log").add(record, timeout_ms)


def _belfast_append(session: Any, record: Record, timeout_ms: Milliseconds) -> Promise[Any]:
    return session.appender.add(record, timeout_ms, SHARD)


DIRECTORY = of_belfast.Directory(
    1, 0, "a:1", (of_belfast.Shard(SHARD, Standing.SEATED, 1, "b:1", ("b:1",)),), 0, 0
)

PLAYS = {
    "bolt": Play(
        lambda settings: BoltSession(settings, Random(7).getrandbits, NODES),
        of_bolt.Welcome(1, CLUSTER, "s", 1_000, 10_000, 100),
        lambda timeout_ms: BoltCall(of_bolt.Describe(LOG), "describe", timeout_ms),
        _bolt_append,
        lambda: Subscription(LOG, 0, speculative=True),
    ),
    "belfast": Play(
        lambda settings: BelfastSession(CLUSTER, settings, Random(7).getrandbits, NODES),
        of_belfast.Welcome(1, CLUSTER, "n", "", 10_000, 100),
        lambda timeout_ms: BelfastCall(of_belfast.Inspect(), "inspect", timeout_ms),
        _belfast_append,
        lambda: Subscriber(0),
    ),
}


@dataclass
class Cable:
    """What the session has made of one of its lines."""

    address: str
    dialing: bool = True
    connected: bool = False
    requests: dict[int, Any] = field(default_factory=dict[int, Any])
    """By number, what was sent on this connection."""


class Table:
    def __init__(self, engine: str, **settings: Any) -> None:
        self.play = PLAYS[engine]
        self.now = BEGIN
        self.timer: Nanoseconds | None = None
        self.cables: dict[int, Cable] = {}
        self.calls: list[Any] = []
        self.pledges: list[Promise[Any]] = []
        self.subscriptions: list[Any] = []
        self.answered: list[Any] = []
        self.settled: list[Promise[Any]] = []
        self.roomy = 0
        self.over = False
        self.session: Any = self.play.session(Settings(client="t", **settings))
        self._perform(self.session.start(self.now))

    def step(self, event: Any) -> None:
        self._perform(self.session.step(self.now, event))

    def ask(self, timeout_ms: Milliseconds = 5_000) -> Any:
        call = self.play.ask(timeout_ms)
        self.calls.append(call)
        self.step(of_session.Asked(call))
        return call

    def append(self, value: bytes = b"v", timeout_ms: Milliseconds = 5_000) -> Promise[Any]:
        pledge = self.play.append(self.session, Record(value), timeout_ms)
        if pledge not in self.pledges:
            self.pledges.append(pledge)
        self.step(of_session.Written())
        return pledge

    def subscribe(self) -> Any:
        subscription = self.play.subscribe()
        self.subscriptions.append(subscription)
        self.step(of_session.Opened(subscription))
        return subscription

    def close(self) -> None:
        self.over = True
        self.step(of_session.Ended())

    def dialed(self, line: int, *, well: bool = True) -> None:
        """The dialing ends, and if it ends well the server says its welcome."""
        cable = self.cables[line]
        assert cable.dialing
        cable.dialing, cable.connected = False, well
        if well:
            self.step(of_session.Connected(line))
            self.hear(line, 0, self.play.welcome)
        else:
            self.step(of_session.Disconnected("nobody listens", line))

    def hear(self, line: int, request: int, message: Any) -> None:
        if self.cables[line].connected:
            self.step(of_session.Heard([(request, message)], line))

    def cut(self, line: int) -> None:
        cable = self.cables[line]
        if cable.dialing or cable.connected:
            self._clear(cable)
            self.step(of_session.Disconnected("it broke", line))

    def advance(self, ms: Milliseconds) -> None:
        end = self.now + ms * MS
        while self.timer is not None and self.timer <= end:
            self.now, self.timer = max(self.now, self.timer), None
            self.step(TimerFired(Alarms.KEY))
        self.now = end

    def open_all(self) -> None:
        """Every dialing ends well."""
        for line, cable in list(self.cables.items()):
            if cable.dialing:
                self.dialed(line)

    def tell_directory(self) -> None:
        """Who asks where Belfast's shards are is told; other engines don't ask."""
        for line, cable in list(self.cables.items()):
            for request, message in list(cable.requests.items()):
                if isinstance(message, of_belfast.Locate):
                    self.hear(line, request, DIRECTORY)

    @property
    def sent(self) -> list[tuple[int, int, Any]]:
        """What was sent on connections that are open: line, request, message."""
        return [
            (line, request, message)
            for line, cable in self.cables.items()
            for request, message in cable.requests.items()
        ]

    @property
    def busy(self) -> bool:
        return any(cable.dialing or cable.connected for cable in self.cables.values())

    @staticmethod
    def _clear(cable: Cable) -> None:
        cable.dialing = cable.connected = False
        cable.requests.clear()

    def _perform(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case of_session.Dial(line, address):
                    assert not self.over, "a client that was closed dials nobody"
                    old = self.cables.get(line)
                    assert old is None or not (old.dialing or old.connected), "one at a time"
                    self.cables[line] = Cable(address)
                case of_session.HangUp(line):
                    self._clear(self.cables[line])
                case of_session.Transmit(request, message, line):
                    assert not self.over, "a client that was closed says nothing"
                    assert self.cables[line].connected, "nothing can be sent"
                    self.cables[line].requests[request] = message
                case of_session.Answered(call):
                    assert call not in self.answered, "a call is answered once"
                    assert call.finished
                    self.answered.append(call)
                case of_session.Settled(pledge):
                    assert pledge not in self.settled, "a batch is settled once"
                    assert pledge.outcome is not None
                    self.settled.append(pledge)
                case of_session.Arrived():
                    pass
                case of_session.Roomy():
                    self.roomy += 1
                case SetTimer(_, at):
                    self.timer = at
                case _:
                    raise AssertionError(effect)
