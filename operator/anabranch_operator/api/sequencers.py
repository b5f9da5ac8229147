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
    """Rules of the order that all sequencers and shards follow. Intervals are ordering intervals,
    of `tOrdMicroseconds` each. A change rolls the sequencers and holds from a later window on.
    """

    t_ord_microseconds: Annotated[int, Meta(ge=100, le=60_000_000)] = _AS_IS.t_ord_us
    """Microseconds of an ordering interval: how often a global cut is made, and the unit of quotas.
    Shorter means earlier confirmation, and more messages.
    """
    window: Rounds = _AS_IS.window
    """Rounds in a window. The order of a window is fixed before it begins, so shards join and leave
    at its end.
    """
    first_quota: Rounds = _AS_IS.first_quota
    """Records in an interval that a joining shard gets if its `quota` is 0."""
    noop_percent: Percent = _AS_IS.noop_percent
    """Percentage of an interval after which a shard with too few records fills its quota up with
    no-ops.
    """
    ahead_rounds: Rounds = _AS_IS.ahead_rounds
    """Rounds before the end of a window at which the next one is published; half a window if that
    is later.
    """
    lag_fix: bool = _AS_IS.lag_fix
    """Whether the leader asks shards that lag to catch up with no-ops, so that others needn't wait
    for them.
    """
    lag_rounds: Rounds = _AS_IS.lag_rounds
    """Rounds behind the furthest shard at which a shard counts as lagging."""
    quota_change: bool = _AS_IS.quota_change
    """Whether quotas follow the rates of appends from window to window."""
    quota_percent: Percent = _AS_IS.quota_percent
    """Percentage by which a shard's rate must differ from its quota before the quota is changed."""
    quota_max: Rounds = _AS_IS.quota_max
    """Greatest quota of a shard, in records of an interval."""
    stagger: bool = _AS_IS.stagger
    """Whether each cut waits for one group of shards only, in turn. It makes cuts more frequent in
    logs of many shards.
    """
    stagger_from: Rounds = _AS_IS.stagger_from
    """Number of shards from which on cuts are staggered."""
    stagger_groups: Annotated[int, Meta(ge=1, le=64)] = _AS_IS.stagger_groups
    """Number of groups that shards are divided into when cuts are staggered."""
    slow_intervals: Intervals = _AS_IS.slow_intervals
    """Intervals between two rounds of a shard above which it counts as a straggler."""
    slow_reports: Rounds = _AS_IS.slow_reports
    """Number of slow reports in a row after which a straggler gets no quota for a while."""
    rest_windows: Rounds = _AS_IS.rest_windows
    """Number of windows for which a straggler gets no quota."""
    silent_intervals: Intervals = _AS_IS.silent_intervals
    """Intervals of silence after which a replica counts as lost. The time is prolonged up to four
    times on a machine that is slow itself.
    """
    fail_intervals: Intervals = _AS_IS.fail_intervals
    """Intervals of silence after which a shard as a whole counts as failed, and the others serve on
    without it. Prolonged like `silentIntervals`, which must be lower.
    """
    free_will: bool = _AS_IS.free_will
    """Whether cuts follow the shards as in Scalog: nothing is delivered before its cut, and there
    are no no-ops.
    """
    adaptive: bool = _AS_IS.adaptive
    """Whether a log without appends rests: no quota is filled with no-ops until a record comes."""
    idle_intervals: Intervals = _AS_IS.idle_intervals
    """Intervals without any append after which the log rests: no cut is made until a record comes.
    """
    shards_min: Annotated[int, Meta(ge=1, le=100)] = _AS_IS.shards_min
    """Number of shards that the first window of the log waits for."""
    copies_min: Annotated[int, Meta(ge=1, le=3)] = _AS_IS.copies_min
    """Least number of replicas with which a shard takes appends. With fewer it stops until others
    are back.
    """


class SequencerSetSpec(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the sequencers of one log."""

    members: Annotated[int, Meta(ge=1, le=MEMBERS_MAX)] = 3
    """Number of sequencers: 1, 3 or 5. The log orders records while a majority of them runs. It
    can't be changed later.
    """
    rules: Ordering = Ordering()
    """Rules of the order that all sequencers and shards follow."""
    storage: Storage
    """Where the sequencers keep the decisions that they have agreed on."""
    etcd_tls_secret: Name | None = None
    """Name of a Secret for the connection to etcd, if the set keeps its terms there: `ca.crt` to
    trust etcd, `tls.crt` and `tls.key` to be trusted by it.
    """


class Sequencer(Shape, frozen=True, kw_only=True):
    """One sequencer of the set."""

    pod: str
    """Name of the sequencer's pod."""
    node: str | None = None
    """Name of the node that the pod runs on."""
    state: str
    """What the sequencer is doing: `absent`, `starting`, `following`, `leading`, `silent` (the
    leader doesn't reach it), `failing` (its pod doesn't come up) or `ending`.
    """
    updated: bool = True
    """Whether the pod was made from the present spec."""


class SequencerSetStatus(Shape, frozen=True, kw_only=True):
    """What the operator last saw of the set."""

    observed_generation: int = 0
    """The `metadata.generation` that this status is about; a lower one means that the operator
    hasn't acted on the latest change of the spec yet.
    """
    members: int = 0
    """Number of sequencers that the leader reaches, itself included."""
    ready: int = 0
    """Number of pods that are ready."""
    updated: int = 0
    """Number of pods that were made from the present spec."""
    leader: str | None = None
    """Name of the leader's pod."""
    term: int | None = None
    """Term of the leader; it grows with each election."""
    view: int | None = None
    """View of the log; it grows each time that a shard fails as a whole."""
    mode: str | None = None
    """How the present window is ordered: `Steady` by quotas, `FreeWill` as shards come; `Bursty` is
    of an earlier release.
    """
    window: int | None = None
    """Number of the window whose records are being ordered."""
    confirmed: int | None = None
    """Positions below this are final."""
    seated: int | None = None
    """Number of shards that take appends. The set can't be deleted while there are any."""
    endpoint: str | None = None
    """The URL by which clients reach the log."""
    sequencers: Annotated[list[Sequencer], keyed_by("pod")] = field(default_factory=list[Sequencer])
    """The sequencers, by the names of their pods."""
    conditions: Conditions = field(default_factory=list[Condition])
    """Conditions of the set: Ready, Progressing, Degraded and others, each with a reason and a
    message.
    """


def rules_of(wanted: Ordering) -> Rules:
    """As the sequencers take them."""
    given = {name.replace("microseconds", "us"): value for name, value in asdict(wanted).items()}
    return Rules(**given)
