"""Replicas of an Erwin log's shards on virtual disks. The test is their leader and controller."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from tests.unit.core.replication.stage_node import NodeStage, StageNode

from anabranch.core.erwin.protocol.letters import (
    Configuration,
    Push,
    Pushed,
    SealShard,
    ShardPresent,
    ShardSealed,
    ShardSetup,
)
from anabranch.core.erwin.protocol.messages import Data, Delivered, Read, Records, Subscribe
from anabranch.core.erwin.protocol.rows import Fence, Mode, Row
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Gone,
    Received,
    Request,
    TimerFired,
)
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import MS, NEVER, Position

LEADER, CONTROLLER = "s1", "c1"
SHARDS = {"a": ("a1", "a2"), "b": ("b1", "b2")}
FENCE = Fence(1, 1)


def batch(*values: str, producer: int = 7, sequence: int = 0) -> bytes:
    records = [Record(value.encode(), value.encode()) for value in values]
    return encode(
        records,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence,
        now=0,
    )


def values(content: bytes) -> list[str]:
    return [(record.value or b"").decode() for record in decode(content)]


class Node(StageNode[ErwinShard]):
    def __init__(self, stage: "Stage", shard: str, name: str) -> None:
        super().__init__(stage, name)
        self.config = ErwinShardConfig(
            shard=shard,
            node=name,
            replicas=stage.shards[shard],
            controllers=(CONTROLLER,),
            hands_over=stage.hands_over,
            cache_bytes=stage.cache_bytes,
            far=stage.far,
        )
        self.limits = stage.limits

    def make(self) -> ErwinShard:
        return ErwinShard(self.config, self.limits)


class Stage(NodeStage):
    """Everything that can happen without time passing has happened when a call returns."""

    def __init__(
        self,
        shards: dict[str, tuple[str, ...]] | None = None,
        *,
        mode: Mode = Mode.M,
        limits: Limits | None = None,
        cache_bytes: int = 1 << 20,
        arranged: bool = True,
        hands_over: bool = False,
        far: bool = False,
    ) -> None:
        super().__init__()
        self.shards = SHARDS if shards is None else shards
        self.limits = limits or Limits()
        self.cache_bytes = cache_bytes
        self.hands_over = hands_over
        self.far = far
        self.letters: list[tuple[str, str, Any]] = []
        """From whom, to whom: what the leader and the controller got."""
        self.cut_off: set[str] = set()
        """Nodes that hear nothing and whose letters are lost."""
        self.nodes = {
            name: Node(self, shard, name) for shard, names in self.shards.items() for name in names
        }
        self._tokens = 0
        self._sequences = 0
        for node in self.nodes.values():
            node.start()
        self.settle()
        self.configuration = Configuration(
            version=0, term=1, mode=mode, fsync=True, view=None, shards=(), sequencers=(LEADER,)
        )
        if arranged:
            self.arrange(
                *(
                    self.setup(name, number, names[0], *names)
                    for number, (name, names) in enumerate(self.shards.items())
                )
            )

    def setup(
        self, name: str, number: int, primary: str, *replicas: str, epoch: int = 1, **more: Any
    ) -> ShardSetup:
        return ShardSetup(
            number=number,
            name=name,
            nodes=self.shards.get(name, replicas),
            epoch=epoch,
            primary=primary,
            replicas=replicas,
            disks=tuple(self.disk(node) for node in replicas),
            **more,
        )

    def disk(self, node: str) -> int:
        return self.nodes[node].machine.replica.log.disk

    def arrange(self, *shards: ShardSetup) -> None:
        """The next configuration, of which everybody hears."""
        self.configuration = replace(
            self.configuration, version=self.configuration.version + 1, shards=shards
        )
        for name in self.nodes:
            self.configure(name)

    def configure(self, name: str) -> None:
        if name not in self.cut_off:
            self.nodes[name].give(Received(CONTROLLER, self.configuration))
            self.settle()

    def take_over(self, shard: str, primary: str, *replicas: str) -> bool:
        """What is left of a shard's replicas is sealed, and becomes its next epoch. False if one of
        them doesn't answer: it may lack what was durable.
        """
        known = next(each for each in self.configuration.shards if each.name == shard)
        sealed = set[str]()
        for _ in range(8):
            for node in replicas:
                letter = SealShard(shard=shard, epoch=known.epoch + 1)
                self.nodes[node].give(Received(CONTROLLER, letter))
                self.settle()
            sealed |= {each.node for _, _, each in self.letters if isinstance(each, ShardSealed)}
            if sealed >= set(replicas):
                break
            self.sleep(1_000)
        if sealed < set(replicas):
            return False
        later = self.setup(shard, known.number, primary, *replicas, epoch=known.epoch + 1)
        self.arrange(*(later if each is known else each for each in self.configuration.shards))
        return True

    # The leader's part.

    def row(self, first: int, count: int, shard: int, sequence: int | None = None) -> Row:
        self._sequences += 1
        return Row(first, count, shard, AppendId(7, 0, sequence or self._sequences))

    def push(
        self,
        node: str,
        first: Position,
        rows: Sequence[Row],
        batches: Sequence[bytes] = (),
        *,
        fence: Fence = FENCE,
        base: Position = 0,
        stable: Position = 0,
        trimmed: Position = 0,
        answer_later: bool = False,
        waits_ms: Sequence[int] = (),
        announced_bytes: int = -1,
    ) -> None:
        letter = Push(
            fence=fence,
            base=base,
            first=first,
            rows=list(rows),
            batches=list(batches),
            stable=stable,
            trimmed=trimmed,
            answer_later=answer_later,
            waits_ms=list(waits_ms),
            announced_bytes=announced_bytes,
        )
        self.nodes[node].give(Received(LEADER, letter))
        self.settle()

    def pushed(self, node: str) -> Pushed:
        """The last answer of this node."""
        found = [each for _, each in self.told(node) if isinstance(each, Pushed)]
        return found[-1]

    def told(self, node: str, to: str = LEADER) -> list[tuple[str, Any]]:
        return [
            (to, letter) for sender, named, letter in self.letters if (sender, named) == (node, to)
        ]

    def present(self, node: str) -> ShardPresent:
        found = [each for _, each in self.told(node, CONTROLLER) if isinstance(each, ShardPresent)]
        return found[-1]

    # Time and the network.

    def settle(self) -> None:
        while self.post or self.later or self._writers():
            while self.post:
                sender, to, letter = self.post.popleft()
                if sender in self.cut_off or to in self.cut_off:
                    continue
                if to in self.nodes:
                    self.nodes[to].give(Received(sender, letter))
                else:
                    self.letters.append((sender, to, letter))
            while self.later:
                node, event = self.later.popleft()
                node.give(event)
            for node in self._writers():
                node.write()

    def _writers(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.writing is not None and not node.held]

    def sleep(self, ms: int) -> None:
        until = self.now + ms * MS
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

    def crash(self, name: str) -> None:
        self.nodes[name].up = False
        self.nodes[name].writing = None

    def restart(self, name: str) -> None:
        self.crash(name)
        self.nodes[name].start()
        self.settle()
        self.configure(name)

    # Clients.

    def ask(self, node: str, message: object, token: int | None = None) -> int:
        self._tokens += 1
        asked = self._tokens if token is None else token
        self.nodes[node].give(Request(asked, message))
        self.settle()
        return asked

    def read(
        self,
        node: str,
        start: int,
        *,
        wait_ms: int = 0,
        bytes_max: int = 1 << 20,
        records_max: int = 1_000,
        token: int | None = None,
    ) -> int:
        message = Read(
            shard=self.nodes[node].config.shard,
            start=start,
            bytes_max=bytes_max,
            records_max=records_max,
            wait_ms=wait_ms,
        )
        return self.ask(node, message, token)

    def subscribe(self, node: str, start: int = 0, window: int = 1 << 20) -> int:
        shard = self.nodes[node].config.shard
        return self.ask(node, Subscribe(shard=shard, start=start, window_bytes=window))

    def data(self, node: str, content: bytes, *, epoch: int = 1, lowest: int = 0) -> int:
        return self.ask(node, Data(epoch, lowest, content))

    def gone(self, node: str, token: int) -> None:
        self.nodes[node].give(Gone((token,)))
        self.settle()

    def answer(self, token: int) -> Any:
        """The only one."""
        (answer,) = self.answers[token]
        return answer

    def waits(self, token: int) -> bool:
        return token not in self.answers

    def records(self, token: int) -> Records:
        answer = self.answer(token)
        assert isinstance(answer, Records), answer
        return answer

    def contents(self, token: int) -> list[tuple[int, list[str]]]:
        """First positions and values of the answer's batches: none for no-ops."""
        return shown(self.records(token))

    def delivered(self, token: int) -> list[tuple[int, list[str]]]:
        messages = [each for each in self.answers.get(token, ()) if isinstance(each, Delivered)]
        return [each for message in messages for each in shown(message)]

    def upto(self, token: int) -> int:
        return self.answers[token][-1].upto


def shown(message: Records | Delivered) -> list[tuple[int, list[str]]]:
    return [
        (first, values(content) if content else [])
        for first, content in zip(message.firsts, message.batches, strict=True)
    ]
