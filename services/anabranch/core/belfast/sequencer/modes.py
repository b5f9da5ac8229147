"""Which mode the next window has, and whether the log is at rest: the paper leaves both to future
work (6.4).
"""

from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.belfast.sequencer.quotas import SPAN_MIN_INTERVALS, Quotas
from anabranch.core.types import Nanoseconds

SIGNALS_PERCENT = 5
"""Signals of lag in a hundred intervals: with so many, bursts come too often."""
BURSTY_PERCENT = 200
"""The peaks of the shards against their rates: below, there are no bursts to speak of."""
EXTREME_PERCENT = 2_000
"""So high, quotas of the peaks would fill the log with no-ops: quotas stay those of the rates, and
signals of lag carry the bursts.
"""
ENTER_REVIEWS = 3
LEAVE_REVIEWS = 5
"""So often in a row: a mode is cheap to keep and dear to change."""
FLOWING_PERCENT = 25
"""Of a review's intervals had records: the log isn't at rest any more."""


class Modes:
    """Reviewed each window's length. The mode that is wanted counts from the next window on; rest
    begins and ends at once, because windows stay published while the log is at rest.
    """

    def __init__(self, plan: Plan, quotas: Quotas) -> None:
        self._rules = plan.rules
        self._quotas = quotas
        self._counters = plan.counters
        last = plan.ledger.windows[-1].mode if plan.ledger.windows else Mode.STEADY
        if self._rules.free_will:
            self.wanted = Mode.FREE_WILL
        else:
            # Earlier releases opened windows of free will by themselves: the log may end in one.
            self.wanted = Mode.STEADY if last is Mode.FREE_WILL else last
        self.at_rest = False
        """Nobody appends, or seldom: shards fill no quotas until one of them has a record, and the
        others are then asked to catch up at once.
        """
        self._span = self._rules.intervals(max(self._rules.window, SPAN_MIN_INTERVALS))
        self._reviewed: Nanoseconds = 0
        self._signals = plan.counters.signals
        self._busy = 0
        self._toward = self.wanted
        self._row = 0

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
        if took < self._span:
            return
        signals, busy = self._counters.signals - self._signals, self._quotas.busy - self._busy
        self._signals, self._busy = self._counters.signals, self._quotas.busy
        self._reviewed = now
        if self.at_rest:
            # At rest each record calls for a signal: that says nothing of bursts.
            self.at_rest = busy * 100 * self._rules.t_ord < FLOWING_PERCENT * took
            return
        frequent = signals * 100 * self._rules.t_ord >= SIGNALS_PERCENT * took
        bursty = BURSTY_PERCENT <= self._quotas.burstiness < EXTREME_PERCENT
        if self.wanted is Mode.STEADY:
            self._after(
                ENTER_REVIEWS, bursty and frequent and self._rules.quota_change, Mode.BURSTY
            )
        else:
            self._after(LEAVE_REVIEWS, not bursty, Mode.STEADY)

    def _after(self, reviews: int, holds: bool, mode: Mode) -> None:
        if mode is not self._toward:
            self._toward, self._row = mode, 0
        self._row = self._row + 1 if holds else 0
        if self._row >= reviews:
            self.wanted, self._row = mode, 0
