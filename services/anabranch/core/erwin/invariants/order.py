"""The order of a log, as its leaders push it: what a faultless shard would hold (decision 58)."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anabranch.core.erwin.protocol.letters import Push
from anabranch.core.erwin.protocol.rows import Fence, Row
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import Position

Violated = Callable[[str, str], None]
"""Takes a rule and what broke it."""


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What a new fence has put an end to."""

    fence: Fence
    base: Position
    rows: list[Row]
    """Those from the new fence's base on."""


class Order:
    """Rows without gaps from position 0. Those below `stable` are final."""

    def __init__(self, violated: Violated) -> None:
        self.rows: list[Row] = []
        self.fence = Fence(0, 0)
        self.base: Position = 0
        """Where the leader of this fence began."""
        self.stable: Position = 0
        """The highest position that a leader called stable."""
        self.final: dict[AppendId, Row] = {}
        """The rows below `stable`."""
        self.trimmed: Position = 0
        """The highest position below which a leader has let shards forget."""
        self._violated = violated
        self._firsts: list[Position] = []
        self._ahead: dict[Position, Row] = {}
        """Rows of this fence that came before those in front of them."""
        self._replaced: list[_Replaced] = []
        """By fences of which nothing is stable: a shard may not have heard of them."""
        self._lost: list[Row] = []
        """Rows that the log went on without after a loss. Until a leader pushes, shards may hold
        them still, and a view that goes on in place of one that nobody started may keep them.
        """

    @property
    def end(self) -> Position:
        return self.rows[-1].end if self.rows else 0

    def push(self, push: Push) -> None:
        """A leader pushes these rows, to whichever shard."""
        if push.fence < self.fence:
            return
        self._lost.clear()
        if push.fence > self.fence:
            self._begin(push)
        elif push.base < self.base:  # with a shard that was added since, it begins further on
            self._violated("E4", f"{push.fence} began at {self.base}, and says {push.base}")
        at = push.first
        for row in push.rows:
            if row.first != at or row.count < 1:
                self._violated("E7", f"{push.fence} pushes {row} where {at} is next")
                return
            at = row.end
            self._take(row)

    def settle(self, stable: Position) -> list[Row]:
        """Everything below is stable. The rows that are final by this."""
        if stable > self.end:
            self._violated("E4", f"{stable} is called stable, rows end at {self.end}")
            return []
        found = self.between(self.stable, stable)
        for row in found:
            known = self.final.setdefault(row.id, row)
            if known != row:
                self._violated("E7", f"{row.id} has the positions of {known} and of {row}")
            if row.end > stable:
                self._violated("E4", f"{stable}, within {row}, is called stable")
        self.stable = max(self.stable, stable)
        if stable > self.base:
            self._replaced.clear()  # all shards have taken this fence
        return found

    def lose(self, fence: int, base: Position) -> None:
        """All that ordered was lost. The log goes on at `base` with what shards hold, and `fence`
        is the number of the last fence that one of them has taken: later ones replaced nothing.
        """
        for row in self._lost:
            self._append(row)
        while self._replaced and self.fence.number > fence:
            before = self._replaced.pop()
            self._cut(self.base)
            for row in before.rows:
                self._append(row)
            self.fence, self.base = before.fence, before.base
        if base > self.end:
            self._violated("E4", f"the log goes on at {base}, rows end at {self.end}")
        self._lost = self._cut(base)

    def between(self, start: Position, end: Position) -> list[Row]:
        """The rows that have a position from `start` up to and without `end`."""
        if start >= end:
            return []
        first = max(0, bisect_right(self._firsts, start) - 1)
        if self.rows[first : first + 1] and self.rows[first].end <= start:
            first += 1
        return self.rows[first : bisect_left(self._firsts, end)]

    def _begin(self, push: Push) -> None:
        """All shards cut their lists back to where the new leader begins."""
        if push.base < self.stable:
            says = f"{push.fence} begins at {push.base}, stable was {self.stable}"
            self._violated("E4", says)
        if push.base > self.end:
            self._violated("E4", f"{push.fence} begins at {push.base}, rows end at {self.end}")
        fence, base = self.fence, self.base
        self._replaced.append(_Replaced(fence, base, self._cut(push.base)))
        self.fence, self.base = push.fence, push.base

    def _cut(self, to: Position) -> list[Row]:
        """The rows from there on, which are taken out."""
        kept = bisect_left(self._firsts, to)
        if kept and self.rows[kept - 1].end > to:
            self._violated("E4", f"the list is cut at {to}, within {self.rows[kept - 1]}")
        cut = self.rows[kept:]
        del self.rows[kept:], self._firsts[kept:]
        self._ahead.clear()
        return cut

    def _append(self, row: Row) -> None:
        self.rows.append(row)
        self._firsts.append(row.first)

    def _take(self, row: Row) -> None:
        if row.first >= self.end:
            if self._ahead.setdefault(row.first, row) != row:
                self._violated("E7", f"{row.first} is bound to {self._ahead[row.first]} and {row}")
            while (following := self._ahead.pop(self.end, None)) is not None:
                self._append(following)
            return
        known = self.between(row.first, row.first + 1)
        if known != [row]:
            self._violated("E7", f"{row.first} is bound to {known[0]} and to {row}")


def spans(rows: Sequence[Row], start: Position, end: Position) -> int:
    """How many positions from `start` up to and without `end` these rows have."""
    return sum(min(row.end, end) - max(row.first, start) for row in rows)
