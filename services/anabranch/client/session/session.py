"""The client as a machine: it decides everything, and a driver moves bytes and keeps time.

A driver
1. makes one session of an engine and gives it `start(now)`, then one event at a time with
   `step(now, event)`; both return effects, to be performed in the order given (see effects.py);
2. answers every Dial with one Connected or Disconnected of the same line. A connection carries
   frames in order, each once, until it breaks: then nothing more comes of it. After HangUp nothing
   of it is reported;
3. keeps one timer: SetTimer moves it, TimerFired says that it was due;
4. appends by adding records to the engine's producers, which returns the Pledge whose last record
   it is, or raises what makes it impossible. Then, once after any number of these, it gives
   Written. Settled tells when `pledge.outcome` is there;
5. asks with Asked(call), whose `answer` or `error` is there when Answered comes;
6. subscribes with Opened(subscription); at each Arrived it takes what it likes, and gives Taken.
   `error` ends the subscription, once everything was taken.

An engine's session derives from this one. It says where to ask (its routes), and keeps the
engine's producers.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar, assert_never

from anabranch.client.session.commons import Commons, RandomBits
from anabranch.client.session.dialect import Dialect, Greeting
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
from anabranch.client.session.line import Line
from anabranch.client.session.parts import HasLog
from anabranch.client.session.settings import Settings
from anabranch.core.errors import AnabranchError, BadRequest, Unavailable
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.producers import REMEMBERED
from anabranch.core.types import Milliseconds, Nanoseconds
from anabranch.core.wire.codec import Codec

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")


class Session(ABC, Generic[Q, A, R]):
    """One client's conversations with one service, over as many connections as it takes."""

    def __init__(self, dialect: Dialect[Q, A], settings: Settings, randbits: RandomBits) -> None:
        if not 1 <= settings.batches_in_flight_max <= REMEMBERED:
            raise BadRequest("batches_in_flight_max", f"it must be from 1 to {REMEMBERED}")
        self.settings = settings
        self.ended: AnabranchError | None = None
        """Why nothing can be asked any more."""
        self.welcome: Greeting | None = None
        """What a server said of itself, last."""
        self._commons: Commons[Q, A, R] = Commons(dialect, settings, randbits)
        self._lines: list[Line[Q, A]] = []
        self._known: dict[str, Line[Q, A]] = {}

    @property
    def pending_bytes(self) -> int:
        """Appends that are held until they are acknowledged."""
        return self._commons.pending_bytes

    @property
    def servers_up(self) -> int:
        """How many servers this client is connected to."""
        return sum(line.up for line in self._lines)

    @property
    def trouble(self) -> str:
        """Why no server is reached."""
        return self._commons.trouble

    @property
    def obstacle(self) -> AnabranchError | None:
        """What stood in the way last, while something is tried again; None if nothing did."""
        commons = self._commons
        if commons.troubles and not self.servers_up:
            return commons.rejection or Unavailable("the service", commons.trouble)
        return commons.retried

    def start(self, now: Nanoseconds) -> list[Effect[Q]]:
        self._commons.alarms.now = now
        self._start()
        return self._turn()

    def step(self, now: Nanoseconds, event: Event[A]) -> list[Effect[Q]]:
        self._commons.alarms.now = now
        match event:
            case Heard(replies, line):
                self._lines[line].hear(replies)
            case Written():
                pass  # every turn ends with the producers' work
            case TimerFired():
                self._commons.alarms.ring()
            case Asked(part) | Opened(part):
                self._used(part)
                part.begin(self._commons)
                if self.ended:
                    part.close(self.ended)
            case Dropped(call):
                call.drop()
            case Taken(subscription, size):
                self._used(subscription)
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

    def check_record(self, size: int) -> None:
        """Raise if no server takes a record of so many bytes."""
        self._commons.check_record(size)

    def check_batch(self, size: int, count: int) -> None:
        """Raise if no server takes a batch of so many bytes and records."""
        self._commons.check_batch(size, count)

    def line(self, address: str) -> Line[Q, A]:
        """The one line to this address."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._made(address)
        return found

    def codec(self, line: int) -> Codec[Q, A]:
        """How frames are written and read on this line."""
        return self._lines[line].dialect.codec

    def host_of(self, address: str) -> str:
        """Where others have met this server last, if its name may not lead there yet; or empty."""
        return ""

    @abstractmethod
    def wants(self, line: Line[Q, A]) -> bool: ...

    @abstractmethod
    def back_off(self, line: Line[Q, A]) -> Milliseconds | None: ...

    def idle_ms(self, line: Line[Q, A]) -> Milliseconds | None:
        """A connection to a server that was asked once is kept for the next question."""
        return None

    @abstractmethod
    def mistaken(self, line: Line[Q, A], greeting: Greeting) -> str | None: ...

    def rose(self, line: Line[Q, A], greeting: Greeting) -> None:
        self.welcome = greeting

    @abstractmethod
    def fell(self, line: Line[Q, A], *, was_up: bool) -> None: ...

    @abstractmethod
    def rejected(self, line: Line[Q, A], error: AnabranchError) -> None: ...

    @abstractmethod
    def _start(self) -> None:
        """Ask the first server."""

    @abstractmethod
    def _pump(self) -> None:
        """Have the producers send what there is room for; at the end of each step."""

    def _used(self, part: HasLog) -> None:
        """A program asks or reads: what is known about the part's route may be looked up anew."""

    def _close(self, error: AnabranchError) -> None:
        """Settle what isn't one of the parts; they are closed already."""

    def _made(self, address: str, dialect: Dialect[Q, A] | None = None) -> Line[Q, A]:
        line = Line(self._commons, len(self._lines), address, self, dialect)
        self._lines.append(line)
        return line

    def _turn(self) -> list[Effect[Q]]:
        commons = self._commons
        self._pump()
        commons.effects, effects = [], commons.effects
        for timing in commons.timing:
            assert isinstance(timing, SetTimer), "alarms set timers and do nothing else"
            effects.append(timing)
        commons.timing.clear()
        return effects

    def _end(self, error: AnabranchError) -> None:
        if self.ended:
            return
        self.ended = error
        self._commons.closed = True
        for line in self._lines:
            line.up = False
        for part in list(self._commons.parts.values()):
            part.close(error)
        self._close(error)
        for line in self._lines:
            line.end()
