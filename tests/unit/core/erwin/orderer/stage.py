"""A leader, its shards, and a network that may do to letters what networks do."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.unit.core.erwin.orderer.naive_replica import NaiveReplica
from tests.unit.core.erwin.orderer.naive_shard import NaiveShard

from anabranch.core.alarms import Alarms
from anabranch.core.erwin.orderer.counters import OrdererCounters
from anabranch.core.erwin.orderer.ordering import Ordering
from anabranch.core.erwin.orderer.patience import Patience
from anabranch.core.erwin.orderer.row_groups import PushBounds
from anabranch.core.erwin.protocol.letters import Configuration, Push, Pushed, Stale
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.machine import Effect, Reply, Send, SetTimer
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import MS, Position

NOOP_MS = 1_600
BOUNDS = PushBounds(group_bytes=100, group_rows=5, groups_max=6, bytes_max=400, retry_ms=200)


@dataclass
class Stage:
    shards: list[NaiveShard]
    mode: Mode = Mode.M
    bounds: PushBounds = BOUNDS
    sent: list[tuple[str, Push]] = field(default_factory=list[tuple[str, Push]])
    """Every push that was ever sent."""
    fresh: list[tuple[str, Push]] = field(default_factory=list[tuple[str, Push]])
    """Not delivered yet."""
    answers: list[tuple[str, Pushed | Stale]] = field(
        default_factory=list[tuple[str, Pushed | Stale]]
    )
    replies: dict[int, object] = field(default_factory=dict[int, object])
    final: dict[Position, AppendId] = field(default_factory=dict[Position, AppendId])
    """What was stable once."""
    placed: dict[AppendId, Position] = field(default_factory=dict[AppendId, Position])
    """Where the leaders' latest `order` has put each append."""
    version: int = 0
    believes: bool = False
    """Answers come from the test, and the shards needn't hold what they say."""

    def __post_init__(self) -> None:
        self.effects: list[Effect] = []
        self.alarms = Alarms(self.effects)
        self.replica = NaiveReplica()
        self.counters = OrdererCounters()
        self.ordering = Ordering(
            self.replica,
            self.effects,
            self.alarms,
            bounds=self.bounds,
            counters=self.counters,
            patience=Patience(NOOP_MS),
        )
        self.replica.on_order = self._ordered
        self.timer: int | None = None

    def lead(self, number: int = 1, *, kept: int = 0, moved: int = 0) -> None:
        self.replica.start_view(number, kept=kept, moved=moved)
        self.placed = {id: at for id, at in self.placed.items() if at < self.replica.ordered}
        self._note_stable()
        self.configure()

    def configure(self, shards: Sequence[NaiveShard] | None = None, *, view: int = 0) -> None:
        """The controllers send what is so now."""
        self.version += 1
        self.ordering.configured(self.configuration(shards))
        self.settle()

    def configuration(self, shards: Sequence[NaiveShard] | None = None) -> Configuration:
        return Configuration(
            version=self.version,
            term=1,
            mode=self.mode,
            fsync=True,
            view=self.replica.view,
            shards=tuple(each.setup for each in (self.shards if shards is None else shards)),
            sequencers=("q0",),
        )

    def append(self, *sizes: int, shard: str = "") -> list[AppendId]:
        ids = [self.replica.append(size, shard=shard).id for size in sizes]
        self.settle()
        return ids

    def settle(self) -> None:
        self.ordering.settle()
        for effect in self.effects:
            match effect:
                case Send(to, message):
                    assert isinstance(message, Push)
                    self.sent.append((to, message))
                    self.fresh.append((to, message))
                case Reply(to, message):
                    assert to not in self.replies, "a request is answered once"
                    self.replies[to] = message
                case SetTimer(_, at):
                    self.timer = at
                case _:
                    raise AssertionError(effect)
        self.effects.clear()

    def push(self, to: str, letter: Push) -> None:
        """Deliver one, now or again."""
        for shard in self.shards:
            if shard.primary == to:
                self.answers.append((to, shard.push(letter)))

    def deliver(self) -> None:
        """Everything that is under way, in its order."""
        fresh, self.fresh = self.fresh, []
        for to, letter in fresh:
            self.push(to, letter)

    def answer(self, at: int = 0) -> None:
        sender, letter = self.answers.pop(at)
        if isinstance(letter, Stale):
            self.ordering.refused(sender, letter)
        else:
            self.ordering.answered(sender, letter)
        self.settle()

    def sync(self, shard: NaiveShard) -> None:
        self.answers.append((shard.primary, shard.sync()))

    def drop(self) -> None:
        self.replica.drop()
        self._note_stable()
        self.settle()

    def wait(self, ms: int = 200) -> None:
        self.alarms.now += ms * MS
        if self.timer is not None and self.timer <= self.alarms.now:
            self.timer = None
            self.alarms.ring()
        self.settle()

    def link(self, node: str) -> None:
        self.ordering.linked(node)
        self.settle()

    def round(self) -> None:
        """Everything arrives, shards write it, and their answers arrive."""
        self.deliver()
        for shard in self.shards:
            self.sync(shard)
        while self.answers:
            self.answer()
        self.drop()

    def calm(self) -> None:
        """A network and shards without faults, for long enough."""
        for _ in range(12):
            self.round()
            self.wait()

    def _ordered(
        self, ids: Sequence[AppendId], positions: Sequence[Position], upto: Position
    ) -> None:
        """Every shard that the leader knows holds the rows, on a quorum (E4)."""
        pushing = self.ordering.pushing
        assert pushing is not None
        for shard in self.shards:
            if shard.number in pushing.cursors and not self.believes:
                held = {row.id: row.first for row in shard.durable.rows}
                assert [held[id] for id in ids] == list(positions)
                assert shard.durable.end >= upto
        for id, position in zip(ids, positions, strict=True):
            assert id not in self.placed, "an append has one position (E7)"
            self.placed[id] = position

    def _note_stable(self) -> None:
        for id, position in self.placed.items():
            if position < self.replica.stable:
                assert self.final.setdefault(position, id) == id, "what was stable changed (E4)"
        assert len(set(self.final.values())) == len(self.final)
