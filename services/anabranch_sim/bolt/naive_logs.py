"""What the naive model holds: logs that are lists of all their records, and lazy fronts of them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from anabranch.core.bolt.protocol.commands import Batch, EngineSettings, Row
from anabranch.core.bolt.protocol.fronts import (
    NO_EPOCH,
    ConfigureFront,
    EndFront,
    FrontCommand,
    FrontEpoch,
    FrontMark,
    LeadFront,
    OpenFront,
)
from anabranch.core.quota import Quota
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import Kind, LogId, Milliseconds, OnParentDelete, OnPromote


class Record(NamedTuple):
    """One record, by where its bytes are: the object, its batch's offset there, its place in it."""

    object: int
    offset: int
    nth: int
    at: Milliseconds
    log: LogId
    """That it was appended to."""
    position: int
    """Its first there."""


@dataclass(eq=False)
class Source:
    """A producer as a log knows it."""

    epoch: int
    next: int = 0
    sent: list[tuple[int, Record]] = field(default_factory=list[tuple[int, Record]])

    def known(self, batch: Batch) -> Record | None:
        if batch.epoch != self.epoch:
            return None
        return next((first for sequence, first in self.sent if sequence == batch.sequence), None)


@dataclass(eq=False)
class Front:
    """A lazy front: who may commit through it, and what came."""

    epoch: FrontEpoch = NO_EPOCH
    number: int = 0
    released: int = 0
    records: list[Record] = field(default_factory=list[Record])
    """By offset."""
    ids: list[tuple[int, AppendId]] = field(default_factory=list[tuple[int, AppendId]])
    """Each with its first offset."""
    ends: list[int] = field(default_factory=list[int])
    """The offsets at which batches end."""
    term: int = 0
    version: int = 0

    def listed(self) -> list[tuple[AppendId, int]]:
        """Whole batches are released."""
        since = max((end for end in self.ends if end <= self.released), default=0)
        return [(id, offset) for offset, id in self.ids if offset >= since]

    def apply(self, command: FrontCommand) -> str:
        """The code of a refusal, or an empty one."""
        match command:
            case LeadFront():
                self.term += 1
                self.version += 1
            case ConfigureFront(configuration=asked):
                if (asked.term, asked.version) != (self.term, self.version + 1):
                    return "deposed"
                self.version = asked.version
            case OpenFront(epoch=epoch):
                if epoch < self.epoch:
                    return "stale-view"
                if epoch > self.epoch:
                    self.epoch, self.number = epoch, 0
            case EndFront():
                return "bad-request"  # nobody asks for it here
        return ""

    def commit(self, log: "List", object: int, row: Row, at: Milliseconds) -> list[int]:
        """The next batch; the first position of each of its record batches."""
        assert row.front is not None
        firsts: list[int] = []
        offset = row.offset
        for batch in row.batches:
            first = len(log.records)
            records = [
                Record(object, offset, nth, at, log.id, first + nth) for nth in range(batch.count)
            ]
            for heir in log.heirs():
                heir.records.extend(records)
            id = AppendId(batch.producer, batch.epoch, batch.sequence)
            self.ids.append((len(self.records), id))
            self.records += records
            firsts.append(first)
            offset += batch.length
        self.number += 1
        self.ends.append(len(self.records))
        self.released = max(self.released, row.front.released)
        return firsts


@dataclass(eq=False)
class List:
    """A log: its records, inherited ones included."""

    id: LogId
    name: str
    kind: Kind
    parent: "List | None" = None
    records: list[Record] = field(default_factory=list[Record])
    children: list["List"] = field(default_factory=list["List"])
    fork_point: int = 0
    start: int = 0
    promotable: bool = False
    policy: OnParentDelete = OnParentDelete.ORPHAN
    expires_at: Milliseconds | None = None
    sources: dict[int, Source] = field(default_factory=dict[int, Source])
    cursors: dict[str, list[Record]] = field(default_factory=dict[str, list[Record]])
    """What the consumer behind each has read."""
    chosen: dict[str, OnPromote] = field(default_factory=dict[str, OnPromote])
    quota: Quota | None = None
    owner: str = ""
    engine: str = ""
    settings: EngineSettings | None = None
    front: "Front | None" = None

    @property
    def depth(self) -> int:
        return self.parent.depth + 1 if self.parent else 0

    @property
    def own_records(self) -> int:
        """Records that came by appends here, or by promotions into here, trimmed ones included."""
        if self.kind is Kind.CONTINUOUS and self.parent:
            return len(self.records) - len(self.parent.records)
        return len(self.records) - self.fork_point

    def heirs(self) -> "list[List]":
        """Everything that gets what is appended here, this log first."""
        found: list[List] = [self]
        for log in found:
            found += [child for child in log.children if child.kind is Kind.CONTINUOUS]
        return found

    def needed_from(self) -> int:
        """The first position that this log or a fork of it may still read."""
        needed = [self.start]
        here = {record: position for position, record in enumerate(self.records)}
        for child in self.children:
            low = child.needed_from()
            inherited = child.records[low : child.fork_point]
            if child.kind is Kind.CONTINUOUS:
                inherited = child.records[low:]
            needed += [here[record] for record in inherited if record in here][:1]
        return min(needed)

    def on_promote(self, cursor: str) -> OnPromote:
        usual = OnPromote.FOLLOW if self.promotable else OnPromote.STAY
        return self.chosen.get(cursor, usual)

    def forget_cursor(self, name: str) -> None:
        self.cursors.pop(name, None)
        self.chosen.pop(name, None)

    def undecided(self) -> "list[List]":
        return [child for child in self.children if child.promotable]

    def held_from(self) -> int | None:
        """From which position on a promotion above would change this log; None if none can.

        A promotable fork escapes what holds its siblings. Any other holds the image of the first
        record of its parent that isn't settled there (spec 6.2).
        """
        parent = self.parent
        if parent is None or self.kind is not Kind.CONTINUOUS:
            return None
        limit = parent.held_from()
        if not self.promotable:
            points = [fork.fork_point for fork in parent.undecided()]
            limit = min(points if limit is None else [*points, limit], default=None)
        if limit is None:
            return None
        if limit == len(parent.records):
            return len(self.records)
        return self.records.index(parent.records[limit])

    def settled(self) -> int:
        held = self.held_from()
        points = [len(self.records), *(fork.fork_point for fork in self.undecided())]
        return min(points) if held is None else min(held, *points)


def refusal_of(log: List, mark: FrontMark) -> str:
    """Why this batch of a front isn't the log's next; empty if it is."""
    front = log.front
    if front is None:
        return "bad-request"
    if mark.epoch != front.epoch:
        return "stale-view"
    if mark.number != front.number + 1:
        return "sequence-gap"
    return "append-blocked" if log.held_from() is not None else ""
