"""A shard as simple as its contract: rows in a list, made durable when the test says so."""

from dataclasses import dataclass, field
from itertools import pairwise

from anabranch.core.erwin.protocol.letters import Push, Pushed, ShardSetup, Stale
from anabranch.core.erwin.protocol.rows import NO_SHARD, Fence, Row
from anabranch.core.types import Position

NO_FENCE = Fence(0, 0)


@dataclass
class Held:
    """What the primary's log holds, or what a quorum holds of it."""

    fence: Fence = NO_FENCE
    base: Position = 0
    begins: Position = 0
    pushes: list[tuple[tuple[Row, ...], tuple[bytes, ...]]] = field(
        default_factory=list[tuple[tuple[Row, ...], tuple[bytes, ...]]]
    )
    trimmed: Position = 0

    @property
    def end(self) -> Position:
        return self.pushes[-1][0][-1].end if self.pushes else self.begins

    @property
    def rows(self) -> list[Row]:
        return [row for rows, _ in self.pushes for row in rows]

    @property
    def batches(self) -> list[bytes]:
        return [batch for _, batches in self.pushes for batch in batches]

    def copy(self) -> "Held":
        return Held(self.fence, self.base, self.begins, list(self.pushes), self.trimmed)


class NaiveShard:
    def __init__(self, number: int, *, begins: Position = 0) -> None:
        self.number = number
        self.name = f"s{number}"
        self.epoch = 1
        self.open = True
        self.removed = False
        self.stable: Position = 0
        self.reads = 0
        self.obstacle = ""
        self.held = Held(begins=begins)
        """At the primary."""
        self.durable = self.held.copy()
        """At a quorum."""

    @property
    def primary(self) -> str:
        return f"{self.name}-{self.epoch % 2}"

    @property
    def setup(self) -> ShardSetup:
        replicas = (f"{self.name}-0", f"{self.name}-1")
        return ShardSetup(
            number=self.number,
            name=self.name,
            nodes=replicas,
            epoch=self.epoch,
            primary=self.primary,
            replicas=replicas,
            open=self.open,
            removed=self.removed,
        )

    def push(self, letter: Push) -> Pushed | Stale:
        held = self.held
        if letter.fence < held.fence:
            return Stale(held.fence)
        if letter.fence > held.fence:
            self._fence(letter)
        wanted = -1
        if letter.first > held.end:
            wanted = held.end
        elif letter.rows:
            self._take(letter)
        if wanted < 0:
            # E5: it holds everything that it may serve.
            assert letter.stable <= held.end
            self.stable = max(self.stable, letter.stable)
        held.trimmed = max(held.trimmed, letter.trimmed)
        return self.answer(wanted)

    def answer(self, wanted: Position = -1) -> Pushed:
        fenced = self.durable.fence == self.held.fence
        return Pushed(
            fence=self.held.fence,
            shard=self.number,
            upto=self.durable.end if fenced else min(self.durable.end, self.held.base),
            trimmed=self.durable.trimmed,
            stable=self.stable,
            reads=self.reads,
            wanted=wanted,
            obstacle=self.obstacle,
        )

    def sync(self) -> Pushed:
        self.durable = self.held.copy()
        return self.answer()

    def take_over(self) -> None:
        """Another replica is primary: it holds what is durable, and nothing else."""
        self.epoch += 1
        self.held = self.durable.copy()

    def _fence(self, letter: Push) -> None:
        held = self.held
        assert self.stable <= letter.base, "what is stable can't be void"
        held.fence, held.base = letter.fence, letter.base
        while held.pushes and held.end > letter.base:
            held.pushes.pop()
        if held.end < letter.base:
            assert not held.pushes, "only a shard that was added may lack rows"
            held.begins = letter.base
        assert held.end == letter.base, "a fence begins where a push ended"

    def _take(self, letter: Push) -> None:
        held, rows = self.held, tuple(letter.rows)
        own = [row for row in rows if row.shard == self.number]
        assert all(row.shard != NO_SHARD or row.count for row in rows)
        assert not letter.batches or len(letter.batches) == len(own)
        assert rows[0].first == letter.first
        assert all(a.end == b.first for a, b in pairwise(rows)), "no gaps"
        push = (rows, tuple(letter.batches))
        if letter.first == held.end:
            held.pushes.append(push)
        else:
            assert push in held.pushes, "a fence has one set of pushes"
