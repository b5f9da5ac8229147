"""Which mode the next window is of: what the paper leaves to future work (6.4)."""

from anabranch.core.belfast.plan import Plan
from anabranch.core.belfast.quotas import SPAN_MIN_INTERVALS, Quotas
from anabranch.core.belfast.windows import Mode
from anabranch.core.types import Nanoseconds

SIGNALS_PERCENT = 5
"""Signals of lag in a hundred intervals: with so many, bursts come too often."""
BURSTY_PERCENT = 200
"""The peaks of the shards against their rates: below, there are no bursts to speak of."""
EXTREME_PERCENT = 2_000
"""So high, and quotas of the peaks would fill the log with no-ops: nothing is foreseen then."""
ENTER_REVIEWS = 3
LEAVE_REVIEWS = 5
"""So often in a row: a mode is cheap to keep and dear to change."""
STEADY_PERCENT = 25
"""Of a review's intervals had records: they flow steadily."""


class Modes:
    """Reviewed each window's length. What it wants counts from the next window on."""

    def __init__(self, plan: Plan, quotas: Quotas) -> None:
        self._rules = plan.rules
        self._quotas = quotas
        self._counters = plan.counters
        last = plan.ledger.windows[-1].mode if plan.ledger.windows else Mode.STEADY
        self.wanted = Mode.FREE_WILL if self._rules.free_will else last
        if last is Mode.FREE_WILL and not self._rules.free_will and not self._rules.adaptive:
            self.wanted = Mode.STEADY
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
        took = now - self._reviewed
        if took < self._span:
            return
        signals, busy = self._counters.signals - self._signals, self._quotas.busy - self._busy
        self._signals, self._busy = self._counters.signals, self._quotas.busy
        self._reviewed = now
        frequent = signals * 100 * self._rules.t_ord >= SIGNALS_PERCENT * took
        flowing = busy * 100 * self._rules.t_ord >= STEADY_PERCENT * took
        if self.wanted is Mode.FREE_WILL:
            calm = self._quotas.burstiness < EXTREME_PERCENT // 2
            self._after(1, flowing and calm, Mode.STEADY)
        elif now - self._quotas.records_at >= self._rules.intervals(self._rules.idle_intervals):
            self._after(1, True, Mode.FREE_WILL)
        elif self.wanted is Mode.STEADY:
            bursty = frequent and self._quotas.burstiness >= BURSTY_PERCENT
            self._after(ENTER_REVIEWS, bursty and self._rules.quota_change, Mode.BURSTY)
        elif self._quotas.burstiness >= EXTREME_PERCENT:
            self._after(LEAVE_REVIEWS, True, Mode.FREE_WILL)
        else:
            self._after(LEAVE_REVIEWS, self._quotas.burstiness < BURSTY_PERCENT, Mode.STEADY)

    def _after(self, reviews: int, holds: bool, mode: Mode) -> None:
        if mode is not self._toward:
            self._toward, self._row = mode, 0
        self._row = self._row + 1 if holds else 0
        if self._row >= reviews:
            self.wanted, self._row = mode, 0
