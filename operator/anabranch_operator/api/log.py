"""Log: a root log of the service, declared."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from anabranch_operator.api.common import LogName, Quota, Shape, Span
from anabranch_operator.api.conditions import Condition, Conditions


class Engine(StrEnum):
    BOLT = "bolt"
    """Records are gathered in objects, and have their positions when those are stored."""
    BELFAST = "belfast"
    """Not available yet."""
    ERWIN = "erwin"
    """Not available yet."""


class LogDeletion(StrEnum):
    RETAIN = "Retain"
    """The log stays, and nobody declares it any more."""
    DELETE = "Delete"
    """The log and its records go, once it has no forks."""


class LogPhase(StrEnum):
    PENDING = "Pending"
    """It isn't made yet: the condition Ready says why."""
    READY = "Ready"
    """It can be appended to and read."""
    TERMINATING = "Terminating"
    """The resource was deleted, and something else holds it by a finalizer."""
    LOST = "Lost"
    """The log service doesn't know it any more."""


class Retention(Shape, frozen=True, kw_only=True):
    """What is trimmed from the beginning; forks keep what they inherited."""

    age: Span | None = None
    """Records committed longer ago than this are trimmed."""
    records: Annotated[int, Meta(ge=1)] | None = None
    """No more than so many records are kept."""


class LogSpec(Shape, frozen=True, kw_only=True):
    """What is wanted of a root log."""

    engine: Engine = Engine.BOLT
    """How records enter the log; `belfast` and `erwin` aren't available yet."""
    log_name: LogName | None = None
    """The log's name in the service; the resource's name if it is left out."""
    adopt: bool = False
    """Take over a log of this name that nobody has declared yet."""
    retention: Retention = Retention()
    """How much history is kept; all of it if this is left out."""
    quota: Quota | None = None
    """How much may be appended and read in a second; as it is if left out, lifted by `{}`."""
    deletion_policy: LogDeletion = LogDeletion.RETAIN
    """What deleting the resource does to the log and its records."""


class LogStatus(Shape, frozen=True, kw_only=True):
    """What the log service says of the log."""

    observed_generation: int = 0
    """The generation of the spec that this status is about."""
    phase: LogPhase = LogPhase.PENDING
    """Where it is in its life."""
    log_id: int | None = None
    """The log's id in the service; it is never given to another."""
    log_name: str | None = None
    """The log's full name in the service."""
    start: int | None = None
    """The first position that can still be read."""
    tail: int | None = None
    """The position that the next record gets."""
    settled: int | None = None
    """Below it no undecided fork can change anything."""
    forks: int | None = None
    """How many forks it has."""
    broker: str | None = None
    """The pod that serves it."""
    endpoint: str | None = None
    """Where clients reach it."""
    conditions: Conditions = field(default_factory=list[Condition])
    """What can be said of it."""
