"""SequencerSet: the sequencing group of one Belfast log, declared."""

from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import asdict

from anabranch_operator.api.anabranch_names import Rules
from anabranch_operator.api.common import Shape, keyed_by
from anabranch_operator.api.conditions import Condition, Conditions
from anabranch_operator.api.pods import Name, PodsSpec
from anabranch_operator.api.storage import Storage

MEMBERS_MAX = 5
_AS_IS = Rules()

Percent = Annotated[int, Meta(ge=0, le=10_000)]
Rounds = Annotated[int, Meta(ge=1, le=1_000_000)]
Intervals = Annotated[int, Meta(ge=1, le=1_000_000)]


class Ordering(Shape, frozen=True, kw_only=True):
    """What the log has agreed on about time and quotas; intervals are ordering intervals."""

    t_ord_microseconds: Annotated[int, Meta(ge=100, le=60_000_000)] = _AS_IS.t_ord_us
    """The ordering interval: a shard's quota is what it takes in within one."""
    window: Rounds = _AS_IS.window
    """Rounds of a window: what the order is fixed for in advance."""
    first_quota: Rounds = _AS_IS.first_quota
    """Of a shard that joins and demands none."""
    noop_percent: Percent = _AS_IS.noop_percent
    """Of an interval since its last report, after which a shard fills up with no-ops."""
    ahead_rounds: Rounds = _AS_IS.ahead_rounds
    """The next window is published when so many rounds, or half a window, are left."""
    lag_fix: bool = _AS_IS.lag_fix
    """Ask shards that lag to catch up with no-ops."""
    lag_rounds: Rounds = _AS_IS.lag_rounds
    """So far behind the furthest shard, a shard lags."""
    quota_change: bool = _AS_IS.quota_change
    """Let quotas follow the rates."""
    quota_percent: Percent = _AS_IS.quota_percent
    """A rate may differ by so much from the quota before that is changed."""
    quota_max: Rounds = _AS_IS.quota_max
    """Of one shard in one round."""
    stagger: bool = _AS_IS.stagger
    """Let each cut wait for one group of shards only."""
    stagger_from: Rounds = _AS_IS.stagger_from
    """With so many shards or more."""
    stagger_groups: Annotated[int, Meta(ge=1, le=64)] = _AS_IS.stagger_groups
    """Of shards."""
    slow_intervals: Intervals = _AS_IS.slow_intervals
    """Between two rounds of a shard: it straggles."""
    slow_reports: Rounds = _AS_IS.slow_reports
    """So often in a row, before it is given no quota."""
    rest_windows: Rounds = _AS_IS.rest_windows
    """For which a straggler has no quota."""
    silent_intervals: Intervals = _AS_IS.silent_intervals
    """Silence after which a replica is given up; up to four times longer on a slow machine."""
    fail_intervals: Intervals = _AS_IS.fail_intervals
    """Silence after which a whole shard has failed; prolonged like silentIntervals."""
    free_will: bool = _AS_IS.free_will
    """Scalog's order: cuts follow the shards, and nothing is delivered before its cut."""
    adaptive: bool = _AS_IS.adaptive
    """Let a log without appends rest: no quota is filled with no-ops until a record comes."""
    idle_intervals: Intervals = _AS_IS.idle_intervals
    """Without an append anywhere, before the log rests: no cut is made until a record comes."""
    shards_min: Annotated[int, Meta(ge=1, le=100)] = _AS_IS.shards_min
    """The first window waits for so many shards."""
    copies_min: Annotated[int, Meta(ge=1, le=3)] = _AS_IS.copies_min
    """A shard whose replicas die goes on with so many, and stops appends with fewer."""


class SequencerSetSpec(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the group."""

    members: Annotated[int, Meta(ge=1, le=MEMBERS_MAX)] = 3
    """How many sequencers there are: 1, 3 or 5. A majority of them must be there."""
    rules: Ordering = Ordering()
    """What the log has agreed on about time and quotas."""
    storage: Storage
    """Where sequencers keep what they have agreed on."""
    etcd_tls_secret: Name | None = None
    """Whom they trust as etcd, and who they are to it, where terms are kept there: ca.crt, tls.crt,
    tls.key.
    """


class Sequencer(Shape, frozen=True, kw_only=True):
    """One sequencer."""

    pod: str
    """The pod's name."""
    node: str | None = None
    """Where it runs."""
    state: str
    """`absent`, `starting`, `following`, `leading`, `silent`, `failing` or `ending`."""
    updated: bool = True
    """Is it what the spec says?"""


class SequencerSetStatus(Shape, frozen=True, kw_only=True):
    """What there is of the group."""

    observed_generation: int = 0
    """The generation of the spec that this status is about."""
    members: int = 0
    """Sequencers that the leader can reach, itself among them."""
    ready: int = 0
    """Pods that are ready."""
    updated: int = 0
    """Pods that are what the spec says."""
    leader: str | None = None
    """The pod of the one that leads."""
    term: int | None = None
    """How often the group has stood for election: the epoch of the leader."""
    view: int | None = None
    """How often shards have failed as a whole."""
    mode: str | None = None
    """`Steady`, `Bursty` or `FreeWill`."""
    window: int | None = None
    """The window that is being cut."""
    confirmed: int | None = None
    """Every position below is final."""
    seated: int | None = None
    """Shards that have a seat."""
    endpoint: str | None = None
    """Where clients reach the log."""
    sequencers: Annotated[list[Sequencer], keyed_by("pod")] = field(default_factory=list[Sequencer])
    """Each of them."""
    conditions: Conditions = field(default_factory=list[Condition])
    """What can be said of it."""


def rules_of(wanted: Ordering) -> Rules:
    """As the sequencers take them."""
    given = {name.replace("microseconds", "us"): value for name, value in asdict(wanted).items()}
    return Rules(**given)
