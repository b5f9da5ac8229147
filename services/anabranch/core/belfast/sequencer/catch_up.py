"""Shards that meet their rounds later than the first does, and not late enough to lag.

Where rates are steady such a distance stays as it came about, and every cut waits for it. So who
trails by much of a round, on average, catches up: once, and then not again for a window's length,
since it costs the no-ops of as much as it trails by.
"""

from collections import deque
from dataclasses import dataclass

from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.sequencer.cuts import Progress
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.types import Nanoseconds

TRAIL_PERCENT = 50
"""Of T_ord."""
ROUNDS_MIN = 16
"""Of a shard, before anything is said of its average."""
REMEMBERED = 64


@dataclass(slots=True)
class _Trail:
    began: int
    """The furthest shard's rounds when this was first measured."""
    usual: Nanoseconds = 0
    """Behind the first, smoothed."""


class Trailing:
    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._limit = plan.rules.t_ord * TRAIL_PERCENT // 100
        self._met: deque[tuple[int, Nanoseconds]] = deque(maxlen=REMEMBERED)
        """When the first shard was so far."""
        self._trails: dict[ShardId, _Trail] = {}
        self._looked = 0

    def heard(self, shard: ShardId, now: Nanoseconds) -> None:
        """It has come further."""
        progress = self._progress
        assert shard in progress.marks, "what it reported is taken first"
        if not self._met or progress.furthest > self._met[-1][0]:
            self._met.append((progress.furthest, now))
        done = progress.marks[shard].done
        first = next((at for met, at in self._met if met >= done), now)
        trail = self._trails.setdefault(shard, _Trail(progress.furthest))
        trail.usual += (now - first - trail.usual) // 8

    def look(self) -> list[ShardId]:
        """Who should catch up, asked when the first shard has just met another round."""
        furthest = self._progress.furthest
        window = self._plan.cutting
        if furthest == self._looked or window is None or window.groups > 1:
            return []
        self._looked = furthest
        found = [
            shard
            for shard, trail in self._trails.items()
            if trail.usual >= self._limit and furthest - trail.began >= ROUNDS_MIN
            if self._progress.lag_of(shard)
        ]
        pause = max(self._plan.rules.window, ROUNDS_MIN)
        for shard in found:
            self._trails[shard] = _Trail(furthest + pause - ROUNDS_MIN)
        return found

    def forget(self, shard: ShardId) -> None:
        self._trails.pop(shard, None)
