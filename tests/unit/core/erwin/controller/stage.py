"""A log with real controllers, naive sequencing replicas and naive shards, on a network that a test
can cut and that loses what it is told to lose.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
from tests.unit.core.erwin.controller.naive import NaiveShardReplica
from tests.unit.core.sequencing.naive import NaiveReplica

from anabranch.core.errors import BrokerFenced, Unavailable
from anabranch.core.erwin.controller.config import ControllerConfig, ShardNodes
from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.erwin.protocol.letters import (
    Configuration,
    Control,
    LearnShard,
    OpenShard,
    SealShard,
    ShardSetup,
)
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Campaign,
    Deposed,
    Effect,
    Elected,
    Event,
    Follow,
    Followed,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Resign,
    Rest,
    SaveSnapshot,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.sequencing.protocol.letters import Start
from anabranch.core.sequencing.view import View
from anabranch.core.types import MS

SEQUENCERS = ("s1", "s2", "s3")
TICK_MS = 50
LIMITS = Limits()

_decode = msgspec.msgpack.Decoder(Configuration).decode


@dataclass
class Journal:
    """Of one controller, or of a group; what it holds, everybody may know."""

    entries: list[bytes] = field(default_factory=list[bytes])
    term: int = 0
    leader: str = ""
    candidates: list[str] = field(default_factory=list[str])

    @property
    def configurations(self) -> list[Configuration]:
        return [_decode(entry) for entry in self.entries]


class Host:
    """Drives one controller; its journal writes when the stage says so."""

    def __init__(self, node: str, stage: "Stage", *, alone: bool) -> None:
        self.node = node
        self.stage = stage
        self.config = config_of(stage, node, alone=alone)
        self.up = False
        self.rested = False
        self.journal = Journal() if alone else stage.group
        self.controller: Controller
        self.group: tuple[int, Sequence[bytes]] | None = None
        """What is being written, and in which term."""
        self.timers: dict[str, int] = {}
        self.fails = False
        self.saved: list[SaveSnapshot] = []

    def start(self) -> None:
        assert not self.up
        self.up = True
        self.timers.clear()
        self.group = None
        self.controller = Controller(self.config, LIMITS)
        if self.config.alone:
            for index, entry in enumerate(self.journal.entries, 1):
                self.controller.replayed(index, entry)
        self.perform(self.controller.start(self.stage.now))

    def crash(self, *, kept: bool) -> None:
        """`kept`: what was being written is in the journal all the same."""
        self.up = False
        if self.group is not None and kept:
            self._append(*self.group)
        if self.journal.leader == self.node:
            self.journal.leader = ""
        if self.node in self.journal.candidates:
            self.journal.candidates.remove(self.node)

    def step(self, event: Event) -> None:
        if self.up:
            self.perform(self.controller.step(self.stage.now, event))

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to, letter):
                    self.stage.check_told(letter)
                    self.stage.post(self.node, to, letter)
                case SetTimer(key, at):
                    self.timers[key] = at
                case Persist(entries):
                    assert self.group is None, "one group at a time"
                    self.group = (self.journal.term, entries)
                case Campaign():
                    if self.node not in self.journal.candidates:
                        self.journal.candidates.append(self.node)
                case Resign():
                    self._resign()
                case Follow(after):
                    self._follow(after)
                case SaveSnapshot():
                    # The journal forgets nothing.
                    self.saved.append(effect)
                case Rest():
                    self.rested = True
                case _:
                    raise AssertionError(effect)

    def write(self) -> None:
        if not self.up or self.group is None:
            return
        (term, entries), self.group = self.group, None
        if self.fails:
            self.step(PersistFailed(Unavailable("the journal", "no disk")))
        elif self._append(term, entries):
            self.step(Persisted(len(self.journal.entries)))
        else:
            self.step(PersistFailed(BrokerFenced(self.node, 1, 2)))

    def _append(self, term: int, entries: Sequence[bytes]) -> bool:
        if not self.config.alone:
            if self.journal.term != term or self.journal.leader != self.node:
                return False
            self.stage.tell(len(self.journal.entries) + 1, entries, but=self.node)
        self.journal.entries += entries
        return True

    def _resign(self) -> None:
        if self.node in self.journal.candidates:
            self.journal.candidates.remove(self.node)
        if self.journal.leader == self.node:
            self.journal.leader = ""

    def _follow(self, after: int) -> None:
        if len(self.journal.entries) > after:
            self.stage.later.append(
                lambda: self.step(Followed(after + 1, self.journal.entries[after:]))
            )

    def fire(self) -> None:
        for key, at in list(self.timers.items()):
            if self.up and at <= self.stage.now and self.timers.get(key) == at:
                del self.timers[key]
                self.step(TimerFired(key))


def config_of(stage: "Stage", node: str, *, alone: bool) -> ControllerConfig:
    return ControllerConfig(
        node=node,
        sequencers=stage.sequencer_names,
        shards=tuple(
            ShardNodes(name=name, nodes=nodes) for name, nodes in stage.shard_names.items()
        ),
        fsync=not stage.memory,
        accept_loss=stage.accept_loss,
        reports=stage.reporting,
        alone=alone,
    )


class Stage:
    def __init__(
        self,
        *,
        shards: int = 2,
        sequencers: tuple[str, ...] = SEQUENCERS,
        controllers: tuple[str, ...] = ("k",),
        alone: bool = True,
        memory: bool = False,
        accept_loss: bool = False,
        reports: bool = False,
    ) -> None:
        self.now = 1_000 * MS
        self.memory = memory
        self.accept_loss = accept_loss
        self.reporting = reports
        self.reports = defaultdict[str, list[Control]](list)
        """What each sequencer was told of the controller that leads."""
        self.sequencer_names = sequencers
        self.shard_names = {f"h{n}": (f"h{n}-a", f"h{n}-b") for n in range(shards)}
        self.letters: list[tuple[str, str, object]] = []
        self.later: list[Callable[[], None]] = []
        self.group = Journal()
        self.cut: set[str] = set()
        """Nodes that no letter reaches or leaves."""
        self.lossy = False
        """Letters stay where they are until a test delivers or loses them."""
        self.slow: set[str] = set()
        """Sequencers that order nothing."""
        self.disks = 0
        self.sequencers = {n: NaiveReplica(n, self.post, memory=memory) for n in sequencers}
        self.replicas: dict[str, NaiveShardReplica] = {}
        for name, nodes in self.shard_names.items():
            self.add_nodes(name, nodes)
        self.hosts = {node: Host(node, self, alone=alone) for node in controllers}
        self.told: dict[int, Configuration] = {}
        self.started: dict[int, View] = {}
        for host in self.hosts.values():
            host.start()

    # What a test looks at.

    @property
    def host(self) -> Host:
        return next(iter(self.hosts.values()))

    @property
    def controller(self) -> Controller:
        return self.host.controller

    @property
    def configuration(self) -> Configuration:
        return self.controller.configuration

    @property
    def view(self) -> View:
        view = self.configuration.view
        assert view is not None
        return view

    def setup(self, name: str) -> ShardSetup:
        return [shard for shard in self.configuration.shards if shard.name == name][-1]

    def taking(self) -> set[str]:
        """Sequencers that take appends of the configured view."""
        view = self.configuration.view
        return {n for n, each in self.sequencers.items() if each.takes and each.view == view}

    # What a test does.

    def add_nodes(self, shard: str, nodes: tuple[str, ...]) -> None:
        for node in nodes:
            self.disks += 1
            self.replicas[node] = NaiveShardReplica(shard, node, nodes, self.disks, self.post)

    def new_disk(self) -> int:
        self.disks += 1
        return self.disks

    def ask(self, shard: str, *, to_open: bool) -> None:
        for host in self.hosts.values():
            host.step(Received(self.sequencer_names[0], OpenShard(shard, to_open)))

    def append(self, record: int, *nodes: str) -> bool:
        """At all members, or at these; True if it is acknowledged."""
        takers = nodes or self.view.nodes
        taken = [self.sequencers[node].append(record) for node in takers]
        return all(taken)

    # How time passes.

    def post(self, sender: str, to: str, letter: object) -> None:
        if sender not in self.cut and to not in self.cut:
            self.letters.append((sender, to, letter))

    def tell(self, first: int, entries: Sequence[bytes], *, but: str) -> None:
        for host in self.hosts.values():
            if host.node != but:
                self.later.append(lambda host=host: host.step(Followed(first, entries)))

    def elect(self) -> None:
        """The first candidate leads, once it has been told everything."""
        journal = self.group
        if journal.leader or not journal.candidates:
            return
        journal.leader = journal.candidates[0]
        journal.term += 1
        host = self.hosts[journal.leader]
        if host.controller.leads:
            host.step(Deposed())
        host.step(Followed(1, list(journal.entries)))
        host.step(Elected(journal.term, self.now + 1_000 * MS))

    def depose(self, *, told: bool) -> None:
        """Another candidate is elected; the leader hears of it, or not yet."""
        journal = self.group
        before, journal.leader = journal.leader, ""
        if before in journal.candidates:
            journal.candidates.remove(before)
            journal.candidates.append(before)
        if told and before:
            self.hosts[before].step(Deposed())
        self.elect()

    def deliver(self, index: int = 0, *, keep: bool = False) -> None:
        if not self.letters:
            return
        index %= len(self.letters)
        sender, to, letter = self.letters[index]
        if not keep:
            del self.letters[index]
        if sender in self.cut or to in self.cut:
            return
        if to in self.hosts:
            self.hosts[to].step(Received(sender, letter))
        elif to in self.sequencers:
            self._to_sequencer(sender, to, letter)
        elif to in self.replicas:
            self.replicas[to].receive(sender, letter)

    def _to_sequencer(self, sender: str, to: str, letter: object) -> None:
        replica = self.sequencers[to]
        if isinstance(letter, Configuration):
            if replica.up and letter.version > replica.version:
                replica.version = letter.version
                self._sign(replica, sender)
            return
        if isinstance(letter, Control):
            self.reports[to].append(letter)
            return
        assert not isinstance(letter, SealShard | LearnShard)
        replica.receive(sender, letter)  # pyright: ignore[reportArgumentType]

    def check_told(self, letter: object) -> None:
        """What anybody is told is in a journal, and always the same."""
        journals = [self.group, *(host.journal for host in self.hosts.values())]
        if isinstance(letter, Configuration):
            assert any(letter in journal.configurations for journal in journals)
            assert self.told.setdefault(letter.version, letter) == letter
        if isinstance(letter, Start):
            view = letter.view
            views = [each.view for journal in journals for each in journal.configurations]
            assert view in views, "the configuration is journaled before anybody starts"
            assert self.started.setdefault(view.number, view) == view

    def settle(self) -> None:
        """Journals write and letters arrive until there is nothing left to do."""
        while True:
            if self.later:
                self.later.pop(0)()
            elif self.letters and not self.lossy:
                self.deliver()
            elif any(host.up and host.group is not None for host in self.hosts.values()):
                for host in self.hosts.values():
                    host.write()
                if any(host.fails for host in self.hosts.values()):
                    return
            else:
                return

    def tick(self) -> None:
        self.now += TICK_MS * MS
        self.elect()
        self._order()
        for replica in self.replicas.values():
            replica.copy(self.replicas)
        for host in self.hosts.values():
            for each in (*self.sequencers.values(), *self.replicas.values()):
                if each.up and host.up:
                    self._sign(each, host.node)
            host.fire()

    def _sign(self, node: NaiveReplica | NaiveShardReplica, to: str) -> None:
        """It says that it lives."""
        self.post(node.node, to, msgspec.structs.replace(node.present(), at=self.now))

    def run(self, ms: int) -> None:
        for _ in range(ms // TICK_MS):
            self.tick()
            self.settle()

    def _order(self) -> None:
        """The leader orders all it has, and what others have alone; they follow if not slow."""
        for leader in self.sequencers.values():
            view = leader.view
            if not leader.takes or view is None or view.leader != leader.node:
                continue
            held = leader.held
            for node in view.nodes:
                other = self.sequencers[node]
                apart = {leader.node, node} & (self.cut | self.slow)
                if other.takes and other.view == view and not apart:
                    for record in other.held.ring:
                        leader.append(record)
            held.done += held.ring
            held.ring.clear()
            for node in view.nodes:
                other = self.sequencers[node]
                if other.takes and other.view == view and node not in self.slow:
                    other.held.ring = [r for r in other.held.ring if r not in held.done]
                    other.held.done = list(held.done)


def running(**options) -> Stage:
    stage = Stage(**options)
    stage.run(1_000)
    assert stage.view.number == 1
    assert stage.taking() == set(stage.sequencer_names)
    return stage
