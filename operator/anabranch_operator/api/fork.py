"""Fork: a fork of a log, declared."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from anabranch_operator.api.borrowed import JOB_TEMPLATE
from anabranch_operator.api.common import LogName, Moment, Quota, Shape, Span, instant
from anabranch_operator.api.conditions import Condition, Conditions


class ParentKind(StrEnum):
    LOG = "Log"
    """A root log."""
    FORK = "Fork"
    """Another fork."""


class ForkType(StrEnum):
    CONTINUOUS = "Continuous"
    """It goes on receiving what its parent receives."""
    SEVERED = "Severed"
    """It inherits what was there, and nothing of what comes."""


class Isolation(StrEnum):
    POOLED = "Pooled"
    """A broker may serve other forks beside it."""
    EXCLUSIVE = "Exclusive"
    """A broker serves it alone."""


class ParentDeletion(StrEnum):
    ORPHAN = "Orphan"
    """It lives on, with what it inherited."""
    CASCADE = "Cascade"
    """It is squashed too."""


class ForkDeletion(StrEnum):
    SQUASH = "Squash"
    """The fork and its own records go."""
    RETAIN = "Retain"
    """The fork stays, and nobody declares it any more."""


class ForkState(StrEnum):
    ACTIVE = "Active"
    """A fork of its own."""
    PROMOTED = "Promoted"
    """Its records are its parent's. There is no way back."""


class Policy(StrEnum):
    MANUAL = "Manual"
    """Nothing: who wishes may promote."""
    GATE = "Gate"
    """The gate's Job, begun by the wish, has succeeded."""
    APPROVAL = "Approval"
    """Somebody has set `approved: true`, after the gate's Job has succeeded if there is one."""


class OnFailure(StrEnum):
    SQUASH = "Squash"
    """The fork is squashed."""
    HOLD = "Hold"
    """The fork stays as it is, for somebody to look at."""


class ForkPhase(StrEnum):
    PENDING = "Pending"
    """It isn't made yet: the condition Ready says why."""
    READY = "Ready"
    """It can be appended to and read."""
    GATING = "Gating"
    """It can be used, and its gate's Job runs."""
    AWAITING_APPROVAL = "AwaitingApproval"
    """It can be used, and waits for `approved: true`."""
    PROMOTING = "Promoting"
    """It is about to be promoted."""
    PROMOTED = "Promoted"
    """Its records are its parent's."""
    SQUASHED = "Squashed"
    """It is gone: by its gate, through the API, or with its parent."""
    EXPIRED = "Expired"
    """It is gone: its time to live had ended."""
    LOST = "Lost"
    """The log service doesn't know it any more, nor what became of it."""
    TERMINATING = "Terminating"
    """The resource was deleted, and something else holds it by a finalizer."""


FINISHED = (ForkPhase.PROMOTED, ForkPhase.SQUASHED, ForkPhase.EXPIRED)
"""The fork is no more, and its resource only tells what became of it."""


class Parent(Shape, frozen=True, kw_only=True):
    """What is forked."""

    kind: ParentKind = ParentKind.LOG
    """A Log or another Fork of the same namespace."""
    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """The name of its resource."""


class At(Shape, frozen=True, kw_only=True):
    """Where a severed fork leaves its parent: at a position or at a time."""

    position: Annotated[int, Meta(ge=0)] | None = None
    """The last position that it inherits."""
    time: Moment | None = None
    """Records that were committed before it are inherited, none committed at it or later; to the
    millisecond.
    """

    def __post_init__(self) -> None:
        if self.time is not None:
            instant(self.time)


class Gate(Shape, frozen=True, kw_only=True):
    """A Job that judges the fork. Who writes or starts it must have the right to create Jobs."""

    job_template: Annotated[dict[str, Any], Meta(extra_json_schema=JOB_TEMPLATE)]
    """A Job's metadata and spec; its containers find the fork's address in their environment."""
    on_failure: OnFailure = OnFailure.SQUASH
    """What becomes of a fork whose Job fails."""


class Promotion(Shape, frozen=True, kw_only=True):
    """Who or what decides that the fork's records become the parent's."""

    policy: Policy = Policy.MANUAL
    """What must be so before the wish `state: Promoted` is granted."""
    gate: Gate | None = None
    """The Job, for the policies Gate and Approval."""


class ForkSpec(Shape, frozen=True, kw_only=True):
    """What is wanted of a fork."""

    parent: Parent
    """The log or fork that it leaves."""
    type: ForkType = ForkType.CONTINUOUS
    """Does it go on receiving what its parent receives?"""
    at: At | None = None
    """Where a severed fork leaves its parent; at its tail if this is left out."""
    promotable: bool = False
    """May its records become its parent's? Until that is decided, readers of the parent wait."""
    isolation: Isolation = Isolation.POOLED
    """Does it share a broker with other forks?"""
    ttl: Span | None = None
    """The fork is squashed after so long."""
    ttl_after_finished: Span | None = None
    """The resource is deleted so long after the fork was promoted, squashed or has expired."""
    protected: bool = False
    """Deleting the resource is refused while this is set."""
    quota: Quota | None = None
    """How much may be appended and read in a second; first its parent's, and lifted by `{}`."""
    on_parent_delete: ParentDeletion = ParentDeletion.ORPHAN
    """What becomes of a severed fork when its parent is deleted."""
    deletion_policy: ForkDeletion = ForkDeletion.SQUASH
    """What deleting the resource does to the fork."""
    adopt: bool = False
    """Take over a fork of this name that was made through the API."""
    fork_name: LogName | None = None
    """The fork's own name in the service; the resource's name if it is left out."""
    state: ForkState = ForkState.ACTIVE
    """`Promoted` is the wish to promote it: `promotion.policy` says what must be so first."""
    approved: bool = False
    """Lets a fork of policy Approval be promoted."""
    promotion: Promotion = Promotion()
    """Who or what decides on its promotion."""


class GateStatus(Shape, frozen=True, kw_only=True):
    """What is known of the gate's Job."""

    job: str
    """Its name."""
    result: str | None = None
    """`Succeeded` or `Failed`, once it has ended."""
    message: str | None = None
    """Why it failed, with the last lines of its log where `gates.logs` is set."""


class ForkStatus(Shape, frozen=True, kw_only=True):
    """What the log service says of the fork."""

    observed_generation: int = 0
    """The generation of the spec that this status is about."""
    phase: ForkPhase = ForkPhase.PENDING
    """Where it is in its life."""
    log_id: int | None = None
    """The fork's id in the service; it is never given to another."""
    log_name: str | None = None
    """The fork's full name in the service."""
    parent: str | None = None
    """Its parent's full name in the service."""
    fork_point: int | None = None
    """The first position that isn't inherited."""
    tail: int | None = None
    """The position that the next record gets."""
    own_records: int | None = None
    """How many records were appended to the fork itself."""
    lag: int | None = None
    """How many records the parent has received since that the fork doesn't see."""
    broker: str | None = None
    """The pod that serves it."""
    endpoint: str | None = None
    """Where clients reach it."""
    made_by: str | None = None
    """`operator`, or `api` if it was adopted."""
    expires_at: Moment | None = None
    """When its time to live ends."""
    finished_at: Moment | None = None
    """When it was seen to be promoted, squashed or expired."""
    gate: GateStatus | None = None
    """What is known of the gate's Job."""
    conditions: Conditions = field(default_factory=list[Condition])
    """What can be said of it."""
