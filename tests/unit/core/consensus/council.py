"""A group on a virtual clock: its letters and disks are as bad as a test wants.

This is the conformance suite's world: whatever state its members keep, all of them are told the
same entries, and come to the same states.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.consensus import (
    Consensus,
    ConsensusConfig,
    ConsensusLetter,
    ConsensusTiming,
)
from anabranch.core.consensus.letters import Offer
from anabranch.core.errors import StorageFailed
from anabranch.core.machine import Effect, Persist, SaveSnapshot, Send, SetTimer
from anabranch.core.types import MS
from anabranch.ports import Recovered, Snapshot

STATES_COMPARED = 16
"""After every so many entries the states of all members are compared."""


@dataclass
class Conditions:
    loss: float = 0.0
    twice: float = 0.0
    short: float = 0.0
    """How many offers lose their last entries."""
    letter_ms: tuple[float, float] = (1, 1)
    disk_ms: tuple[float, float] = (2, 2)
    disk_failures: float = 0.0
    cut: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """From whom to whom nothing comes."""


@dataclass
class Paper:
    """A journal: what is on it survives a crash."""

    entries: list[bytes] = field(default_factory=list[bytes])
    first: int = 1
    snapshot: Snapshot | None = None

    @property
    def last(self) -> int:
        return self.first + len(self.entries) - 1

    def save(self, index: int, image: bytes) -> None:
        self.snapshot = Snapshot(index, image)
        del self.entries[: index + 1 - self.first]
        self.first = index + 1


class State(Protocol):
    """What a user of the consensus makes of its entries."""

    no_op: bytes

    def entry(self, number: int) -> bytes:
        """One that is unlike any other, to be proposed."""
        ...

    def apply(self, entry: bytes) -> None: ...

    def image(self) -> bytes: ...

    def restore(self, image: bytes) -> None: ...


class Entries:
    """The simplest user: the list of all entries, a leader's first ones left out."""

    no_op = b""

    def __init__(self) -> None:
        self._entries: list[bytes] = []

    def entry(self, number: int) -> bytes:
        return b"%d" % number

    def apply(self, entry: bytes) -> None:
        if entry:
            self._entries.append(entry)

    def image(self) -> bytes:
        return msgspec.msgpack.encode(self._entries)

    def restore(self, image: bytes) -> None:
        self._entries = msgspec.msgpack.decode(image, type=list[bytes])


class Councillor:
    """A member, and its account of all that was committed."""

    def __init__(self, council: "Council", name: str) -> None:
        self.name = name
        self.paper = Paper()
        self.up = False
        self.life = 0
        self.applied: list[bytes] = []
        self.state = council.user()
        self.leads = False
        self.resigned = False
        self.restored = 0
        self.consensus: Consensus
        self._council = council
        self._effects: list[Effect] = []
        self._alarms: Alarms

    def start(self) -> None:
        council = self._council
        self.up, self.leads, self.resigned, self.applied = True, False, False, []
        self.state = council.user()
        self._effects = []
        self._alarms = Alarms(self._effects)
        self._alarms.now = council.now
        self.consensus = consensus = Consensus(
            council.config(self.name), self._effects, self._alarms
        )
        consensus.on_commit = self._commit
        consensus.on_restore = self._restore
        consensus.on_elected = self._elected
        consensus.on_deposed = self._deposed
        consensus.take_image = self._image
        paper = self.paper
        consensus.recover(Recovered(paper.snapshot, paper.first, list(paper.entries)))
        self.step(consensus.start)

    def crash(self) -> None:
        """What is on its way to the disk is there, or isn't."""
        self.up = False
        self.leads = False
        self.life += 1

    def step(self, action: Callable[[], object]) -> None:
        self._alarms.now = self._council.now
        action()
        self.consensus.settle()
        effects, self._effects[:] = list(self._effects), []
        for effect in effects:
            self._perform(effect)

    def ring(self) -> None:
        self.step(self._alarms.ring)

    def propose(self, entry: bytes) -> None:
        self.step(lambda: self.consensus.propose(entry))

    def resign(self) -> None:
        """Its process is to end, and another to take its place."""
        self.resigned = True
        self.step(self.consensus.resign)

    def _perform(self, effect: Effect) -> None:
        council, life = self._council, self.life
        match effect:
            case Send(to, letter):
                council.send(self.name, to, letter)
            case SetTimer(_, at):
                council.at(at, lambda: self._if_alive(life, self.ring))
            case Persist(entries):
                council.persist(self, list(entries))
            case SaveSnapshot(index, image):
                self.paper.save(index, image)
                council.at(
                    council.now,
                    lambda: self._if_alive(
                        life, lambda: self.step(lambda: self.consensus.snapshot_saved(index))
                    ),
                )
            case _:
                raise AssertionError(effect)

    def _if_alive(self, life: int, action: Callable[[], None]) -> None:
        if self.up and self.life == life:
            action()

    def _commit(self, index: int, entry: bytes) -> None:
        assert index == len(self.applied) + 1, "in order, once, without gaps"
        self.applied.append(entry)
        self.state.apply(entry)
        self._council.agree(index, entry)
        if index % STATES_COMPARED == 0:
            self._council.agree_on_state(index, self.state.image())

    def _image(self) -> bytes:
        return msgspec.msgpack.encode((self.applied, self.state.image()))

    def _restore(self, index: int, image: bytes) -> None:
        self.applied, state = msgspec.msgpack.decode(image, type=tuple[list[bytes], bytes])
        assert index == len(self.applied)
        self.state = self._council.user()
        self.state.restore(state)
        self._council.agree_on_state(index, self.state.image())
        self.restored += 1
        for nth, entry in enumerate(self.applied, 1):
            self._council.agree(nth, entry)

    def _elected(self) -> None:
        assert not self.leads
        self.leads = True
        leader = self._council.leaders.setdefault(self.consensus.term, self.name)
        assert leader == self.name, "one leader in a term"

    def _deposed(self) -> None:
        assert self.leads
        self.leads = False


class Council:
    def __init__(
        self,
        members: int = 3,
        seed: int = 0,
        *,
        kept_entries: int = 20_000,
        snapshot_entries: int = 10_000,
        user: Callable[[], State] = Entries,
    ) -> None:
        self.user = user
        self.now = 0
        self.names = tuple("abcde"[:members])
        self.timing = ConsensusTiming()
        self.kept_entries = kept_entries
        self.snapshot_entries = snapshot_entries
        self.conditions = Conditions()
        self.chance = Random(seed)
        self.committed: list[bytes] = []
        self.states: dict[int, bytes] = {}
        """What members come to, by the last entry."""
        self.leaders: dict[int, str] = {}
        self.letters: list[tuple[str, str, ConsensusLetter]] = []
        self.members = {name: Councillor(self, name) for name in self.names}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._entries = 0

    def config(self, name: str) -> ConsensusConfig:
        return ConsensusConfig(
            node=name,
            members=self.names,
            no_op=self.no_op,
            timing=self.timing,
            kept_entries=self.kept_entries,
            snapshot_entries=self.snapshot_entries,
        )

    @property
    def no_op(self) -> bytes:
        return self.user().no_op

    def start(self) -> "Council":
        for member in self.members.values():
            member.start()
        return self

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (int(time), self._serial, action))

    def run(self, ms: float, until: Callable[[], bool] = lambda: False) -> None:
        end = self.now + int(ms * MS)
        while not until() and self._events and self._events[0][0] <= end:
            time, _, action = heapq.heappop(self._events)
            self.now = max(self.now, time)
            action()
        if not until():
            self.now = end

    @property
    def leader(self) -> Councillor | None:
        """Of those that lead, the one of the latest term."""
        leading = [each for each in self.members.values() if each.leads]
        return max(leading, key=lambda each: each.consensus.term, default=None)

    def elect(self) -> Councillor:
        self.run(20_000, lambda: self.leader is not None)
        assert self.leader is not None, "somebody is elected in time"
        return self.leader

    def propose(self) -> bytes | None:
        leader = self.leader
        if leader is None:
            return None
        self._entries += 1
        entry = leader.state.entry(self._entries)
        leader.propose(entry)
        return entry

    def agree(self, index: int, entry: bytes) -> None:
        """Everybody is told the same."""
        if index > len(self.committed):
            assert index == len(self.committed) + 1
            self.committed.append(entry)
        assert self.committed[index - 1] == entry

    def agree_on_state(self, index: int, image: bytes) -> None:
        assert self.states.setdefault(index, image) == image, "the same entries, another state"

    def send(self, sender: str, to: str, letter: ConsensusLetter) -> None:
        self.letters.append((sender, to, letter))
        if isinstance(letter, Offer):
            assert self.leaders.setdefault(letter.term, sender) == sender, "one leader in a term"
        conditions, life = self.conditions, self.members[to].life
        if isinstance(letter, Offer) and conditions.short > self.chance.random():
            kept = self.chance.randint(0, len(letter.entries))
            letter = msgspec.structs.replace(letter, entries=letter.entries[:kept])
        for _ in range(1 + (self.chance.random() < conditions.twice)):
            if self.chance.random() >= conditions.loss:
                delay = self.chance.uniform(*conditions.letter_ms)
                self.at(self.now + delay * MS, lambda: self._arrive(sender, to, life, letter))

    def _arrive(self, sender: str, to: str, life: int, letter: ConsensusLetter) -> None:
        reader = self.members[to]
        if reader.up and reader.life == life and (sender, to) not in self.conditions.cut:
            reader.step(lambda: reader.consensus.received(sender, letter))

    def persist(self, member: Councillor, entries: list[bytes]) -> None:
        delay = self.chance.uniform(*self.conditions.disk_ms) * MS
        life, paper = member.life, member.paper
        fails = self.chance.random() < self.conditions.disk_failures

        def done() -> None:
            if member.life != life:
                still_down = member.life == life + 1 and not member.up
                if member.paper is paper and still_down and self.chance.random() < 0.5:
                    paper.entries += entries
            elif fails:
                error = StorageFailed("journal", "it is a test")
                member.step(lambda: member.consensus.persist_failed(error))
            else:
                paper.entries += entries
                last = paper.last
                member.step(lambda: member.consensus.persisted(last))

        self.at(self.now + delay, done)

    def cut_off(self, name: str) -> None:
        for other in self.names:
            if other != name:
                self.conditions.cut |= {(name, other), (other, name)}

    def heal(self) -> None:
        self.conditions = Conditions()
        for member in self.members.values():
            if member.resigned:
                member.crash()
            if not member.up:
                member.start()

    def converge(self) -> None:
        """When all is well, everybody comes to hold all that was ever committed."""
        self.heal()
        self.run(5_000)
        self.elect()
        self.propose()
        self.run(5_000)
        for member in self.members.values():
            assert member.applied == self.committed, member.name
            self.agree_on_state(len(self.committed), member.state.image())
