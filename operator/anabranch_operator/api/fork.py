"""Fork: a fork of a log, declared."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from anabranch_operator.api.common import Quota, Shape, Span
from anabranch_operator.api.conditions import Condition


class ParentKind(StrEnum):
    LOG = "Log"
    FORK = "Fork"


class ForkType(StrEnum):
    CONTINUOUS = "Continuous"
    SEVERED = "Severed"


class Isolation(StrEnum):
    POOLED = "Pooled"
    EXCLUSIVE = "Exclusive"


class ParentDeletion(StrEnum):
    ORPHAN = "Orphan"
    CASCADE = "Cascade"


class ForkDeletion(StrEnum):
    SQUASH = "Squash"
    RETAIN = "Retain"


class ForkState(StrEnum):
    ACTIVE = "Active"
    PROMOTED = "Promoted"


class Policy(StrEnum):
    MANUAL = "Manual"
    GATE = "Gate"
    APPROVAL = "Approval"


class OnFailure(StrEnum):
    SQUASH = "Squash"
    HOLD = "Hold"


class ForkPhase(StrEnum):
    PENDING = "Pending"
    READY = "Ready"
    GATING = "Gating"
    AWAITING_APPROVAL = "AwaitingApproval"
    PROMOTING = "Promoting"
    PROMOTED = "Promoted"
    SQUASHED = "Squashed"
    EXPIRED = "Expired"
    LOST = "Lost"
    TERMINATING = "Terminating"


FINISHED = (ForkPhase.PROMOTED, ForkPhase.SQUASHED, ForkPhase.EXPIRED)
"""The fork is no more, and its resource only tells what became of it."""


class Parent(Shape, frozen=True, kw_only=True):
    """What is forked."""

    kind: ParentKind = ParentKind.LOG
    """A Log or another Fork of the same namespace."""
    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Its name."""


class At(Shape, frozen=True, kw_only=True):
    """The past moment at which a severed fork leaves its parent: a position or a time."""

    position: Annotated[int, Meta(ge=0)] | None = None
    """The last position that it inherits."""
    time: Annotated[str, Meta(max_length=40, extra_json_schema={"format": "date-time"})] | None = (
        None
    )
    """Everything committed by then is inherited."""


class Gate(Shape, frozen=True, kw_only=True):
    """A Job that judges the fork: its success is what a promotion waits for."""

    job_template: dict[str, Any]
    """A Job's metadata and spec; the fork's address comes in the environment of its containers."""
    on_failure: OnFailure = OnFailure.SQUASH
    """What becomes of a fork whose Job fails."""


class Promotion(Shape, frozen=True, kw_only=True):
    """Who or what decides that the fork's records become the parent's."""

    policy: Policy = Policy.MANUAL
    """`state: Promoted`; a Job's success; or `approved: true`, after the Job's if there is one."""
    gate: Gate | None = None
    """The Job."""


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
    """How much may be appended and read in a second; as its parent's if this is left out."""
    on_parent_delete: ParentDeletion = ParentDeletion.ORPHAN
    """What becomes of a severed fork when its parent is deleted."""
    deletion_policy: ForkDeletion = ForkDeletion.SQUASH
    """What deleting the resource does to the fork."""
    adopt: bool = False
    """Take over a fork of this name that was made through the API."""
    fork_name: Annotated[str, Meta(max_length=200)] | None = None
    """The fork's own name in the service; the resource's name if it is left out."""
    state: ForkState = ForkState.ACTIVE
    """`Promoted` promotes it."""
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
    """The last lines of its log, if it failed."""


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
    expires_at: str | None = None
    """When its time to live ends."""
    finished_at: str | None = None
    """When it was seen to be promoted, squashed or expired."""
    gate: GateStatus | None = None
    """What is known of the gate's Job."""
    conditions: list[Condition] = field(default_factory=list[Condition])
    """What can be said of it."""
