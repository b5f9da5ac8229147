"""What a deployment has agreed on about time and quotas; the sequencer's are everybody's.

Every time is in ordering intervals (T_ord), so that one setting scales them all (spec, D2).
"""

import msgspec

from anabranch.core.types import Nanoseconds

US = 1_000

ALIVE_INTERVALS = 5
"""A replica says so often that it is alive: several times before its silence counts."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    t_ord_us: int = 10_000
    """The ordering interval: a shard's quota is what it takes in within one."""

    window: int = 100
    """Rounds of a window: what the order is fixed for in advance (Belfast, 4.4)."""

    first_quota: int = 10
    """Of a shard that joins and demands none."""

    noop_percent: int = 150
    """Of T_ord since its last report, after which a shard fills up with no-ops (4.9)."""

    ahead_rounds: int = 10
    """The next window is published when so many rounds, or half a window, are left of the last."""

    lag_fix: bool = True
    """Shards that lag are asked to catch up with no-ops (4.3)."""

    lag_rounds: int = 3
    """So far behind the furthest shard, a shard lags."""

    quota_change: bool = True
    """Quotas follow the rates (4.2)."""

    quota_percent: int = 5
    """A rate may differ by so much from the quota before that is changed."""

    quota_max: int = 100_000
    """The most that one shard is asked for in one round."""

    stagger: bool = True
    """Cuts wait for one group of shards each (4.7)."""

    stagger_from: int = 7
    """Cuts are staggered with so many shards or more."""

    stagger_groups: int = 2
    """So many groups."""

    slow_intervals: int = 4
    """A shard that takes so many T_ord from round to round is slow (4.6)."""

    slow_reports: int = 3
    """A shard straggles when that was so more often than this, in a row."""

    rest_windows: int = 5
    """A straggler has no quota for so many windows, and a small one then."""

    silent_intervals: int = 30
    """Without a word from a replica: it is thought dead, and its shard is arranged anew. Where
    replies, timers or syncs have been late, three times that delay longer, and four times at most.
    """

    fail_intervals: int = 90
    """A lag that was signalled and not answered for so long: the shard as a whole has failed
    (4.8). Longer than its own fail-over takes, or every one of those would be a misspeculation.
    Prolonged like `silent_intervals`.
    """

    free_will: bool = False
    """Scalog's order instead: cuts follow the reports, and nothing is delivered before its cut.
    Nothing else leads there: it is the baseline that benchmarks compare with.
    """

    adaptive: bool = True
    """A log that nobody appends to rests: windows stay published, and no quota is filled until a
    record comes (6.4, left there as future work).
    """

    idle_intervals: int = 100
    """Without a record from anybody: the log rests (see `adaptive`)."""

    shards_min: int = 1
    """The first window is opened when so many shards have been admitted."""

    copies_min: int = 1
    """A shard whose replicas die goes on with so many, and stops appends with fewer."""

    @property
    def t_ord(self) -> Nanoseconds:
        return self.t_ord_us * US

    def intervals(self, count: int) -> Nanoseconds:
        return count * self.t_ord
