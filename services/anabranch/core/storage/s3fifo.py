"""What a cache keeps, chosen as by S3-FIFO (Yang et al., SOSP 2023).

What comes in is on probation, in a tenth of the room, and stays only if it is asked for again. So
one who goes through everything once drives out what he brought in himself, and nothing of what
others come back for.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

PROBATION = 10
"""On probation there is one in so many bytes, or all if the rest is empty."""

READS_MAX = 3
"""Readings that count: a thing is passed over so often when room is made."""

K = TypeVar("K")
V = TypeVar("V")


class _Entry(Generic[V]):
    __slots__ = ("passed", "reads", "value", "weight")

    def __init__(self, value: V, weight: int) -> None:
        assert weight >= 0
        self.value = value
        self.weight = weight
        self.passed = -1
        """The furthest place that a reading began at."""
        self.reads = 0


class Keeping(Generic[K, V]):
    """Things by key, bounded by their weight in bytes."""

    __slots__ = ("_bytes_max", "_ghosts", "_kept", "_probation", "_probation_bytes", "bytes")

    def __init__(self, bytes_max: int) -> None:
        assert bytes_max >= 0
        self._bytes_max = bytes_max
        self._probation: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._kept: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._ghosts: OrderedDict[K, None] = OrderedDict()
        """Those that failed: one that is asked for again soon should have been kept."""
        self._probation_bytes = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._probation) + len(self._kept)

    def __contains__(self, key: K) -> bool:
        return key in self._kept or key in self._probation

    def get(self, key: K, place: int = 0, *, passing: bool = False) -> V | None:
        """To be read from this place on.

        One reader that goes through it bit by bit is one reading; whoever comes to a place that
        was passed before is another. `passing`: without a claim to have it kept for longer.
        """
        entry = self._kept.get(key) or self._probation.get(key)
        if entry is None:
            return None
        if not passing:
            if place <= entry.passed:
                entry.reads = min(entry.reads + 1, READS_MAX)
            entry.passed = max(entry.passed, place)
        return entry.value

    def put(self, key: K, value: V, weight: int, *, fresh: bool = False) -> list[V]:
        """What had to go for it; `fresh`: it will be asked for again, and isn't on probation."""
        assert key not in self
        entry = _Entry(value, weight)
        self.bytes += weight
        if fresh or key in self._ghosts:
            self._ghosts.pop(key, None)
            self._kept[key] = entry
        else:
            self._probation_bytes += weight
            self._probation[key] = entry
        gone: list[V] = []
        while self.bytes > self._bytes_max:
            if self._probation_bytes * PROBATION > self._bytes_max or not self._kept:
                gone += self._judge()
            else:
                gone += self._make_room()
        assert 0 <= self._probation_bytes <= self.bytes <= self._bytes_max
        return gone

    def drop(self, key: K) -> V | None:
        entry = self._kept.pop(key, None)
        if entry is None:
            entry = self._probation.pop(key, None)
            if entry is None:
                return None
            self._probation_bytes -= entry.weight
        self.bytes -= entry.weight
        assert self.bytes >= 0, "more went than came"
        return entry.value

    def _judge(self) -> list[V]:
        """The oldest on probation is kept if it was asked for again."""
        assert self._probation, "nothing is on probation"
        key, entry = self._probation.popitem(last=False)
        self._probation_bytes -= entry.weight
        if entry.reads:
            self._kept[key] = entry
            return []
        self.bytes -= entry.weight
        self._ghosts[key] = None
        while len(self._ghosts) > len(self):
            self._ghosts.popitem(last=False)
        return [entry.value]

    def _make_room(self) -> list[V]:
        """The oldest goes unless it was asked for lately, which is then forgotten bit by bit."""
        assert self._kept, "nothing is kept"
        key, entry = self._kept.popitem(last=False)
        if entry.reads:
            entry.reads -= 1
            self._kept[key] = entry
            return []
        self.bytes -= entry.weight
        return [entry.value]
