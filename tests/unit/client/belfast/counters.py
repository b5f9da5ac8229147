"""Shards that take appends, as a client may meet them: a batch is logged once, in its producer's
order, acknowledged when it is confirmed, and lost where its shard fails before that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from anabranch.client.belfast.session import Effect, Event, Session
from anabranch.client.session.effects import (
    Connected,
    Dial,
    Disconnected,
    HangUp,
    Heard,
    Transmit,
)
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol.messages import (
    Append,
    Appended,
    Directory,
    Done,
    Elsewhere,
    Hello,
    Leave,
    Locate,
    Shard,
    ToClient,
    ToServer,
    Welcome,
)
from anabranch.core.errors import RecordVoided, SequenceGap, ShardAway, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.quota import Meter
from anabranch.core.records.batch import Header, peek
from anabranch.core.records.record import decode

SEQUENCER = "q:1"
STRIDE = 1_000_000
"""Between the positions of two shards."""


@dataclass
class Logged:
    producer: int
    epoch: int
    sequence: int
    values: list[bytes | None]
    first: int


@dataclass
class Counter:
    """One shard: the node that is its primary changes, its log doesn't."""

    name: str
    number: int
    primary: int = 1
    failed: bool = False
    away: bool = False
    meter: Meter | None = None
    """The quota that stands before it."""
    logged: list[Logged] = field(default_factory=list[Logged])
    confirmed: int = 0
    """Batches of `logged` that are final."""
    inbox: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    waiting: list[tuple[int, Logged]] = field(default_factory=list[tuple[int, Logged]])

    @property
    def node(self) -> str:
        return f"{self.name}:{self.primary}"

    def find(self, header: Header) -> Logged | None:
        wanted = (header.producer_id, header.producer_epoch, header.base_sequence)
        for each in self.logged:
            if (each.producer, each.epoch, each.sequence) == wanted:
                return each
        return None

    def next_of(self, header: Header) -> int:
        """-1: it is of an epoch that is over."""
        mine = [each for each in self.logged if each.producer == header.producer_id]
        if not mine or mine[-1].epoch < header.producer_epoch:
            return 0
        if mine[-1].epoch > header.producer_epoch:
            return -1
        return mine[-1].sequence + len(mine[-1].values)

    @property
    def end(self) -> int:
        return self.logged[-1].first + len(self.logged[-1].values) if self.logged else 0


class Counters:
    """All shards, and one client of theirs."""

    def __init__(self, names: Sequence[str], settings: Settings) -> None:
        self.shards = {name: Counter(name, nth) for nth, name in enumerate(names)}
        self.now = 0
        self.timer: int | None = None
        self.settled: list[object] = []
        self.located = 0
        """How often somebody was asked where the shards are."""
        self._lines: dict[str, int] = {}
        """Of each node that was dialed."""
        self._up: set[str] = set()
        self._events: list[Event] = []
        picks = iter(range(1, 1 << 30))
        self.session = Session("c", settings, lambda bits: next(picks) % (1 << bits), [SEQUENCER])
        self._perform(self.session.start(0))
        self._go_on()

    def join(self, name: str) -> None:
        """One more shard is admitted."""
        self.shards[name] = Counter(name, len(self.shards))

    def take_in(self, name: str, count: int) -> None:
        """The shard's primary looks at so many requests."""
        shard = self.shards[name]
        requests, shard.inbox[:count] = shard.inbox[:count], []
        for request, batch in requests:
            self._append(shard, request, batch)

    def confirm(self, name: str, count: int) -> None:
        """So many more batches are final, and acknowledged."""
        shard = self.shards[name]
        if not shard.failed:
            shard.confirmed = min(shard.confirmed + count, len(shard.logged))
            self._acknowledge(shard)

    def snap(self, name: str, *, elsewhere: bool) -> None:
        """The connection breaks; perhaps because another replica is the primary now."""
        shard = self.shards[name]
        node = shard.node
        shard.inbox.clear()
        shard.waiting.clear()
        shard.primary += elsewhere
        if node in self._up:
            self._up.discard(node)
            self.give(Disconnected("it broke", self._lines[node]))

    def fail(self, name: str, *, answered: bool) -> None:
        """As a whole: what isn't final is lost, and who waits may be told."""
        shard = self.shards[name]
        shard.failed = True
        void = shard.logged[shard.confirmed :]
        del shard.logged[shard.confirmed :]
        told = [request for request, logged in shard.waiting if logged in void]
        shard.waiting = []
        shard.inbox.clear()
        if answered and shard.node in self._up:
            error = Refused.of(RecordVoided(name))
            self._say(shard.node, [(request, error) for request in told])
        self.snap(name, elsewhere=False)

    def ring(self) -> None:
        """Time passes until the client's timer is due."""
        if self.timer is not None:
            self.now, self.timer = max(self.now, self.timer), None
            self.give(TimerFired(Alarms.KEY))

    def give(self, event: Event) -> None:
        self._events.append(event)
        self._go_on()

    def _append(self, shard: Counter, request: int, batch: bytes) -> None:
        header = peek(batch)
        known = shard.find(header)
        if shard.failed or shard.away:
            self._answer(shard, request, Refused.of(ShardAway(shard.name, "it is away")))
            return
        meter = shard.meter
        exceeded = None if meter is None else meter.append(self.now, len(batch), header.count)
        if exceeded is not None:
            self._answer(shard, request, Refused.of(exceeded))
            return
        if known is None:
            expected = shard.next_of(header)
            if header.base_sequence != expected:
                gap = SequenceGap(shard.name, header.producer_id, expected, header.base_sequence)
                self._answer(shard, request, Refused.of(gap))
                return
            known = Logged(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                [record.value for record in decode(batch)],
                shard.end,
            )
            shard.logged.append(known)
        shard.waiting.append((request, known))
        self._acknowledge(shard)

    def _acknowledge(self, shard: Counter) -> None:
        final = shard.logged[: shard.confirmed]
        done = [each for each in shard.waiting if each[1] in final]
        shard.waiting = [each for each in shard.waiting if each[1] not in final]
        for request, logged in done:
            first = shard.number * STRIDE + logged.first
            self._answer(shard, request, Appended((Run(first, len(logged.values)),)))

    def _answer(self, shard: Counter, request: int, message: ToClient) -> None:
        self._say(shard.node, [(request, message)])

    def _say(self, node: str, replies: Sequence[tuple[int, ToClient]]) -> None:
        self.give(Heard(replies, self._lines[node]))

    def _go_on(self) -> None:
        while self._events:
            self._perform(self.session.step(self.now, self._events.pop(0)))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(_, at):
                    self.timer = at
                case Dial(line, node):
                    self._lines[node] = line
                    self._up.add(node)
                    self._events.append(Connected(line))
                case HangUp(line):
                    self._up.discard(self._node(line))
                case Transmit(request, message, line):
                    self._asked(self._node(line), request, message)
                case _:
                    pass

    def _node(self, line: int) -> str:
        return next(node for node, each in self._lines.items() if each == line)

    def _asked(self, node: str, request: int, message: ToServer) -> None:
        shard = self.shards.get(node.partition(":")[0])
        line = self._lines[node]
        match message:
            case Hello():
                welcome = Welcome(1, "c", node, "0", 1 << 20, 1 << 10)
                self._events.append(Heard([(request, welcome)], line))
            case Leave(name):
                done = Done() if name in self.shards else Refused.of(UnknownShard(name))
                self._events.append(Heard([(request, done)], line))
            case Locate():
                self.located += 1
                self._events.append(Heard([(request, self._directory())], line))
            case Append(batch):
                assert shard is not None
                if node == shard.node:
                    shard.inbox.append((request, bytes(batch)))
                else:
                    self._events.append(Heard([(request, Elsewhere(shard.node))], line))
            case _:
                pass

    def _directory(self) -> Directory:
        shards = tuple(
            Shard(
                each.name,
                Standing.FAILED if each.failed else Standing.SEATED,
                1,
                each.node,
                (each.node,),
            )
            for each in self.shards.values()
        )
        return Directory(1, 0, SEQUENCER, shards, 0, 0)
