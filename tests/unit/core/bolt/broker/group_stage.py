"""A stage for a broker before a metadata group: the test plays the members."""

from typing import Any

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.protocol.commands import (
    Epoch,
    RegisterBroker,
)
from anabranch.core.bolt.protocol.letters import Applied, Leading
from anabranch.core.bolt.protocol.messages import Append
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Event,
    ObjectPut,
    PutObject,
    Received,
    Replies,
    Reply,
    Request,
    Rest,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS, LogId

MEMBERS = ("m0", "m1", "m2")
LOG = LogId(7)


class Stage:
    """The broker, its clock, and what it said to which member."""

    def __init__(self, **limits: Any) -> None:
        self.broker = Broker("b", "cluster", Limits(**limits), MEMBERS, b"a life", "b:1")
        self.now = 1_000_000 * MS
        self.timers: dict[str, int] = {}
        self.said: list[tuple[str, Any]] = []
        self.puts: list[PutObject] = []
        self.replies: list[tuple[int, Any]] = []
        self.rests = 0
        self.take(self.broker.start(self.now))

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self.said.append((to, message))
                case PutObject():
                    self.puts.append(effect)
                case Reply(to, message):
                    self.replies.append((to, message))
                case Replies(tokens, messages):
                    self.replies += zip(tokens, messages, strict=True)
                case SetTimer(key, at):
                    self.timers[key] = at
                case Rest():
                    self.rests += 1
                case _:
                    raise AssertionError(effect)

    def give(self, event: Event) -> None:
        self.take(self.broker.step(self.now, event))
        self.ring()

    def ring(self) -> None:
        while due := [key for key, at in self.timers.items() if at <= self.now]:
            del self.timers[due[0]]
            self.take(self.broker.step(self.now, TimerFired(due[0])))

    def wait(self, ms: int) -> None:
        until = self.now + ms * MS
        while self.timers and min(self.timers.values()) <= until:
            self.now = max(self.now, min(self.timers.values()))
            self.ring()
        self.now = until

    def heard(self, kind: type) -> list[tuple[str, Any]]:
        """What of this kind was said since it was last looked at, and to whom."""
        found = [each for each in self.said if kind in (type(each[1]), type(_inner(each[1])))]
        self.said = [each for each in self.said if each not in found]
        return found

    def answer(self, kind: type, outcome: Any) -> str:
        """The first that was said of this kind is answered; who was asked."""
        member, message = self.heard(kind)[0]
        self.give(Received(member, Applied(message.token, outcome)))
        return member

    def begin(self, leader: str = "m1", term: int = 3) -> None:
        self.give(Received(leader, Leading(term)))
        self.answer(RegisterBroker, Epoch(4))
        self.said.clear()

    def append(self, token: int, producer: int = -1) -> None:
        epoch, sequence = (0, 0) if producer >= 0 else (-1, -1)
        batch = encode(
            [Record(b"v")],
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            now=1,
        )
        self.give(Request(token, Append(LOG, batch, -1)))

    def put(self) -> None:
        self.give(ObjectPut(self.puts.pop(0).object))

    def codes(self) -> list[tuple[int, str]]:
        taken, self.replies = self.replies, []
        return [(token, getattr(reply, "code", type(reply).__name__)) for token, reply in taken]


def _inner(message: Any) -> Any:
    return getattr(message, "command", getattr(message, "query", message))
