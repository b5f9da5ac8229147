"""Shards that are slow for reasons other than their rate: they rest without a quota (4.6).

Late is what takes several ordering intervals, and several times as long as others take: where
all are slow, nobody straggles.
"""

from dataclasses import dataclass
from enum import IntEnum

from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.types import Nanoseconds


class Turn(IntEnum):
    FULL = 0
    REST = 1
    """No quota in this window."""
    PROBE = 2
    """A quota of 1, to see whether it keeps up."""


@dataclass(slots=True)
class _Pace:
    reported_at: Nanoseconds | None = None
    usual: Nanoseconds = 0
    """Between two reports, smoothed."""
    late: int = 0
    """In a row."""
    late_at: Nanoseconds = 0
    on_time: int = 0
    straggles: bool = False
    until: int = -1
    """It rests in windows below this one; -1: it has never rested."""
    proving: bool = False


class Stragglers:
    def __init__(self, plan: Plan) -> None:
        self._rules = plan.rules
        self._counters = plan.counters
        self._slow = plan.rules.intervals(plan.rules.slow_intervals)
        self._paces: dict[ShardId, _Pace] = {}

    def heard(self, shard: ShardId, now: Nanoseconds, signalled: Nanoseconds | None) -> None:
        """It has come further. An answer to a signal mustn't be late behind that either."""
        pace = self._paces.setdefault(shard, _Pace())
        before, pace.reported_at = pace.reported_at, now
        since = min((at for at in (before, signalled) if at is not None), default=None)
        if since is None:
            return
        if self._is_late(shard, now - since):
            pace.late += 1
            pace.late_at = now
            pace.on_time = 0
            pace.straggles = pace.straggles or pace.late > self._rules.slow_reports
            return
        if now - pace.late_at <= self._slow:
            return  # what had waited behind a late report comes with it
        if signalled is None:
            # A shard waits where another one keeps windows from being published: that isn't usual.
            took = min(now - since, 2 * pace.usual) if pace.usual else now - since
            pace.usual += (took - pace.usual) // 8 if pace.usual else took
        pace.late = 0
        pace.on_time += 1
        if pace.on_time > self._rules.slow_reports:
            pace.proving = False

    def turn(self, shard: ShardId, window: int) -> Turn:
        """In the window of this number, which is about to be published."""
        assert window >= 0, "windows are numbered from 0"
        pace = self._paces.get(shard)
        if pace is None:
            return Turn.FULL
        if window < pace.until:
            return Turn.REST
        cooled = pace.until < 0 or window >= pace.until + self._rules.rest_windows
        if pace.straggles and (pace.proving or cooled):
            return Turn.REST
        return Turn.PROBE if pace.proving else Turn.FULL

    def rest(self, shard: ShardId, window: int) -> None:
        """From this window on, unless it does so already."""
        assert window >= 0, "windows are numbered from 0"
        pace = self._paces[shard]
        if window >= pace.until:
            self._counters.rests += 1
            self._paces[shard] = _Pace(until=window + self._rules.rest_windows, proving=True)

    def idle(self, shard: ShardId) -> None:
        """It has reported all that is published: from here on it is others who are late."""
        pace = self._paces.get(shard)
        if pace is not None:
            pace.reported_at = None

    def resting(self, shard: ShardId, window: int) -> bool:
        pace = self._paces.get(shard)
        return pace is not None and window < pace.until

    def forget(self, shard: ShardId) -> None:
        self._paces.pop(shard, None)

    def forgive(self) -> None:
        """The leader itself was away: what it measured says nothing."""
        for pace in self._paces.values():
            pace.reported_at = None
            pace.late = pace.late_at = 0

    def _is_late(self, shard: ShardId, took: Nanoseconds) -> bool:
        assert took >= 0, "time never goes back"
        if took <= self._slow:
            return False
        others = sorted(p.usual for each, p in self._paces.items() if each != shard and p.usual)
        usual = others[len(others) // 2] if others else 0
        return bool(others) and took > self._rules.slow_intervals * usual
