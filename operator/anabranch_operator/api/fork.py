"""Fork: a fork of a log, declared."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from anabranch_operator.api.borrowed import JOB_TEMPLATE
from anabranch_operator.api.common import LogName, Moment, Quota, Shape, Span, instant
from anabranch_operator.api.conditions import Condition, Conditions


class ParentKind(StrEnum):
    LOG = "Log"
    """A root log, declared by a Log."""
    FORK = "Fork"
    """Another fork, declared by a Fork."""


class ForkType(StrEnum):
    CONTINUOUS = "Continuous"
    """The fork goes on receiving what is appended to its parent."""
    SEVERED = "Severed"
    """The fork inherits the parent's records up to the fork point, and receives none of the later
    ones.
    """


class Isolation(StrEnum):
    POOLED = "Pooled"
    """The fork's broker may serve other logs as well."""
    EXCLUSIVE = "Exclusive"
    """A broker serves this fork alone. It waits for an idle broker of the pool."""


class ParentDeletion(StrEnum):
    ORPHAN = "Orphan"
    """The fork lives on with the records that it inherited."""
    CASCADE = "Cascade"
    """The fork is squashed with its parent."""


class ForkDeletion(StrEnum):
    SQUASH = "Squash"
    """Squash the fork: its own records are deleted."""
    RETAIN = "Retain"
    """Keep the fork in the log service, without a resource that declares it."""


class ForkState(StrEnum):
    ACTIVE = "Active"
    """The fork stays a fork."""
    PROMOTED = "Promoted"
    """Promote the fork: its records become its parent's. This can't be undone."""


class Policy(StrEnum):
    MANUAL = "Manual"
    """Promote as soon as `state: Promoted` is set, by somebody with the verb `promote`."""
    GATE = "Gate"
    """Start the gate's Job when `state: Promoted` is set, and promote once it has succeeded."""
    APPROVAL = "Approval"
    """Promote once somebody with the verb `promote` has set `approved: true`, and the gate's Job
    has succeeded if there is one.
    """


class OnFailure(StrEnum):
    SQUASH = "Squash"
    """Squash the fork."""
    HOLD = "Hold"
    """Leave the fork as it is, for somebody to look at."""


class ForkPhase(StrEnum):
    PENDING = "Pending"
    """The fork isn't made yet: the condition Ready says why."""
    READY = "Ready"
    """The fork can be appended to and read."""
    GATING = "Gating"
    """The fork can be used, and its gate's Job runs."""
    AWAITING_APPROVAL = "AwaitingApproval"
    """The fork can be used, and waits for `approved: true`."""
    PROMOTING = "Promoting"
    """The fork is about to be promoted."""
    PROMOTED = "Promoted"
    """The fork was promoted: its records are its parent's."""
    SQUASHED = "Squashed"
    """The fork was squashed: by its gate, through the API, or with its parent."""
    EXPIRED = "Expired"
    """The fork was squashed because its time to live was over."""
    LOST = "Lost"
    """The log service knows neither the fork nor what became of it."""
    TERMINATING = "Terminating"
    """The resource was deleted, but another program's finalizer still holds it."""


FINISHED = (ForkPhase.PROMOTED, ForkPhase.SQUASHED, ForkPhase.EXPIRED)
"""The fork is no more, and its resource only tells what became of it."""


class Parent(Shape, frozen=True, kw_only=True):
    """The log or fork that is forked."""

    kind: ParentKind = ParentKind.LOG
    """Kind of the parent's resource: `Log` or `Fork`."""
    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Name of the parent's resource, in the same namespace."""


class At(Shape, frozen=True, kw_only=True):
    """Where a severed fork leaves its parent: at a position or at a time."""

    position: Annotated[int, Meta(ge=0)] | None = None
    """The last position that the fork inherits."""
    time: Moment | None = None
    """The fork inherits the records that were committed before this time, such as
    `2026-03-01T12:00:00Z`, to the millisecond.
    """

    def __post_init__(self) -> None:
        if self.time is not None:
            instant(self.time)


class Gate(Shape, frozen=True, kw_only=True):
    """A Job that judges the fork before it is promoted. Whoever writes or starts it must have the
    right to create Jobs.
    """

    job_template: Annotated[dict[str, Any], Meta(extra_json_schema=JOB_TEMPLATE)]
    """Metadata and spec of the Job. Its containers get `ANABRANCH_URL`, `ANABRANCH_LOG`, and in
    `ANABRANCH_OWN_RECORDS` how many own records the fork had right before the Job. It is promoted
    only with exactly so many, or with as many as the Job writes to `/dev/termination-log`, such as
    `{"ownRecords": 12}`. If it has got others since, a new Job judges it.
    """
    on_failure: OnFailure = OnFailure.SQUASH
    """What happens to the fork if the Job fails. A fork whose Job has succeeded with a report that
    can't be understood is left as it is.
    """


class Promotion(Shape, frozen=True, kw_only=True):
    """Who or what decides that the fork's records become its parent's."""

    policy: Policy = Policy.MANUAL
    """What must be so before a fork with `state: Promoted` is promoted."""
    gate: Gate | None = None
    """The Job that judges the fork. Needed by policy Gate, possible with Approval."""


class ForkSpec(Shape, frozen=True, kw_only=True):
    """What is wanted of a fork."""

    parent: Parent
    """The log or fork that this one leaves. It can't be changed later."""
    type: ForkType = ForkType.CONTINUOUS
    """Whether the fork goes on receiving what is appended to its parent. It can't be changed later.
    """
    at: At | None = None
    """Where a severed fork leaves its parent; at the parent's tail if this is left out. It can't be
    changed later.
    """
    promotable: bool = False
    """Whether the fork may be promoted. Until it is promoted or squashed, readers of the parent
    wait at the fork point. It can't be changed later.
    """
    isolation: Isolation = Isolation.POOLED
    """Whether the fork shares a broker with other logs. It can't be changed later."""
    ttl: Span | None = None
    """Time to live: the fork is squashed so long after it was made, such as `7d`. It stays if this
    is left out. It can't be changed later.
    """
    ttl_after_finished: Span | None = None
    """How long the resource stays after the fork was promoted or squashed or has expired, such as
    `1h`. It stays for good if this is left out.
    """
    protected: bool = False
    """Whether deleting the resource is refused. Set it to false to delete a protected Fork."""
    quota: Quota | None = None
    """How much may be appended and read in a second. The fork has its parent's quota at first, and
    keeps it if this is left out; `{}` lifts it.
    """
    on_parent_delete: ParentDeletion = ParentDeletion.ORPHAN
    """What happens to a severed fork when its parent is deleted. It can't be changed later."""
    deletion_policy: ForkDeletion = ForkDeletion.SQUASH
    """What deleting the resource does to the fork."""
    adopt: bool = False
    """If a fork of this name was made through the API, take it over instead of reporting NameTaken.
    Only in the installation's namespace.
    """
    fork_name: LogName | None = None
    """The fork's own part of its name in the log service; the resource's name if this is left out.
    It can't be changed later.
    """
    state: ForkState = ForkState.ACTIVE
    """Set it to `Promoted` to have the fork promoted; `promotion.policy` says what must be so
    first.
    """
    approved: bool = False
    """Approves the promotion of a fork with policy Approval. It can't be taken back."""
    promotion: Promotion = Promotion()
    """Who or what decides on the fork's promotion."""


class GateStatus(Shape, frozen=True, kw_only=True):
    """What the operator last saw of the gate's Job."""

    job: str
    """Name of the Job."""
    attempt: int = 1
    """How often the fork has been judged, this Job included. It is judged again when it has got
    records that the Job hasn't judged.
    """
    own_records: int | None = None
    """Number of own records with which the fork may be promoted. While the Job runs, this is the
    number that the fork had right before the Job was made. Once the Job has succeeded, this is the
    number that it reported, or else the same as before.
    """
    result: str | None = None
    """`Succeeded`, `Failed`, `Moved` or `Invalid`, once the Job has ended. `Moved` means that the
    fork has got records that the Job hasn't judged. `Invalid` means that the Job has succeeded, but
    its report can't be understood.
    """
    next_at: Moment | None = None
    """When another Job judges the fork, if the result is `Moved`. The pause is 10 seconds at first,
    and doubles with each attempt up to 10 minutes.
    """
    message: str | None = None
    """Why the Job failed, with the last lines of its log where the chart's value `gates.logs` is
    set, or why its verdict doesn't count.
    """


class ForkStatus(Shape, frozen=True, kw_only=True):
    """What the operator last saw of the fork."""

    observed_generation: int = 0
    """The `metadata.generation` that this status is about; a lower one means that the operator
    hasn't acted on the latest change of the spec yet.
    """
    phase: ForkPhase = ForkPhase.PENDING
    """Where the fork is in its life."""
    log_id: int | None = None
    """The fork's id in the log service. An id is never given to another log."""
    log_name: str | None = None
    """The fork's full name in the log service, which clients open it by, such as `orders--what-if`.
    """
    parent: str | None = None
    """The parent's full name in the log service."""
    fork_point: int | None = None
    """The first position that isn't inherited from the parent."""
    tail: int | None = None
    """The position that the next record gets."""
    own_records: int | None = None
    """Number of records that were appended to the fork itself."""
    lag: int | None = None
    """Number of records that the parent has received since the fork point and that the fork doesn't
    see.
    """
    broker: str | None = None
    """The pod whose broker serves the fork."""
    endpoint: str | None = None
    """The URL by which clients reach the fork."""
    made_by: str | None = None
    """Who made the fork: `operator`, or `api` if it was adopted."""
    expires_at: Moment | None = None
    """When the fork's time to live ends."""
    finished_at: Moment | None = None
    """When the operator saw that the fork was promoted or squashed or had expired."""
    gate: GateStatus | None = None
    """What the operator last saw of the gate's Job."""
    conditions: Conditions = field(default_factory=list[Condition])
    """Conditions of the fork: Ready, GatePassed and others, each with a reason and a message."""
