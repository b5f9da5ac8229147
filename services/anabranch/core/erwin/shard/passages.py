"""What lies from one position on, as readers and subscribers get it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from anabranch.core.erwin.protocol.messages import Span
from anabranch.core.erwin.shard.items import ShardItem
from anabranch.core.types import Position

ROWS_MAX = 10_000
"""Of one answer, whoever's they are: it bounds what an answer costs."""


@dataclass(slots=True)
class Passage:
    upto: Position
    """Everything below, from where it begins, is in the passage."""
    size: int = 0
    records: int = 0
    rows: int = 0
    firsts: list[Position] = field(default_factory=list[Position])
    counts: list[int] = field(default_factory=list[int])
    batches: list[bytes] = field(default_factory=list[bytes])
    elsewhere: list[Span] = field(default_factory=list[Span])

    def add(self, first: Position, count: int, batch: bytes) -> None:
        assert count > 0, "a batch has one record at least"
        self.firsts.append(first)
        self.counts.append(count)
        self.batches.append(batch)
        self.size += len(batch)
        self.records += count if batch else 0

    def add_span(self, first: Position, count: int, shard: str) -> None:
        assert count > 0, "a span without positions tells nothing"
        last = self.elsewhere[-1] if self.elsewhere else None
        if last is not None and last.shard == shard and last.first + last.count == first:
            first, count = last.first, last.count + count
            self.elsewhere.pop()
        self.elsewhere.append(Span(first, count, shard))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    stable: Position
    bytes_max: int
    """At least one batch comes, even if it is larger."""
    records_max: int


def gather(
    items: Sequence[ShardItem],
    start: Position,
    bounds: Bounds,
    name: Callable[[int | None, Position], str | None] | None = None,
) -> Passage:
    """The passage from `start` on. `name` says where the rows of a shard of this number are, or,
    given None, what lies at a position where this shard wasn't a part of the log yet; the passage
    ends at what it doesn't know. Without `name` others' rows are left out.
    """
    passage = Passage(start)
    for item in items:
        if item.first > passage.upto:
            upto = min(item.first, bounds.stable)
            holder = name(None, passage.upto) if name is not None else None
            if holder is not None:
                passage.add_span(passage.upto, upto - passage.upto, holder)
            elif name is not None:
                return passage
            passage.upto = upto
        if not _gather_item(item, passage, bounds, name):
            break
    return passage


def _gather_item(
    item: ShardItem,
    passage: Passage,
    bounds: Bounds,
    name: Callable[[int | None, Position], str | None] | None,
) -> bool:
    """False if the passage ends in this item."""
    for row, batch in item.since(passage.upto):
        if row.end > bounds.stable or passage.rows >= ROWS_MAX:
            return False
        if batch is not None:
            full = (
                passage.size + len(batch) > bounds.bytes_max
                or passage.records + row.count > bounds.records_max
            )
            if full and passage.records:
                return False
            passage.add(row.first, row.count, batch)
        elif name is not None:
            holder = name(row.shard, row.first)
            if holder is None:
                return False
            passage.add_span(passage.upto, row.end - passage.upto, holder)
        passage.rows += 1
        passage.upto = row.end
    return True
