"""Which item of a shard's log holds a position: two numbers per push, in memory."""

from array import array
from bisect import bisect_right

import msgspec

from anabranch.core.types import LocalSequence, Position


class MapImage(msgspec.Struct, frozen=True, array_like=True):
    """The map as a snapshot has it."""

    first: LocalSequence
    starts: bytes
    ends: bytes


class ItemMap:
    """Items in their order, from local sequence `first` up to `last`, each with a range of
    positions that may be empty. Where one begins behind the end of the one before, the shard wasn't
    a part of the log: no row in between names it.
    """

    def __init__(self) -> None:
        self.first: LocalSequence = 0
        self._starts = array("Q")
        self._ends = array("Q")

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def last(self) -> LocalSequence:
        return self.first + len(self._ends)

    @property
    def begin(self) -> Position:
        """Positions below are unknown here."""
        return self._starts[0] if self._starts else 0

    @property
    def end(self) -> Position:
        return self._ends[-1] if self._ends else 0

    def add(self, local: LocalSequence, start: Position, end: Position) -> None:
        assert local == self.last, "items come in order"
        assert self.end <= start <= end, "positions only grow along a log"
        self._starts.append(start)
        self._ends.append(end)

    def cut(self, to: LocalSequence) -> None:
        """Forget the items from here on."""
        assert self.first <= to <= self.last
        del self._starts[to - self.first :], self._ends[to - self.first :]

    def skip(self, to: LocalSequence) -> None:
        """Forget all items; the next one is at this place."""
        self.first = to
        del self._starts[:], self._ends[:]

    def trim(self, to: LocalSequence) -> None:
        """Forget the items before this one."""
        gone = max(0, min(to, self.last) - self.first)
        del self._starts[:gone], self._ends[:gone]
        self.first += gone

    def holder(self, position: Position) -> LocalSequence:
        """The first item that ends behind this position: it holds it, or lies behind a gap."""
        return self.first + bisect_right(self._ends, position)

    def start(self, local: LocalSequence) -> Position:
        """Where this item begins, or the next one would."""
        assert self.first <= local <= self.last
        return self._starts[local - self.first] if local < self.last else self.end

    def end_before(self, local: LocalSequence) -> Position:
        """Where the item before this one ends."""
        assert self.first <= local <= self.last
        return self._ends[local - self.first - 1] if local > self.first else self.begin

    def image(self) -> MapImage:
        return MapImage(self.first, self._starts.tobytes(), self._ends.tobytes())

    def restore(self, image: MapImage) -> None:
        self.first = image.first
        self._starts, self._ends = array("Q", image.starts), array("Q", image.ends)
        assert len(self._starts) == len(self._ends)
