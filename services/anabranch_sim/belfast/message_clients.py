"""Clients of a deployment at the level of its messages: who appends, who watches, who asks."""

from collections import deque
from functools import partial
from typing import Any

from anabranch.core.belfast.protocol.messages import (
    Append,
    Appended,
    Confirmed,
    Delivered,
    Directory,
    Done,
    Eras,
    Failed,
    Join,
    Leave,
    Subscribe,
    Trim,
    Where,
)
from anabranch.core.errors import AnabranchError, RecordVoided, ShardLeft
from anabranch.core.history.calls import RecordId, Verdict
from anabranch.core.history.foretold import (
    Account,
    Follower,
    Placing,
    Resumed,
    Settled,
    Shown,
    Voided,
    Watching,
)
from anabranch.core.records.batch import measure
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.types import Position
from anabranch.core.wire.session import Credit
from anabranch_sim.belfast.deployment import BelfastDeployment
from anabranch_sim.belfast.node_client import NodeClient, server_of
from anabranch_sim.world.connection import Connection

KEYS = 4
PRODUCERS = 1_000
"""More clients than there are."""


def record_of(number: RecordId) -> Record:
    return Record(b"%d" % number, b"k%d" % (number % KEYS))


class Archive:
    """Every record that was ever made, by its number, and what is told of it."""

    def __init__(self) -> None:
        self.account = Account()
        self.faults: list[str] = []
        self._decoded: dict[bytes, list[RecordId]] = {}

    def placing(self, client: int, shard: str, count: int) -> Placing:
        """So many new records, to be appended together."""
        known = self.account.shard_of
        numbers = list(range(len(known), len(known) + count))
        known.update((number, shard) for number in numbers)
        placing = Placing(client, shard, 0, numbers)
        self.account.placings.append(placing)
        return placing

    @staticmethod
    def batch(placing: Placing, producer: int, sequence: int) -> bytes:
        records = [record_of(number) for number in placing.records]
        return encode(
            records, producer_id=producer, producer_epoch=0, base_sequence=sequence, now=1
        )

    def numbers(self, batch: bytes) -> list[RecordId]:
        content = bytes(batch)
        known = self._decoded.get(content)
        if known is None:
            known = [int(record.value or b"-1") for record in decode(content)]
            self._decoded[content] = known
        return known

    def shown(self, delivered: Delivered) -> Shown:
        """Its records with their positions."""
        records: list[RecordId] = []
        for batch, (skipped, count) in zip(delivered.batches, delivered.parts, strict=True):
            held = self.numbers(batch)
            if measure(batch)[1] < skipped + count:
                self.faults.append(f"{skipped}+{count} records of a batch of {len(held)}")
            records += held[skipped : skipped + count]
        positions = [p for run in delivered.runs for p in range(run.first, run.end)]
        if len(positions) != len(records):
            self.faults.append(f"{len(positions)} positions came with {len(records)} records")
            del positions[len(records) :]
        return Shown(delivered.upto, positions, records, delivered.speculative)


class Appender(NodeClient):
    """One producer at one shard: batches in order, some in flight, each until it is placed."""

    def __init__(
        self,
        deployment: BelfastDeployment,
        archive: Archive,
        number: int,
        shard: str,
        in_flight: int,
    ) -> None:
        super().__init__(deployment, f"appender-{number}")
        self.archive = archive
        self.number = number
        self.shard = shard
        self.finished = False
        """Nothing more will be appended."""
        self._in_flight = in_flight
        self._producer = number
        self._sequence = 0
        self._requests = 0
        self._waiting: deque[Placing] = deque()
        self._sent: deque[tuple[bytes, Placing]] = deque()
        """On a connection that is no more."""
        self._open: dict[int, tuple[bytes, Placing]] = {}
        """By the request that asked for it on this connection."""

    @property
    def idle(self) -> bool:
        return self.over or not (self._waiting or self._sent or self._open)

    @property
    def ready(self) -> bool:
        """Connected to its shard's primary."""
        return self.at is not None and self.at.open and self._spoken

    def append(self, count: int) -> None:
        if self.over:
            return
        placing = self.archive.placing(self.number, self.shard, count)
        placing.invoked = self.world.stamp()
        self._waiting.append(placing)
        self._push()

    def target(self, directory: Directory) -> str:
        return next((each.primary for each in directory.shards if each.name == self.shard), "")

    def speak(self, connection: Connection) -> None:
        self._push()

    def waits(self) -> bool:
        return not self.idle

    def lost(self) -> None:
        """What was asked is asked again, in its order."""
        self._sent.extendleft(reversed(self._open.values()))
        self._open.clear()

    def hear(self, request: int, message: Any) -> None:
        assert isinstance(message, Appended), message
        if request not in self._open:
            return
        _, placing = self._open.pop(request)
        placing.positions = [p for run in message.runs for p in range(run.first, run.end)]
        if len(placing.positions) != len(placing.records):
            self.archive.faults.append(f"{placing.records} were acknowledged with {message.runs}")
            return
        placing.returned, placing.verdict = self.world.stamp(), Verdict.OK
        self._push()

    def refused(self, request: int, error: AnabranchError) -> None:
        """Its shard has left, or has lost what was never placed: what follows needs new numbers."""
        self.world.note(self.name, "is refused:", error)
        _, placing = self._open.pop(request)
        if isinstance(error, RecordVoided):
            placing.verdict = Verdict.REFUSED
        if isinstance(error, ShardLeft):
            self.end()
            return
        self._producer += PRODUCERS
        self._sequence = 0
        self._push()

    def _push(self) -> None:
        connection = self.at
        if connection is None or not self.ready:
            return
        while len(self._open) < self._in_flight and (self._sent or self._waiting):
            batch, placing = self._sent.popleft() if self._sent else self._launch()
            self._requests += 1
            self._open[self._requests] = batch, placing
            connection.transmit(self._requests, Append(batch))

    def _launch(self) -> tuple[bytes, Placing]:
        placing = self._waiting.popleft()
        batch = self.archive.batch(placing, self._producer, self._sequence)
        self._sequence += len(placing.records)
        return batch, placing


class Observer(NodeClient):
    """Follows one shard's records from a position on, and remembers all it was told."""

    def __init__(
        self,
        deployment: BelfastDeployment,
        archive: Archive,
        name: str,
        shard: str,
        start: Position,
        where: Where | None = None,
    ) -> None:
        super().__init__(deployment, name)
        self.archive = archive
        self.shard = shard
        self.where = where
        self.confirmed = start
        self.upto = start
        self.fails = 0
        self.view = 0
        self.shards: set[str] = set()
        """All that are named by eras."""
        self.watching = Watching(name, start, (shard,))
        if where is not None:
            self.watching.wanted = partial(is_wanted, where)
        archive.account.watchings.append(self.watching)
        self._request = 0
        self._failures: set[int] = set()
        """Views whose beginning it was told of."""

    @property
    def settled(self) -> Position:
        """All below has come, and is final."""
        return min(self.confirmed, self.upto)

    def held(self) -> dict[Position, RecordId]:
        """All that it knows to be final."""
        return Follower.of(self.watching).final

    def target(self, directory: Directory) -> str:
        return server_of(directory, self.shard)

    def speak(self, connection: Connection) -> None:
        self._request += 1
        self.upto = self.settled
        self.watching.sights.append(Resumed(self.upto))
        window = self.world.rng.choice((200, 4_000, 1 << 20))
        ask = Subscribe(self.shard, self.upto, self.where, window)
        connection.transmit(self._request, ask)

    def hear(self, request: int, message: Any) -> None:
        if request != self._request:
            return
        sights = self.watching.sights
        match message:
            case Delivered(view, upto):
                self._see(view)
                sights.append(self.archive.shown(message))
                self.upto = upto
                size = sum(len(batch) for batch in message.batches)
                if size:
                    self.world.after(self.world.between(0, 2_000_000), partial(self._credit, size))
            case Confirmed(view, upto):
                self._see(view)
                sights.append(Settled(upto))
                self.confirmed = max(self.confirmed, upto)
            case Failed(view=view) if view in self._failures:
                pass  # said again by who stands in (spec, D8)
            case Failed(view=view, since=since, shards=shards):
                self._see(view)
                self._failures.add(view)
                self.fails += 1
                kept = self.shard not in shards
                sights.append(Voided(since, kept))
                if not kept:
                    self.upto = min(self.upto, since)
            case Eras(eras):
                self.shards.update(name for _, names in eras for name in names)
            case _:
                self.archive.faults.append(f"{self.name} heard {message}")

    def refused(self, request: int, error: AnabranchError) -> None:
        self.archive.faults.append(f"{self.name} at {self.upto} is refused: {error.message}")
        self.end()

    def _see(self, view: int) -> None:
        if view < self.view:
            self.archive.faults.append(f"{self.name} heard of view {view} after {self.view}")
        self.view = view

    def _credit(self, size: int) -> None:
        if self.at is not None and self.at.open:
            self.at.transmit(self._request + (1 << 21), Credit(self._request, size))


def is_wanted(where: Where, record: RecordId) -> bool:
    return where.key_prefix is None or (b"k%d" % (record % KEYS)).startswith(where.key_prefix)


class Admin(NodeClient):
    """One thing that the leader is asked for: a trim, or to let a shard go, or back."""

    def __init__(
        self, deployment: BelfastDeployment, name: str, message: Trim | Leave | Join
    ) -> None:
        super().__init__(deployment, name)
        self.message = message
        self.done = False

    def target(self, directory: Directory) -> str:
        return directory.leader

    def speak(self, connection: Connection) -> None:
        connection.transmit(1, self.message)

    def hear(self, request: int, message: Any) -> None:
        assert isinstance(message, Done), message
        self.done = True
        self.end()

    def refused(self, request: int, error: AnabranchError) -> None:
        self.world.note(self.name, "is refused:", error)
        self.end()
