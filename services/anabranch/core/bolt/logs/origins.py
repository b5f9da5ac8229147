"""Which log each record of an index was first appended to, and at which position there.

A record's origin is its identity: a log's id is never given twice, and a log's tail only grows, so
no two appends share one. Forks refer to their ancestors' extents and keep origins for free. A
promotion and an orphaning move extents into another index; where they do, the origin is noted here.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from anabranch.core.types import LogId, Position

HERE = LogId(0)
"""Stands for the log whose index it is; ids begin at 1."""

Noted = tuple[Position, LogId, int]
"""(position, log, shift): from this position on records came from `log`, at position - shift."""

_NOTHING = array("q")
"""Of every log that nothing was moved into; stays empty. Nearly all forks are such logs."""


class Origins:
    """Runs of positions that share a log and a shift, each up to the next; 24 bytes a run.

    Before the first run, and for a log that nothing was moved into, records are where they were
    appended.
    """

    __slots__ = ("first", "log", "shift")

    def __init__(self) -> None:
        self.first = self.log = self.shift = _NOTHING

    def load(self, first: bytes, log: bytes, shift: bytes) -> None:
        """Take over the columns that a snapshot kept."""
        assert not len(self), "it is new"
        assert len(first) == len(log) == len(shift)
        if first:
            self.first, self.log, self.shift = array("q", first), array("q", log), array("q", shift)

    def __len__(self) -> int:
        return len(self.first)

    def note(self, position: Position, log: LogId, shift: int) -> None:
        """Records from this position on, which is no lower than any noted, came from there."""
        assert position >= 0, "positions begin at 0"
        while self.first and self.first[-1] >= position:
            assert self.first[-1] == position, "origins are noted in order of position"
            self._keep(len(self) - 1)
        last = (self.log[-1], self.shift[-1]) if self.first else (HERE, 0)
        if last != (log, shift):
            if self.first is _NOTHING:
                self.first, self.log, self.shift = array("q"), array("q"), array("q")
            self.first.append(position)
            self.log.append(log)
            self.shift.append(shift)

    def at(self, position: Position) -> tuple[LogId, Position, Position | None]:
        """A record's origin, and the position from which on another run says it; None if none."""
        following = bisect_right(self.first, position)
        end = self.first[following] if following < len(self.first) else None
        if not following:
            return HERE, position, end
        return LogId(self.log[following - 1]), position - self.shift[following - 1], end

    def within(self, start: Position, end: Position) -> Iterator[Noted]:
        """The runs of these positions; the first begins at `start`."""
        assert start >= 0, "positions begin at 0"
        position: Position | None = start
        while position is not None and position < end:
            log, there, following = self.at(position)
            yield position, log, position - there
            position = following

    def cut(self, position: Position) -> None:
        """Forget what is noted of this position and those after it."""
        self._keep(bisect_left(self.first, position))

    def drop_below(self, position: Position) -> None:
        """Forget what is noted only of positions before this one."""
        gone = bisect_right(self.first, position) - 1
        if gone > 0:
            del self.first[:gone], self.log[:gone], self.shift[:gone]
        if len(self) == 1 and self.log[0] == HERE and not self.shift[0]:
            self._keep(0)

    def _keep(self, count: int) -> None:
        assert 0 <= count <= len(self), "no such run"
        del self.first[count:], self.log[count:], self.shift[count:]
