"""A stage for one member of a metadata group: the test plays the rest of the world."""

from typing import Any

import msgspec

from anabranch.core.bolt.metadata.member import Member
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Command,
    Entry,
)
from anabranch.core.bolt.protocol.letters import Ask, Propose
from anabranch.core.bolt.protocol.queries import Describe
from anabranch.core.bolt.state import snapshot
from anabranch.core.errors import Deposed as DeposedError
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Elected,
    Event,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.types import MS

START = 1_000_000 * MS
LEASE = 5_000 * MS
FENCED = PersistFailed(DeposedError("etcd", 1))


def entry(*commands: Command) -> bytes:
    return msgspec.msgpack.encode([Entry(START // MS, b"", command) for command in commands])


class Stage:
    """One member, its clock and its part of the journal; the test plays the rest of the world."""

    def __init__(self, knows: int = FORMAT, **limits: Any) -> None:
        self.limits = Limits(**limits)
        self.member = Member("test", self.limits, knows)
        self.now = START
        self.timers: dict[str, int] = {}
        self.groups: list[Persist] = []
        self.said: list[tuple[str, Any]] = []
        self.done: list[Effect] = []
        self.tokens = 0
        self.take(self.member.start(self.now))

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(key, at):
                    self.timers[key] = at
                case Persist():
                    self.groups.append(effect)
                case Send(to, message):
                    self.said.append((to, message))
                case _:
                    self.done.append(effect)

    def give(self, *events: Event) -> None:
        for event in events:
            self.take(self.member.step(self.now, event))
        self.ring()

    def ring(self) -> None:
        while due := sorted((at, key) for key, at in self.timers.items() if at <= self.now):
            del self.timers[due[0][1]]
            self.take(self.member.step(self.now, TimerFired(due[0][1])))

    def wait(self, ms: int) -> None:
        self.now += ms * MS
        self.ring()

    def elect(self, term: int = 1, lease: int = LEASE) -> None:
        self.give(Elected(term, self.now + lease))

    def lead(self, term: int = 1) -> None:
        """Elected, and what it begins with durable."""
        self.elect(term)
        self.write()

    def write(self) -> None:
        while self.groups:
            self.groups.pop(0)
            self.give(Persisted(self.member.index + 1))

    def propose(self, command: Command, request: bytes = b"", sender: str = "b") -> None:
        self.tokens += 1
        self.give(Received(sender, Propose(self.tokens, request, command)))

    def ask(self, log: str = "orders") -> None:
        self.tokens += 1
        self.give(Received("b", Ask(self.tokens, Describe(log))))

    def heard(self, kind: type) -> list[Any]:
        """What of this kind was said and not looked at."""
        found = [message for _, message in self.said if isinstance(message, kind)]
        self.said = [each for each in self.said if not isinstance(each[1], kind)]
        return found

    def took(self) -> list[Effect]:
        taken, self.done = self.done, []
        return taken

    @property
    def image(self) -> bytes:
        return snapshot.save(self.member.state.replica)
