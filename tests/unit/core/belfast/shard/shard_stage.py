"""Replicas of shards with disks and a network between them, and decisions that a test makes."""

from typing import Any, TypeVar

from tests.unit.core.replication.stage_node import NodeStage, StageNode

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    AnyDecision,
    CutTo,
    OpenWindow,
    encode_entry,
)
from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import Decided, Leading, Report, Restored
from anabranch.core.belfast.protocol.messages import Append, Appended, Delivered, Subscribe, Where
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Drain,
    Gone,
    Received,
    Request,
    TimerFired,
)
from anabranch.core.records.batch import peek
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.types import MS, NEVER

RULES = Rules(t_ord_us=10_000, window=10)
LEADER = "s1"
SHARDS = {"a": ("a1",), "b": ("b1",), "c": ("c1",)}
T = TypeVar("T")


def batch(*values: str, producer: int = -1, epoch: int = 0, sequence: int = 0) -> bytes:
    """A batch of records with these values, which are their keys too."""
    records = [Record(value.encode(), value.encode()) for value in values]
    known = producer >= 0
    return encode(
        records,
        producer_id=producer,
        producer_epoch=epoch if known else -1,
        base_sequence=sequence if known else -1,
        now=0,
    )


class Node(StageNode[Shard]):
    def __init__(self, stage: "Stage", shard: str, name: str, limits: Limits) -> None:
        super().__init__(stage, name)
        self.config = ShardConfig(
            shard=shard,
            node=name,
            replicas=stage.shards[shard],
            sequencers=(LEADER,),
            cache_bytes=stage.cache_bytes,
        )
        self.limits = limits
        self.deaf = False
        """Letters of the sequencers don't come through."""

    def make(self) -> Shard:
        return Shard(self.config, self.limits)


class Stage(NodeStage):
    """Everything that can happen without time passing has happened when a call returns."""

    def __init__(
        self,
        shards: dict[str, tuple[str, ...]] | None = None,
        *,
        rules: Rules = RULES,
        limits: Limits | None = None,
        cache_bytes: int = 1 << 20,
    ) -> None:
        super().__init__()
        self.shards = SHARDS if shards is None else shards
        self.rules = rules
        self.cache_bytes = cache_bytes
        self.letters: list[tuple[str, Any]] = []
        """What the leader got, and from whom."""
        self.entries: list[bytes] = []
        self.ledger = Ledger()
        self.nodes = {
            name: Node(self, shard, name, limits or Limits())
            for shard, names in self.shards.items()
            for name in names
        }
        self._tokens = 0
        for node in self.nodes.values():
            node.start()
        self.settle()
        self.lead(1)

    def lead(self, term: int, *, at_rest: bool = False) -> None:
        for node in self.nodes.values():
            node.give(Received(LEADER, Leading(term, self.rules, at_rest)))
        self.settle()

    def settle(self) -> None:
        while self.post or self.later or self._writers():
            while self.post:
                sender, to, letter = self.post.popleft()
                if to == LEADER:
                    self.letters.append((sender, letter))
                elif to in self.nodes:
                    self.nodes[to].give(Received(sender, letter))
            while self.later:
                node, event = self.later.popleft()
                node.give(event)
            for node in self._writers():
                node.write()

    def _writers(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.writing is not None and not node.held]

    def sleep(self, t_ords: float) -> None:
        until = self.now + int(t_ords * self.rules.t_ord)
        while True:
            self.settle()
            timers = [node for node in self.nodes.values() if node.up and node.timer <= until]
            if not timers:
                break
            node = min(timers, key=lambda each: each.timer)
            self.now = max(self.now, node.timer)
            node.timer = NEVER
            node.give(TimerFired("alarms"))
        self.now = until

    def decide(self, *decisions: AnyDecision) -> None:
        """One entry, of which everybody hears who isn't deaf."""
        self.ledger.apply(decisions)
        self.entries.append(encode_entry(decisions))
        for node in self.nodes.values():
            if not node.deaf:
                self.tell(node.name, len(self.entries))
        self.settle()

    def tell(self, name: str, first: int) -> None:
        self.nodes[name].give(Received(LEADER, Decided(1, first, self.entries[first - 1 :])))
        self.settle()

    def restore(self, name: str) -> None:
        image = self.ledger.image()
        self.nodes[name].give(
            Received(LEADER, Restored(term=1, index=len(self.entries), image=image))
        )
        self.settle()

    def admit(self, *quotas: int, rounds: int = 10, windows: int = 1) -> None:
        """All shards, in their order, and the first windows with these quotas."""
        admitted = [Admit(name, nodes, 0) for name, nodes in self.shards.items()]
        self.decide(*admitted)
        for _ in range(windows if quotas else 0):
            self.open(*quotas, rounds=rounds)

    def open(self, *quotas: int, rounds: int = 10, mode: Mode = Mode.STEADY) -> None:
        number = self.ledger.windows[-1].number + 1 if self.ledger.windows else 0
        seated = tuple((shard, quota) for shard, quota in enumerate(quotas) if quota)
        self.decide(OpenWindow(number, mode, rounds, 1, seated))

    def cut(self, window: int, cut: int) -> None:
        self.decide(CutTo(window=window, cut=cut))

    def ask(self, node: str, message: object) -> int:
        self._tokens += 1
        self.nodes[node].give(Request(self._tokens, message))
        self.settle()
        return self._tokens

    def append(self, node: str, *values: str, **producer: int) -> int:
        return self.ask(node, Append(batch(*values, **producer)))

    def subscribe(self, node: str, shard: str, start: int = 0, **more: Any) -> int:
        return self.ask(node, Subscribe(shard, start, **more))

    def gone(self, node: str, token: int) -> None:
        self.nodes[node].give(Gone((token,)))
        self.settle()

    def drain(self, node: str) -> None:
        self.nodes[node].give(Drain())
        self.settle()

    def crash(self, name: str) -> None:
        self.nodes[name].fall()

    def wipe(self, *names: str) -> None:
        """They fall, and are there again with empty disks."""
        for name in names:
            self.nodes[name].fall()
            self.nodes[name].wipe()
        self.now += MS
        for name in names:
            self.restart(name)

    def disks(self, *names: str) -> tuple[int, ...]:
        return tuple(self.nodes[name].machine.replica.log.disk for name in names)

    def restart(self, name: str) -> None:
        node = self.nodes[name]
        node.start()
        node.give(Received(LEADER, Leading(1, self.rules)))
        self.settle()

    def answer(self, token: int) -> Any:
        """The only one."""
        (answer,) = self.answers[token]
        return answer

    def waits(self, token: int) -> bool:
        return token not in self.answers

    def positions(self, token: int) -> list[int]:
        appended = self.answer(token)
        assert isinstance(appended, Appended), appended
        return [run.first + nth for run in appended.runs for nth in range(run.count)]

    def of(self, token: int, kind: type[T]) -> list[T]:
        return [each for each in self.answers.get(token, []) if isinstance(each, kind)]

    def delivered(self, token: int) -> list[tuple[int, str, bool]]:
        """Positions, values, and whether they were foretold."""
        found: list[tuple[int, str, bool]] = []
        for message in self.of(token, Delivered):
            places = [run.first + nth for run in message.runs for nth in range(run.count)]
            values: list[str] = []
            for content, (skip, count) in zip(message.batches, message.parts, strict=True):
                records = decode(content)[skip : skip + count]
                assert len(records) == count <= peek(content).count
                values += [(record.value or b"").decode() for record in records]
            assert len(places) == len(values)
            found += [
                (place, value, message.speculative)
                for place, value in zip(places, values, strict=True)
            ]
        return found

    def upto(self, token: int) -> int:
        return self.of(token, Delivered)[-1].upto

    def reports(self, node: str) -> list[Report]:
        return [
            letter
            for sender, letter in self.letters
            if sender == node and isinstance(letter, Report)
        ]

    def report(self, node: str) -> Report:
        return self.reports(node)[-1]


__all__ = ["LEADER", "RULES", "Stage", "Where", "batch"]
