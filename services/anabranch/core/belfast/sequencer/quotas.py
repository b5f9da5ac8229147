"""A shard's quota follows its rate: what it takes in within an ordering interval (Belfast, 4.2).

The rate is that of real records. So neither no-ops nor the rounds that a signal of lag called for
have a part in it, and a shard that reports in bursts has the rate that it has on average. Rates
are in thousandths of a record per interval: whole numbers are the same everywhere.
"""

from dataclasses import dataclass

from anabranch.core.belfast.ledger.ledger import Member
from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.protocol.letters import Report
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.types import Nanoseconds

SPAN_MIN_INTERVALS = 50
"""A rate is taken over a window's length, or so long where windows are short: over less, it says
more of chance than of the rate.
"""


@dataclass(slots=True)
class _Arrivals:
    """What has come to one shard."""

    span_at: Nanoseconds
    span_records: int
    """When the span began, and all records before it."""
    records: int
    """All records as of the last report."""
    flowing: bool = False
    """Something came in this span, or in the one before."""
    queued: int = 0
    rate: int = 0
    """Of the last whole span; counts once there is one."""
    spans: int = 0


@dataclass(slots=True)
class _Given:
    quota: int
    lower: int = 0
    """What would have been enough in the window before; 0: no less than was given."""
    judged: int = 0
    """The span by which that was found."""
    guessed: bool = False
    """Nobody has demanded it, and nothing was measured yet."""
    over: bool = False
    """Its shard has failed since, or was away: what it demands when it is back counts."""


class Quotas:
    def __init__(self, plan: Plan) -> None:
        self._rules = plan.rules
        self._t_ord = plan.rules.t_ord
        self._span = plan.rules.intervals(max(plan.rules.window, SPAN_MIN_INTERVALS))
        assert self._span > 0 < self._t_ord, "rates are taken over a time"
        self._arrivals: dict[ShardId, _Arrivals] = {}
        self._given: dict[ShardId, _Given] = {}
        self.records_at: Nanoseconds = 0
        """When records were last heard of."""
        self.busy = 0
        """Intervals in which there were any."""
        self._busy_at: Nanoseconds = 0
        for window in plan.ledger.windows:
            for seat in window.seats:
                self._given[seat.shard] = _Given(seat.quota)

    def heard(self, report: Report, now: Nanoseconds) -> None:
        arrivals = self._arrivals.get(report.shard)
        if arrivals is None or report.records < arrivals.records:
            # A new leader, or a shard that lost what was never acknowledged: measure anew.
            known = report.records
            self._arrivals[report.shard] = _Arrivals(
                span_at=now,
                span_records=known,
                records=known,
                queued=report.queued,
            )
            return
        if report.records > arrivals.records:
            self.records_at = now
            if now - self._busy_at >= self._t_ord:
                self.busy += 1
                self._busy_at = now
        if not arrivals.flowing and report.records > arrivals.records:
            # Where nothing came a span begins behind what comes first: half idle it would say half,
            # and what comes first may have waited for long.
            arrivals.flowing = True
            arrivals.span_at, arrivals.span_records = now, report.records
        arrivals.records, arrivals.queued = report.records, report.queued
        if now - arrivals.span_at >= self._span:
            assert report.records >= arrivals.span_records, "records are only counted up"
            arrivals.rate = self._rate(
                report.records - arrivals.span_records, now - arrivals.span_at
            )
            arrivals.flowing = arrivals.rate > 0
            arrivals.spans += 1
            arrivals.span_at, arrivals.span_records = now, report.records

    def forget(self, shards: tuple[ShardId, ...]) -> None:
        for shard in shards:
            self._arrivals.pop(shard, None)
            if shard in self._given:
                self._given[shard].over = True

    def next(self, member: Member, now: Nanoseconds) -> int:
        """For a seat in the window that is about to be published."""
        given = self._given.get(member.id)
        if given is None or (given.over and member.demand):
            first = self._bounded(member.demand or self._rules.first_quota)
            self._given[member.id] = _Given(first, guessed=not member.demand)
            return first
        arrivals = self._arrivals.get(member.id)
        if not self._rules.quota_change or arrivals is None:
            return given.quota
        rate = self._wanted(arrivals, now)
        if given.guessed and rate:
            given.quota, given.guessed = self._enough(rate), False
        else:
            self._follow(given, arrivals, rate)
        assert given.quota > 0, "a seat gives one record at least in a round"
        return given.quota

    def give(self, shard: ShardId, quota: int) -> int:
        """Whatever the rate is: from here it goes up or down by the rule."""
        assert quota > 0, "a seat gives one record at least in a round"
        self._given[shard] = _Given(quota)
        return quota

    def _follow(self, given: _Given, arrivals: _Arrivals, rate: int) -> None:
        """Up at once, down when two spans in a row agree: a drop that passes must not leave the
        quota below the rate for a whole window (6.6).
        """
        assert rate >= 0, "records are only counted up"
        enough = self._enough(rate)
        tolerance = given.quota * 10 * self._rules.quota_percent
        if rate > given.quota * 1000 + tolerance:
            given.quota, given.lower = enough, 0
            given.judged = arrivals.spans
        elif given.judged < arrivals.spans:
            given.judged = arrivals.spans
            if rate >= given.quota * 1000 - tolerance or enough >= given.quota:
                given.lower = 0
            elif given.lower:
                given.quota, given.lower = max(given.lower, enough), 0
            else:
                given.lower = enough

    def _wanted(self, arrivals: _Arrivals, now: Nanoseconds) -> int:
        """Thousandths of a record per interval."""
        rate = arrivals.rate
        if 5 * (now - arrivals.span_at) >= 2 * self._span:
            come = arrivals.records - arrivals.span_records
            rate = max(rate, self._rate(come, now - arrivals.span_at))
        backlog = arrivals.queued * 1000 // self._rules.window
        return rate + (backlog if backlog > rate // 10 else 0)

    def _rate(self, records: int, within: Nanoseconds) -> int:
        assert records >= 0, "records are only counted up"
        return records * 1000 * self._t_ord // max(1, within)

    def _enough(self, rate: int) -> int:
        """A rate that is over a whole number by what a quota may differ from it anyway, doesn't
        need the next: of eight records that would be an eighth too much, filled up with no-ops.
        """
        slack = min(500, rate * self._rules.quota_percent // 100)
        return self._bounded(-(-(rate - slack) // 1000))

    def _bounded(self, quota: int) -> int:
        assert self._rules.quota_max > 0, "no quota could be given"
        return max(1, min(quota, self._rules.quota_max))
