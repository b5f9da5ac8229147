"""Row groups: consecutive rows, cut once in a fence, that go to every shard in one push."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from anabranch.core.erwin.protocol.rows import Row
from anabranch.core.limits import MIB
from anabranch.core.types import Milliseconds, Position


class PushBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much the leader puts into one push, and how much it has under way."""

    group_bytes: int = MIB
    """A row group is full when its batches have so many bytes; one more batch may exceed that."""
    group_rows: int = 4_096
    """Or when it has so many rows."""
    eager_groups: int = 2
    """A group that isn't full is cut while fewer than this are under way. The others wait for
    company, because each group costs every shard a write to its journals.
    """
    groups_max: int = 64
    """Groups under way at a time."""
    bytes_max: int = 16 * MIB
    """Bytes of all groups under way, past which nothing is cut."""
    retry_ms: int = 200
    """A shard that owes an answer and gave none for so long is asked how far it is."""


PUSH_BOUNDS = PushBounds()


@dataclass(frozen=True, slots=True)
class RowGroup:
    rows: list[Row]
    batches: dict[int, list[bytes]]
    """Mode m: of each shard's own rows, in their order."""
    loads: dict[int, int]
    """Bytes of the records that each shard has to store."""
    size: int
    """Of all records, in bytes."""
    waits_ms: list[Milliseconds] = field(default_factory=list[int])
    """Mode st: how long a shard waits for each row's data. One for all if there is one."""

    @property
    def first(self) -> Position:
        return self.rows[0].first

    @property
    def end(self) -> Position:
        return self.rows[-1].end

    def wait_ms(self, nth: int) -> Milliseconds:
        """Of this row."""
        assert len(self.waits_ms) <= 1 or nth < len(self.waits_ms)
        return self.waits_ms[nth if len(self.waits_ms) > 1 else 0] if self.waits_ms else 0


class GroupsUnderWay:
    """The groups that some shard may not hold yet, in their order and without a gap."""

    def __init__(self, base: Position) -> None:
        self.end: Position = base
        """Of the last group ever added."""
        self.size: int = 0
        """Bytes of the groups."""
        self._groups: deque[RowGroup] = deque()

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def first(self) -> Position:
        """All shards hold everything below."""
        return self._groups[0].first if self._groups else self.end

    def add(self, group: RowGroup) -> None:
        assert group.first == self.end, "positions are dense"
        assert all(row.count > 0 for row in group.rows), "an append has records"
        self._groups.append(group)
        self.end = group.end
        self.size += group.size

    def since(self, position: Position) -> Iterator[RowGroup]:
        """The groups that end behind this position."""
        assert position >= self.first, "what all shards hold isn't kept"
        return (group for group in self._groups if group.end > position)

    def rows_at(self, positions: Iterable[Position]) -> Iterator[tuple[Row, Milliseconds]]:
        """The rows that begin at these positions and aren't held by all shards, with their waits.
        Positions are in order.
        """
        groups = iter(self._groups)
        group = next(groups, None)
        for position in positions:
            while group is not None and group.end <= position:
                group = next(groups, None)
            if group is None:
                return
            nth = bisect_left(group.rows, position, key=lambda row: row.first)
            if group.rows[nth : nth + 1] and group.rows[nth].first == position:
                yield group.rows[nth], group.wait_ms(nth)

    def release(self, upto: Position) -> Iterator[RowGroup]:
        """Remove and yield the groups that end at or before this position."""
        assert upto <= self.end
        while self._groups and self._groups[0].end <= upto:
            group = self._groups.popleft()
            self.size -= group.size
            yield group
        assert self.size >= 0
