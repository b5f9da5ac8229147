"""Whether the log is at rest: nobody appends to it (left to future work in the paper, 6.4)."""

from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.belfast.sequencer.quotas import SPAN_MIN_INTERVALS, Quotas
from anabranch.core.types import Nanoseconds

FLOWING_PERCENT = 25
"""With records in so many of a review's intervals, the log is not at rest any more."""


class Idleness:
    """Rest begins and ends at once, because windows stay published while the log is at rest."""

    def __init__(self, plan: Plan, quotas: Quotas) -> None:
        self._rules = plan.rules
        self._quotas = quotas
        self.at_rest = False
        """Nobody appends, or seldom: a shard fills no quota until some shard has a record, and the
        other shards are then asked to catch up at once.
        """
        self._span = self._rules.intervals(max(self._rules.window, SPAN_MIN_INTERVALS))
        self._reviewed: Nanoseconds = 0
        self._busy = 0

    def review(self, now: Nanoseconds) -> None:
        if not self._rules.adaptive or self._rules.free_will:
            return
        if self._reviewed == 0:
            self._reviewed = self._quotas.records_at = now
        idle = self._rules.intervals(self._rules.idle_intervals)
        if self._rules.lag_fix and now - self._quotas.records_at >= idle:
            # Without lag-fix nobody would ask the others to catch up with a record.
            self.at_rest = True
        took = now - self._reviewed
        assert took >= 0, "time never goes back"
        if took < self._span:
            return
        busy = self._quotas.busy - self._busy
        assert busy >= 0
        self._busy, self._reviewed = self._quotas.busy, now
        if busy * 100 * self._rules.t_ord >= FLOWING_PERCENT * took:
            self.at_rest = False
