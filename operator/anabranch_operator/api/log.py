"""Log: a root log of the log service, declared."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from anabranch_operator.api.common import LogName, Quota, Shape, Span
from anabranch_operator.api.conditions import Condition, Conditions
from anabranch_operator.api.names import NAME_CHARS_MAX, NAME_PATTERN
from anabranch_operator.api.sequencers import SequencerTemplate
from anabranch_operator.api.shards import SHARDS_MAX, ShardTemplate

GROUPS_MAX = 16
SHARDS_DEFAULT = 2

PartName = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX, pattern=NAME_PATTERN)]


class Engine(StrEnum):
    BOLT = "bolt"
    """Brokers gather records in objects; a record has its position when its object is stored. Can
    be forked.
    """
    BELFAST = "belfast"
    """Shards take records side by side and deliver them before their order is final. Needs
    `sequencers` and `shards`; can't be forked.
    """
    ERWIN = "erwin"
    """Sequencers acknowledge records in one round trip, and shards store them once they are
    ordered. Needs `sequencers` and `shards`; can't be forked.
    """


class Appends(StrEnum):
    DIRECT = "Direct"
    """An append is acknowledged when its records are in the object store, and has a position."""
    LAZY = "Lazy"
    """Sequencers acknowledge an append in one round trip, and have it committed to the log in the
    background. Needs `sequencers`.
    """


class LogDeletion(StrEnum):
    RETAIN = "Retain"
    """The log and its records stay in the service, and another Log with `adopt` can take it over. A
    SequencerSet and a ShardGroup that were made for it stay too.
    """
    DELETE = "Delete"
    """The log and its records are deleted, once it has no forks. What was made for it goes first:
    the ShardGroup, then the SequencerSet.
    """


class LogPhase(StrEnum):
    PENDING = "Pending"
    """The log can't be used yet: the condition Ready says why."""
    READY = "Ready"
    """The log exists. Whether it can be used right now is said by the condition Ready."""
    TERMINATING = "Terminating"
    """The resource was deleted, but another program's finalizer still holds it."""
    LOST = "Lost"
    """The log service doesn't know the log any more."""


class Retention(Shape, frozen=True, kw_only=True):
    """Which old records are trimmed. Forks keep the records that they inherited."""

    age: Span | None = None
    """Trim records that were committed longer ago than this, such as `30d`; checked once a minute.
    Records of any age are kept if this is left out.
    """
    records: Annotated[int, Meta(ge=1)] | None = None
    """Keep the newest records up to this number, and trim those before them. All are kept if this
    is left out.
    """


class LogSequencers(Shape, frozen=True, kw_only=True):
    """The SequencerSet that orders the records of a belfast or erwin log, or takes the appends of a
    bolt log whose appends are lazy.
    """

    name: PartName | None = None
    """Use the SequencerSet of this name in the same namespace, and leave its making, changes and
    deletion to somebody else. It is the name of the Log too: one set is one log, and its nodes ask
    for rights on the Log of that name.
    """
    template: SequencerTemplate | None = None
    """Make a SequencerSet with this spec, the Log's engine (`lazy` for lazy appends) and the Log's
    name. Changes go here: the operator overwrites what is changed in the SequencerSet itself.
    """


class LogShards(Shape, frozen=True, kw_only=True):
    """The ShardGroups that store the records of a belfast or erwin log."""

    names: (
        Annotated[
            list[PartName],
            Meta(
                min_length=1,
                max_length=GROUPS_MAX,
                extra_json_schema={"x-kubernetes-list-type": "set"},
            ),
        ]
        | None
    ) = None
    """Use the ShardGroups of these names in the same namespace. Each must name the Log's
    SequencerSet in its `sequencers`. The Log is ready once all of their shards are.
    """
    count: Annotated[int, Meta(ge=0, le=SHARDS_MAX)] | None = None
    """Number of shards of the group that is made from `template`; 2 if this is left out. Shards are
    added and removed while the log goes on. Engine belfast: set it to 0 before the Log is deleted,
    and all shards leave in order. Engine erwin: the last shard stays.
    """
    template: ShardTemplate | None = None
    """Make a ShardGroup with this spec, `count` shards, and the Log's engine and name. Changes go
    here: the operator overwrites what is changed in the ShardGroup itself.
    """

    @property
    def wanted(self) -> int:
        return SHARDS_DEFAULT if self.count is None else self.count


class LogSpec(Shape, frozen=True, kw_only=True):
    """What is wanted of a root log."""

    engine: Engine = Engine.BOLT
    """Which engine stores and orders the records. It can't be changed later."""
    log_name: LogName | None = None
    """Name of the log in the log service, which clients open it by. The resource's name is used if
    this is left out. It can't be changed later.
    """
    appends: Appends = Appends.DIRECT
    """How the records of a bolt log are acknowledged. `Lazy` can be set on a log that is there:
    direct appends are refused from then on. Back to `Direct`, leave `sequencers` out as well: the
    sequencers have committed what they hold, and those made from a template are removed. A log
    whose appends were lazy once can't have lazy ones again.
    """
    adopt: bool = False
    """If the log service has a log of this name that no resource declares, take it over instead of
    reporting NameTaken. Only in the installation's namespace.
    """
    retention: Retention = Retention()
    """Which old records are trimmed; none if this is left out. Only for engine bolt: others are
    trimmed by their clients.
    """
    quota: Quota | None = None
    """How much may be appended and read in a second, by all clients together. The log's quota stays
    as it is if this is left out; `{}` lifts it. Each shard of a belfast log gets an equal share,
    each sequencer of an erwin log, or of a lazy front, the whole; a change reaches them within
    about a minute.
    """
    sequencers: LogSequencers | None = None
    """The SequencerSet that orders the log: an existing one by `name`, or one that is made from
    `template`. Needed by engines belfast and erwin and with `appends: Lazy`, and only there.
    """
    shards: LogShards | None = None
    """The ShardGroups that store the log: existing ones by `names`, or one that is made from
    `template`. Needed by engines belfast and erwin, and only there.
    """
    deletion_policy: LogDeletion = LogDeletion.RETAIN
    """What deleting this resource does to the log and its records."""


class LogStatus(Shape, frozen=True, kw_only=True):
    """What the operator last saw of the log."""

    observed_generation: int = 0
    """The `metadata.generation` that this status is about; a lower one means that the operator
    hasn't acted on the latest change of the spec yet.
    """
    phase: LogPhase = LogPhase.PENDING
    """Where the log is in its life."""
    log_id: int | None = None
    """The log's id in the log service. An id is never given to another log."""
    log_name: str | None = None
    """The log's name in the log service."""
    start: int | None = None
    """The first position that can still be read; positions below it are trimmed. Engine bolt."""
    tail: int | None = None
    """The position that the next record gets. Engine erwin: number of records that are durable,
    ordered or not.
    """
    settled: int | None = None
    """Positions below this are final: for engine bolt no undecided fork can change them, for engine
    belfast their order is confirmed, and for engine erwin they are stable.
    """
    backlog: int | None = None
    """Engine erwin: records that are durable and not stable yet. With lazy appends: records that
    the sequencers hold and the log has yet to commit.
    """
    view: int | None = None
    """Engine erwin, and with lazy appends: view of the sequencers; it grows each time that the
    members of the view change.
    """
    leader: str | None = None
    """Engine erwin, and with lazy appends: name of the pod whose sequencer orders the records."""
    durability: str | None = None
    """With lazy appends: where sequencers hold what they have acknowledged, `fsync` (on their
    disks) or `memory`.
    """
    forks: int | None = None
    """Number of forks of the log. Engine bolt."""
    broker: str | None = None
    """The pod whose broker serves the log. Engine bolt."""
    sequencers: str | None = None
    """The SequencerSet that orders the log, or takes its lazy appends."""
    shards: int | None = None
    """Number of shards that are wanted. Engines belfast and erwin."""
    shards_ready: int | None = None
    """Number of shards that take appends, or are leaving and still serve what they took. Engines
    belfast and erwin.
    """
    endpoint: str | None = None
    """The URL by which clients reach the log."""
    conditions: Conditions = field(default_factory=list[Condition])
    """Conditions of the log: whether it can be used (Ready), and why not."""
