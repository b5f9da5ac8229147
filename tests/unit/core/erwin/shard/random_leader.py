"""A leader, a controller and clients that do anything the protocol allows to one shard, and a naive
account of what the shard must show.
"""

from random import Random

from tests.unit.core.erwin.shard.erwin_stage import LEADER, Stage, batch

from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.letters import LearnShard, Push, Pushed
from anabranch.core.erwin.protocol.messages import Delivered, Records, Stored
from anabranch.core.erwin.protocol.rows import NO_SHARD, Fence, Mode, Row
from anabranch.core.limits import Limits
from anabranch.core.machine import Received
from anabranch.core.replication.replica import Role
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.wire.session import Credit

LIMITS = Limits(noop_ms=2_000, orphan_ms=20_000)
NODES = ("a1", "a2")


class Scene:
    """One shard of two replicas; rows of shard 1 are another's."""

    def __init__(self, seed: int, mode: Mode) -> None:
        self.random = Random(seed)
        self.stage = Stage({"a": NODES, "b": ("b1",)}, mode=mode, limits=LIMITS, cache_bytes=400)
        self.mode = mode
        self.primary = "a1"
        self.epoch = 1
        self.replicas = NODES
        self.fence = Fence(1, 1)
        self.base = self.ordered = self.stable = self.trimmed = self.confirmed = 0
        self.pushes: list[Push] = []
        """Of this fence, in order."""
        self.old: list[Push] = []
        self.ring: list[Row] = []
        """What isn't pushed in this fence: ids and counts."""
        self.final: list[Row] = []
        self.batches: dict[AppendId, bytes] = {}
        self.acknowledged: dict[AppendId, int] = {}
        """Mode st: the client has the answers of all replicas of one epoch; and since when."""
        self.began: dict[AppendId, int] = {}
        self.lowest: dict[AppendId, int] = {}
        """What the client hadn't acknowledged or given up when each append began."""
        self.given_up: set[AppendId] = set()
        self.time = 0
        self.bound: dict[AppendId, bytes] = {}
        """What a reader saw."""
        self.next = 0
        self.stream: int | None = None
        self.streamed: list[tuple[int, bytes]] = []

    # The clients' part.

    def append(self) -> None:
        self.next += 1
        count = self.random.randint(1, 3)
        shard = self.random.choice([0, 0, 0, 1, NO_SHARD])
        id = AppendId(7, 0, self.next)
        self.ring.append(Row(0, count, shard, id))
        self.began[id] = self.time
        open_ = [each for each in self.batches if not self.is_over(each)]
        self.lowest[id] = min(open_).sequence if open_ else self.next
        if shard == 0:
            values = [f"{self.next}.{nth}" for nth in range(count)]
            self.batches[id] = batch(*values, sequence=self.next)
            if self.mode is Mode.ST and self.random.random() < 0.8:
                self.send_data(id)

    def send_data(self, id: AppendId) -> None:
        chosen = [node for node in self.replicas if self.random.random() < 0.9]
        found = [
            self.stage.data(node, self.batches[id], epoch=self.epoch, lowest=self.lowest[id])
            for node in chosen
        ]
        stored = [token for token in found if self.stage.answers.get(token) == [Stored()]]
        if len(stored) == len(self.replicas):
            self.acknowledged[id] = self.time

    def is_over(self, id: AppendId) -> bool:
        return id in self.acknowledged or id in self.given_up

    def send_again(self) -> None:
        open_ = [id for id in self.batches if not self.is_over(id)]
        if self.mode is Mode.ST and open_:
            self.send_data(self.random.choice(open_))

    def give_up(self) -> None:
        """A client's deadline is over; some replicas may have its data, and some members its id."""
        self.given_up |= {id for id in self.batches if self.random.random() < 0.5} - set(
            self.acknowledged
        )

    # The leader's part.

    @property
    def end(self) -> int:
        return self.pushes[-1].rows[-1].end if self.pushes else self.base

    def push(self) -> None:
        """The next rows of the ring; the letter may be lost."""
        taken = self.ring[: self.random.randint(1, 3)]
        if not taken:
            return
        self.ring = self.ring[len(taken) :]
        first, rows = self.end, list[Row]()
        for row in taken:
            rows.append(Row(rows[-1].end if rows else first, row.count, row.shard, row.id))
        own = [self.batches[row.id] for row in rows if row.shard == 0]
        letter = Push(
            fence=self.fence,
            base=self.base,
            first=first,
            rows=rows,
            batches=own if self.mode is Mode.M else [],
            stable=self.stable,
            trimmed=self.trimmed,
        )
        self.pushes.append(letter)
        if self.random.random() < 0.8:
            self.give(letter)

    def give(self, letter: Push) -> None:
        self.stage.nodes[self.primary].give(Received(LEADER, letter))
        self.stage.settle()
        self.hear()

    def repeat(self) -> None:
        """Everything that isn't confirmed, from somewhere on; or an old push, which is stale."""
        if self.old and self.random.random() < 0.3:
            self.give(self.random.choice(self.old))
        for letter in self.pushes[self.random.randint(0, len(self.pushes)) :]:
            self.give(letter)

    def probe(self) -> None:
        self.stage.push(
            self.primary,
            self.end,
            [],
            fence=self.fence,
            base=self.base,
            stable=self.stable,
            trimmed=self.trimmed,
        )
        self.hear()

    def hear(self) -> None:
        for _, _, letter in self.stage.letters:
            if isinstance(letter, Pushed) and letter.fence == self.fence:
                assert letter.upto <= self.end
                self.confirmed = max(self.confirmed, letter.upto)
                assert letter.trimmed <= self.trimmed
        self.stage.letters.clear()

    def order(self) -> None:
        """The shard holds these pushes: they are dropped by some members, or by all."""
        for letter in self.pushes:
            end = letter.rows[-1].end
            if self.ordered < end <= self.confirmed and self.random.random() < 0.7:
                self.ordered = end
                self.final += letter.rows
            elif end > self.ordered:
                break
        if self.random.random() < 0.8:
            self.stable = self.ordered

    def trim(self) -> None:
        self.trimmed = self.random.randint(self.trimmed, self.stable)

    def begin_again(self) -> None:
        """Another leader, or the same one restarted: it may order otherwise what isn't ordered."""
        later = Fence(self.fence.view + 1, 1)
        self.fence = self.random.choice([later, Fence(self.fence.view, self.fence.start + 1)])
        again = [row for each in self.pushes for row in each.rows if row.first >= self.ordered]
        self.old += self.pushes
        self.ring = [*again, *self.ring]
        for _ in range(self.random.randint(0, 2 * len(self.ring))):
            nth = self.random.randint(1, len(self.ring) - 1) if len(self.ring) > 1 else 0
            before, row = self.ring[nth - 1 : nth + 1] if nth else (None, None)
            if before is not None and row is not None and not self.precedes(before.id, row.id):
                self.ring[nth - 1 : nth + 1] = [row, before]
        self.base = self.confirmed = self.ordered
        self.pushes = []

    def precedes(self, first: AppendId, second: AppendId) -> bool:
        """Was the one acknowledged before the other began? Then no order has it behind (G2)."""
        return self.acknowledged.get(first, self.time) < self.began[second]

    # The controller's part.

    def fail(self) -> None:
        """One replica is gone, and the other goes on alone."""
        if len(self.replicas) < 2:
            return
        lost = self.random.choice(self.replicas)
        (left,) = (node for node in self.replicas if node != lost)
        self.stage.crash(lost)
        self.stage.nodes[left].held = False  # a seal is answered when it is journaled
        if not self.stage.take_over("a", left, left):
            assert left != self.primary
            self.stage.restart(lost)
            return
        assert self.stage.nodes[left].machine.replica.role is Role.PRIMARY
        self.primary, self.replicas = left, (left,)
        self.epoch += 1
        self.stream = None

    def mend(self) -> None:
        if len(self.replicas) == 2:
            return
        (lost,) = (node for node in NODES if node != self.primary)
        if not self.stage.nodes[lost].up:
            self.stage.restart(lost)
        learn = LearnShard(shard="a", epoch=self.epoch, primary=self.primary)
        self.stage.nodes[lost].give(Received("c1", learn))
        self.stage.sleep(2_000)
        self.epoch += 1
        self.replicas = (self.primary, lost)
        both = self.stage.setup("a", 0, self.primary, *self.replicas, epoch=self.epoch)
        self.stage.arrange(both, self.stage.configuration.shards[1])

    def restart(self) -> None:
        node = self.random.choice(self.replicas)
        self.stage.restart(node)
        if node == self.primary:
            self.stream = None

    def hold(self) -> None:
        node = self.stage.nodes[self.random.choice(NODES)]
        node.held = not node.held
        self.stage.settle()
        self.hear()

    def sleep(self) -> None:
        self.stage.sleep(self.random.choice([10, 300, 2_500]))
        self.hear()

    # Readers.

    def read(self) -> None:
        start = self.random.randint(0, self.ordered + 2)
        token = self.stage.read(self.primary, start, bytes_max=self.random.choice([1, 200, 10_000]))
        answer = self.stage.answers.get(token, [None])[0]
        if isinstance(answer, Refused):
            assert answer.code == "position-trimmed"
            assert start < self.trimmed
        elif isinstance(answer, Records):
            assert answer.upto <= max(start, self.stable)
            self.check(start, answer.upto, answer)
            spans = [range(span.first, span.first + span.count) for span in answer.elsewhere]
            told = [n for span in spans for n in span]
            others = [
                n
                for row in self.final
                if row.shard == 1
                for n in range(max(start, row.first), min(row.end, answer.upto))
            ]
            assert told == others

    def check(self, start: int, upto: int, answer: Records | Delivered) -> None:
        rows = [
            row
            for row in self.final
            if row.end > start and row.end <= upto and row.shard in (0, NO_SHARD)
        ]
        assert list(answer.firsts) == [row.first for row in rows]
        assert list(answer.counts) == [row.count for row in rows]
        for row, content in zip(rows, answer.batches, strict=True):
            if row.shard == NO_SHARD:
                assert not content
                continue
            assert self.bound.setdefault(row.id, content) == content, "a position has changed"
            assert content or row.id not in self.acknowledged, "an acknowledged record is a no-op"
            assert content or self.mode is Mode.ST
            assert content in (b"", self.batches[row.id])

    def subscribe(self) -> None:
        if self.stream is None:
            self.stream = self.stage.subscribe(self.primary, self.trimmed, window=300)
            self.streamed_upto = self.trimmed
        answers = self.stage.answers.pop(self.stream, [])
        for answer in answers:
            if not isinstance(answer, Delivered):
                self.stream = None
                return
            assert self.streamed_upto <= answer.upto <= self.stable
            self.check(self.streamed_upto, answer.upto, answer)
            self.streamed_upto = answer.upto
        self.stage.ask(self.primary, Credit(self.stream, 300))

    # All of it.

    STEPS = (
        *("append",) * 4,
        *("push",) * 5,
        *("order",) * 3,
        *("probe",) * 3,
        *("read",) * 3,
        *("subscribe",) * 2,
        "repeat",
        "repeat",
        "send_again",
        "send_again",
        "give_up",
        "trim",
        "begin_again",
        "fail",
        "mend",
        "mend",
        "restart",
        "hold",
        "sleep",
    )

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.time += 1
            getattr(self, self.random.choice(self.STEPS))()
        self.heal()

    def heal(self) -> None:
        """Everything works again: all rows are ordered, stable and shown."""
        for node in self.stage.nodes.values():
            node.held = False
        self.stage.settle()
        self.mend()
        while self.ring:
            self.push()
        for _ in range(3):
            for letter in self.pushes:
                self.give(letter)
            self.stage.sleep(3_000)
            self.probe()
        assert self.confirmed == self.end
        for letter in self.pushes:
            if letter.rows[-1].end > self.ordered:
                self.final += letter.rows
        self.ordered = self.stable = self.end
        self.probe()
        start = self.trimmed
        while start < self.end:
            found = self.stage.records(self.stage.read(self.primary, start))
            assert found.upto > start
            self.check(start, found.upto, found)
            start = found.upto
        self.stream = None
        for _ in range(self.next + 2):
            self.subscribe()
        assert self.streamed_upto == self.end
