"""Nodes of an Erwin log in memory, for `world.py`: what each of them holds, and what it takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from anabranch.client.erwin.dialect import FromNode, ToNode
from anabranch.core.errors import AnabranchError, RequestForgotten
from anabranch.core.erwin.protocol.directory import Directory
from anabranch.core.erwin.protocol.messages import Read, Records, Span
from anabranch.core.records.record import decode
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import SequencingStatus
from anabranch.core.types import Position


@dataclass(frozen=True)
class Held:
    """An append in a ring. `shard`: of mode st."""

    id: AppendId
    count: int
    batch: bytes
    shard: str = ""


@dataclass
class Member:
    """A sequencing replica's state, which view changes carry over."""

    view: int = 0
    sealed: bool = False
    ring: list[Held] = field(default_factory=list[Held])
    known: dict[AppendId, str] = field(default_factory=dict[AppendId, str])
    """Ordered ids that a client may repeat, with their shards."""
    lowest: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def copy(self) -> "Member":
        return Member(self.view, self.sealed, [*self.ring], dict(self.known), dict(self.lowest))

    def take(self, held: Held, lowest: int) -> str | AnabranchError:
        """The shard that the append is known with, or why it isn't taken."""
        id = held.id
        for each in self.ring:
            if each.id == id:
                self._forget(id, lowest)
                return each.shard
        if id in self.known:
            return self.known[id]
        producer = id.producer, id.epoch
        if producer not in self.lowest and lowest != 0:
            return RequestForgotten("an append")
        if id.sequence < self.lowest.get(producer, 0):
            return held.shard
        self._forget(id, lowest)
        self.ring.append(held)
        return held.shard

    def _forget(self, id: AppendId, lowest: int) -> None:
        producer = id.producer, id.epoch
        self.lowest[producer] = max(lowest, self.lowest.get(producer, 0))
        for each in [each for each in self.known if (each.producer, each.epoch) == producer]:
            if each.sequence < lowest:
                del self.known[each]


@dataclass
class Node:
    """One process, as the network sees it."""

    name: str
    inbox: list[tuple[int, ToNode]] = field(default_factory=list[tuple[int, ToNode]])
    outbox: list[tuple[int, FromNode]] = field(default_factory=list[tuple[int, FromNode]])
    line: int | None = None
    """Of the connection that is open."""
    refusing: bool = False
    """Whoever dials it is hung up on."""
    knows: int = 0
    """The version of the configuration that it tells."""
    data: dict[AppendId, bytes] = field(default_factory=dict[AppendId, bytes])
    """Mode st: a shard's unordered batches."""
    feeds: dict[int, int] = field(default_factory=dict[int, int])
    """Subscriptions, each with what it was told of."""
    member: Member | None = None
    unsure: bool = False
    """It says of appends that it can't tell."""


@dataclass(frozen=True)
class Bound:
    """A row, with its records; without any they are no-ops."""

    id: AppendId
    first: int
    count: int
    shard: str
    batch: bytes

    @property
    def end(self) -> int:
        return self.first + self.count

    def values(self) -> list[bytes | None]:
        return [each.value for each in decode(self.batch)] if self.batch else []


def records_of(rows: Sequence[Bound], asked: Read, trimmed: int) -> Records:
    """What a shard answers of a log with these rows."""
    own: list[Bound] = []
    spans: list[Span] = []
    upto = asked.start
    for row in [row for row in rows if row.end > asked.start]:
        if sum(each.count for each in own) >= asked.records_max:
            break
        if row.shard == asked.shard:
            own.append(row)
        else:
            first = max(row.first, asked.start)
            spans.append(Span(first, row.end - first, row.shard))
        upto = row.end
    return Records(
        upto=upto,
        stable=rows[-1].end if rows else 0,
        trimmed=trimmed,
        firsts=tuple(row.first for row in own),
        counts=tuple(row.count for row in own),
        batches=tuple(row.batch for row in own),
        elsewhere=tuple(spans),
    )


def status_of(
    directory: Directory, mode: str, *, stable: Position, trimmed: Position
) -> SequencingStatus:
    """What a sequencer answers of a log of which everything is ordered."""
    return SequencingStatus(
        version=1,
        view=directory.view,
        leader=directory.leader,
        members=directory.members,
        mode=mode,
        durability="fsync",
        stable=stable,
        tail=stable,
        trimmed=trimmed,
        backlog_records=0,
        backlog_bytes=0,
        ring_bytes_max=1,
        shards=(),
    )
