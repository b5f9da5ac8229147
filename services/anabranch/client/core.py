"""The client as a machine: whatever it decides is decided here, and a driver moves bytes and keeps
time.

A driver
1. makes one `Session(settings, randbits)` and gives it `start(now)`, then one event at a time with
   `step(now, event)`; both return effects, to be performed in the order given (see effects.py);
2. answers every Dial with one Connected or Disconnected. A connection carries frames in order, each
   once, until it breaks: then nothing more comes of it. After HangUp nothing of it is reported;
3. keeps one timer: SetTimer moves it, TimerFired says that it was due;
4. appends with `session.producer(log, name).add(record, timeout_ms)` (or `add_batch`), which
   returns the Pledge whose last record it is, or raises what makes it impossible. Then, once after
   any number of these, it gives Written. Settled tells when `pledge.outcome` is there;
5. asks with Asked(Call(...)), whose `answer` or `error` is there when Answered comes;
6. subscribes with Opened(Subscription(...)); at each Arrived it takes what it likes off `news`, and
   gives Taken with the bytes that this had. `error` ends it, once `news` is empty.
"""

from collections.abc import Iterable
from typing import assert_never

from anabranch.client.effects import (
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
    Taken,
    Written,
)
from anabranch.client.line import Line, RandomBits
from anabranch.client.producer import Producer
from anabranch.client.settings import Settings
from anabranch.core.bolt.alarms import Alarm
from anabranch.core.bolt.commands import Refused
from anabranch.core.bolt.producers import REMEMBERED
from anabranch.core.errors import AnabranchError, BadFrame, BadRequest, Retry, Unavailable
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.types import LogId, Nanoseconds
from anabranch.core.wire.messages import (
    PROTOCOL_VERSION,
    Hello,
    ServerMessage,
    Survey,
    Welcome,
)

PRODUCERS_KEPT_MAX = 4_096
"""Logs that were appended to and whose sequence is continued when they are again."""

Replies = Iterable[tuple[int, ServerMessage | AnabranchError]]


class Session:
    """One client's conversation with one server, over as many connections as it takes."""

    def __init__(self, settings: Settings, randbits: RandomBits) -> None:
        if not 1 <= settings.batches_in_flight_max <= REMEMBERED:
            raise BadRequest("batches_in_flight_max", f"it must be from 1 to {REMEMBERED}")
        self.settings = settings
        self.ended: AnabranchError | None = None
        """Why nothing can be asked any more."""
        self.welcome: Welcome | None = None
        """What the server said of itself, last."""
        self._line = Line(settings, randbits)
        self._producers: dict[LogId, Producer] = {}
        self._connected = False
        self._dials = 0
        self._heard = True
        self._probed = False
        self._probe = 0
        self._alarm: Alarm | None = None

    @property
    def pending_bytes(self) -> int:
        """Appends that are held until they are acknowledged."""
        return self._line.pending_bytes

    def start(self, now: Nanoseconds) -> list[Effect]:
        self._line.alarms.now = now
        self._dial()
        return self._turn()

    def producer(self, log: LogId, name: str) -> Producer:
        """The one through which everything is appended to this log."""
        producer = self._producers.get(log)
        if producer is None:
            if self.ended:
                raise self.ended
            if len(self._producers) >= PRODUCERS_KEPT_MAX:
                self._retire_one()
            producer = self._producers[log] = Producer(self._line, log, name)
        return producer

    def step(self, now: Nanoseconds, event: Event) -> list[Effect]:
        self._line.alarms.now = now
        match event:
            case Heard(replies):
                self._hear(replies)
            case Written():
                pass
            case TimerFired():
                self._line.alarms.ring()
            case Asked(part) | Opened(part):
                part.begin(self._line)
                if self.ended:
                    part.close(self.ended)
            case Dropped(call):
                call.drop()
            case Taken(subscription, size):
                subscription.taken(size)
            case Left(subscription):
                subscription.leave()
            case Connected():
                self._greet()
            case Disconnected(reason):
                self._broken(reason)
            case Ended():
                self._end(Unavailable("this client", "it was closed"))
            case _:
                assert_never(event)
        return self._turn()

    def heard(self, message: ServerMessage | AnabranchError) -> None:
        """The sign of life that was asked for: that it came is all that it says."""
        self._line.unheard(self._probe)

    def _turn(self) -> list[Effect]:
        line = self._line
        while line.restless:
            line.restless, restless = [], line.restless
            for producer in restless:
                producer.pump()
        line.effects, effects = [], line.effects
        for timing in line.timing:
            assert isinstance(timing, SetTimer), "alarms set timers and do nothing else"
            effects.append(timing)
        line.timing.clear()
        return effects

    def _retire_one(self) -> None:
        for log, producer in self._producers.items():
            if producer.idle:
                del self._producers[log]
                return

    def _greet(self) -> None:
        self._connected, self._heard, self._probed = True, True, False
        self._line.tell(Hello(PROTOCOL_VERSION, self.settings.client, self.settings.token))
        self._watch()

    def _watch(self) -> None:
        self._hush()
        self._alarm = self._line.alarms.after(self.settings.silence_ms, self._look)

    def _look(self) -> None:
        """Is the server still there? Only one that owes an answer is expected to speak."""
        line = self._line
        if self._heard or (line.up and not line.owed):
            self._probed = False
        elif not self._probed:
            self._probed = True
            if line.up:
                self._probe = line.ask(self, Survey())
        else:
            self._hang_up(f"the server was silent for {2 * self.settings.silence_ms} ms")
            return
        self._heard = False
        self._watch()

    def _hush(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _dial(self) -> None:
        self._line.effects.append(Dial())

    def _hear(self, replies: Replies) -> None:
        line = self._line
        self._heard = True
        for request, message in replies:
            if not self._connected:
                return
            listener = line.listener(request)
            if listener is not None:
                listener.heard(message)
            elif isinstance(message, Welcome) and not line.up:
                self._welcomed(message)
            elif request == 0 or not line.up:
                self._rejected(message)

    def _welcomed(self, welcome: Welcome) -> None:
        self.welcome = welcome
        self._dials = 0
        self._line.opened(welcome)
        for part in list(self._line.parts.values()):
            part.ready()

    def _rejected(self, message: ServerMessage | AnabranchError) -> None:
        """What the server says of the connection as a whole, or instead of a welcome."""
        error = message.error() if isinstance(message, Refused) else message
        if not isinstance(error, AnabranchError):
            error = BadFrame(f"{type(message).__name__} came where a welcome was expected")
        if isinstance(error, Retry | BadFrame):
            self._hang_up(error.message)
        else:
            self._end(error)

    def _hang_up(self, reason: str) -> None:
        self._line.effects.append(HangUp())
        self._broken(reason)

    def _broken(self, reason: str) -> None:
        if self.ended:
            return
        line = self._line
        self._connected = False
        was_up = line.up
        line.broke(reason)
        if was_up:
            for part in list(line.parts.values()):
                part.lost()
        self._dials += 1
        self._hush()
        self._alarm = line.alarms.after(line.pause(self._dials), self._dial)

    def _end(self, error: AnabranchError) -> None:
        if self.ended:
            return
        line = self._line
        self.ended = error
        line.up = self._connected = False
        for part in list(line.parts.values()):
            part.close(error)
        self._producers.clear()
        self._hush()
        line.effects.append(HangUp())
