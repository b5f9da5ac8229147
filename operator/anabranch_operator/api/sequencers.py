"""SequencerSet: the sequencing group of one Belfast or Erwin log, or of a lazy front, declared."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import asdict

from anabranch_operator.api.anabranch_names import Rules
from anabranch_operator.api.common import Durability, GroupEngineName, Shape, keyed_by
from anabranch_operator.api.conditions import Condition, Conditions
from anabranch_operator.api.pods import Name, PodsSpec
from anabranch_operator.api.storage import Storage

MEMBERS_MAX = 5
OF_THE_SET = ("rollout",)
"""Fields that say nothing about a single pod."""
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


class Mode(StrEnum):
    M = "m"
    """Records go through the sequencers, which hold them until they are ordered."""
    ST = "st"
    """Records go to the shards, and only their ids through the sequencers: for large records and
    several shards.
    """


class Configurations(StrEnum):
    ETCD = "Etcd"
    """In etcd, where the sequencers' controllers are elected as well. `config.configMap` says where
    etcd is.
    """
    JOURNAL = "Journal"
    """In the data of the first sequencer. Nothing is reconfigured while that sequencer is away:
    enough for a single sequencer, or for a trial.
    """


class SequencerTemplate(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the sequencers of one log, whichever engine it is of."""

    members: Annotated[int, Meta(ge=1, le=MEMBERS_MAX)] = 3
    """Number of sequencers. Engine belfast: 1, 3 or 5, of which a majority must run. Engine erwin
    and a lazy front: any number, of which one less may fail at a time (engine erwin: with
    `configurations: Etcd`); every append waits for all that are up. It can't be changed later.
    """
    mode: Mode | None = None
    """Engine erwin: what goes through the sequencers, all of each record (`m`, also if this is left
    out) or its id alone (`st`). It can't be changed later.
    """
    durability: Durability = Durability.FSYNC
    """Engine erwin and a lazy front: where each sequencer holds an append before it is
    acknowledged. With `memory` an append that isn't ordered yet is lost if all sequencers fail at a
    time. It can't be changed later.
    """
    configurations: Configurations | None = None
    """Engine erwin: where the log keeps who its members are; `Etcd` if this is left out. It can't
    be changed later.
    """
    accept_loss: bool = False
    """Engine erwin or a lazy front, with `durability: memory`: go on by itself after all sequencers
    have failed at a time, without the appends that weren't ordered; and, engine erwin, begin a
    shard anew, empty, after all of its replicas have lost their journals. Otherwise the log waits:
    appends stop until this is set.
    """
    rules: Ordering = Ordering()
    """Engine belfast: rules of the order that all sequencers and shards follow."""
    storage: Storage
    """Where the sequencers keep the decisions that they have agreed on, and appends that aren't
    ordered yet.
    """
    etcd_tls_secret: Name | None = None
    """Name of a Secret for the connection to etcd, if the set keeps its terms or configurations
    there: `ca.crt` to trust etcd, `tls.crt` and `tls.key` to be trusted by it.
    """


class SequencerSetSpec(SequencerTemplate, frozen=True, kw_only=True):
    """What is wanted of a set of sequencers."""

    engine: GroupEngineName = GroupEngineName.BELFAST
    """Which engine's log these sequencers order; `lazy` for sequencers that take the lazy appends
    of a Bolt log. It can't be changed later.
    """


class Sequencer(Shape, frozen=True, kw_only=True):
    """One sequencer of the set."""

    pod: str
    """Name of the sequencer's pod."""
    node: str | None = None
    """Name of the node that the pod runs on."""
    state: str
    """What the sequencer is doing: `absent`, `starting`, `following`, `leading`, `silent` (the
    leader doesn't reach it, or the view goes on without it), `failing` (its pod doesn't come up) or
    `ending`.
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
    """Number of sequencers that the leader reaches, itself included; engine erwin and a lazy front:
    members of the view.
    """
    ready: int = 0
    """Number of pods that are ready."""
    updated: int = 0
    """Number of pods that were made from the present spec."""
    leader: str | None = None
    """Name of the leader's pod."""
    term: int | None = None
    """Engine belfast: term of the leader; it grows with each election."""
    view: int | None = None
    """View of the log. Engine belfast: it grows each time that a shard fails as a whole. Engine
    erwin and a lazy front: each time that the members change.
    """
    mode: str | None = None
    """Engine belfast: how the present window is ordered: `Steady` by quotas, `FreeWill` as shards
    come; `Bursty` is of an earlier release.
    """
    window: int | None = None
    """Engine belfast: number of the window whose records are being ordered."""
    confirmed: int | None = None
    """Positions below this are final. Engine erwin: they are stable, and read at once. A lazy
    front: so many of its records are in the log.
    """
    tail: int | None = None
    """Engine erwin and a lazy front: number of records that are durable, ordered or not."""
    backlog: int | None = None
    """Engine erwin: records that are durable, or about to be, and aren't stable yet. A lazy front:
    those that the log has yet to commit.
    """
    ring_lasts_seconds: int | None = None
    """A lazy front: how long the leader's ring has room at the present rate of appends if the log
    commits nothing; left out while nothing is appended.
    """
    lost_views: int | None = None
    """Engine erwin or a lazy front, with `durability: memory`: number of views whose unordered
    appends were lost, because all of their members failed at a time.
    """
    log_id: int | None = None
    """A lazy front: id of the log whose appends it takes."""
    durability: str | None = None
    """A lazy front: where an append is when it is acknowledged, `fsync` (on the disks of all
    members) or `memory`.
    """
    seated: int | None = None
    """Number of shards that take appends, or serve what they took. The set can't be deleted while
    there are any.
    """
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
