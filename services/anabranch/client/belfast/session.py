"""The client of Belfast as a machine: whatever it decides is decided here, and a driver moves bytes
and keeps time.

A driver
1. makes one `Session(cluster, settings, randbits, nodes)` and gives it one event at a time with
   `step(now, event)`; `start` and `step` return effects, to be performed in the order given;
2. answers every Dial with one Connected, once the node has welcomed it, or Disconnected. A
   connection carries frames in order, each once, until it breaks. After HangUp nothing of it is
   reported;
3. keeps one timer: SetTimer moves it, TimerFired says that it was due;
4. appends with `session.appender.add(...)`, which returns the Pledge whose last record it is, then
   gives Written, once after any number of these. Settled tells when `pledge.outcome` is there;
5. asks with Asked(Call(...)); Answered comes when it is finished;
6. subscribes with Opened(Subscriber(...)); after Arrived it may `take`, then gives Taken.
"""

from collections.abc import Sequence
from typing import assert_never

from anabranch.client.belfast.call import Call
from anabranch.client.belfast.directory import Whereabouts
from anabranch.client.belfast.effects import (
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
from anabranch.client.belfast.line import Commons, RandomBits
from anabranch.client.belfast.settings import Settings
from anabranch.client.belfast.shards import Appender
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.core.errors import AnabranchError, BadRequest, Unavailable
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.producers import REMEMBERED
from anabranch.core.types import Nanoseconds


class Session:
    """One client's conversations with the nodes of one deployment."""

    def __init__(
        self, cluster: str, settings: Settings, randbits: RandomBits, nodes: Sequence[str]
    ) -> None:
        """`nodes`: some of them, any; the others are learned from these."""
        if not 1 <= settings.batches_in_flight_max <= REMEMBERED:
            raise BadRequest("batches_in_flight_max", f"it must be from 1 to {REMEMBERED}")
        if not nodes:
            raise BadRequest("a deployment", "at least one of its nodes must be named")
        self.settings = settings
        self.ended: AnabranchError | None = None
        """Why nothing can be asked any more."""
        self._commons = Commons(cluster, settings, randbits)
        self.whereabouts = Whereabouts(self._commons, nodes, self._located)
        self.appender = Appender(self._commons, self.whereabouts)
        self._calls: dict[Call, None] = {}
        self._subscribers: dict[Subscriber, None] = {}
        self._asking = False
        """Other nodes are asked, one after the other, where the shards are."""

    @property
    def pending_bytes(self) -> int:
        """Appends that are held until they are acknowledged."""
        return self._commons.pending_bytes

    def start(self, now: Nanoseconds) -> list[Effect]:
        self._commons.alarms.now = now
        self.whereabouts.ask()
        return self._turn()

    def step(self, now: Nanoseconds, event: Event) -> list[Effect]:
        self._commons.alarms.now = now
        match event:
            case Heard(node, replies):
                self._commons.line(node).hear(replies)
            case Written():
                pass
            case Taken(subscriber):
                subscriber.taken()
            case TimerFired():
                self._commons.alarms.ring()
            case Asked(call):
                self._begin_call(call)
            case Opened(subscriber):
                self._begin_subscriber(subscriber)
            case Dropped(call):
                call.drop()
            case Left(subscriber):
                subscriber.close(Unavailable("this subscription", "it was closed"))
            case Connected(node, welcome):
                self._commons.line(node).connected(welcome)
            case Disconnected(node, reason, refusal):
                self._commons.line(node).broken(reason, refusal)
            case Ended():
                self._end(Unavailable("this client", "it was closed"))
            case _:
                assert_never(event)
        return self._turn()

    def _begin_call(self, call: Call) -> None:
        self._calls[call] = None
        call.begin(self._commons, self.whereabouts, lambda: self._calls.pop(call, None))
        if self.ended is not None:
            call.close(self.ended)

    def _begin_subscriber(self, subscriber: Subscriber) -> None:
        self._subscribers[subscriber] = None
        subscriber.begin(
            self._commons,
            self.whereabouts,
            lambda: self._subscribers.pop(subscriber, None),
        )
        if self.ended is not None:
            subscriber.close(self.ended)

    def _located(self) -> None:
        self.appender.located()
        for subscriber in list(self._subscribers):
            subscriber.located()

    def _turn(self) -> list[Effect]:
        """What this step came to."""
        commons = self._commons
        if self.ended is None:
            self.appender.pump()
            if not self._asking and self._busy:
                self._asking = True
                commons.alarms.after(self.settings.directory_ms, self._ask_another)
        effects, commons.effects = commons.effects, []
        effects += [each for each in commons.timing if isinstance(each, SetTimer)]
        commons.timing.clear()
        return effects

    @property
    def _busy(self) -> bool:
        """Would it matter if a shard were elsewhere?"""
        return bool(self._subscribers or self._calls or not self.appender.idle)

    def _ask_another(self) -> None:
        self._asking = False
        if self.ended is None and self._busy:
            self.whereabouts.ask_another()

    def _end(self, error: AnabranchError) -> None:
        self.ended = error
        self.appender.close(error)
        for call in list(self._calls):
            call.close(error)
        for subscriber in list(self._subscribers):
            subscriber.close(error)
        for line in self._commons.lines():
            line.hang_up("the client was closed")
