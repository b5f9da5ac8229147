"""Which part of the log's map each shard has: a shard that is added late lacks what came before."""

from anabranch.core.erwin.protocol.letters import Push, Pushed
from anabranch.core.erwin.protocol.rows import Fence, Row
from anabranch.core.types import Position

_NO_FENCE = Fence(0, 0)


class KnownRows:
    """By shard: ranges of positions whose rows it has said to be durable."""

    def __init__(self) -> None:
        self._bases: dict[tuple[Fence, int], Position] = {}
        """Where the leader of a fence began with a shard."""
        self._fences: dict[int, Fence] = {}
        """The last that a shard has answered."""
        self._ranges: dict[int, list[tuple[Position, Position]]] = {}

    def pushed(self, shard: int, push: Push) -> None:
        """A leader pushes to this shard."""
        assert shard >= 0, "rows of nobody are pushed to all shards"
        self._bases[push.fence, shard] = push.base

    def answered(self, answer: Pushed) -> None:
        """The shard has cut off what it held beyond the base of a new fence, and begins there if it
        held less.
        """
        shard, fence = answer.shard, answer.fence
        base = self._bases.get((fence, shard))
        if base is None or fence < self._fences.get(shard, _NO_FENCE):
            return
        ranges = self._ranges.setdefault(shard, [])
        if fence != self._fences.get(shard):
            self._fences[shard] = fence
            ranges[:] = [(first, min(end, base)) for first, end in ranges if first < base]
        if answer.upto <= base:
            return
        if ranges and ranges[-1][1] >= base:
            first, end = ranges[-1]
            ranges[-1] = first, max(end, answer.upto)
        else:
            assert not ranges or ranges[-1][1] < base, "ranges are apart and in order"
            ranges.append((base, answer.upto))

    def has(self, shard: int, row: Row) -> bool:
        assert row.count > 0, "a row has positions"
        ranges = self._ranges.get(shard, [])
        return any(first <= row.first and row.end <= end for first, end in ranges)
