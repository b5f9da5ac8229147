"""Every condition and every reason there is, declared once: code, CRDs and documents read it here.

A condition's reason is an enum's member name in the resources, a sentence for people in the docs.
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One statement about a resource (KEP-1623)."""

    type: str
    """What it is about."""
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str
    """Why, in one word that programs may compare."""
    message: str
    """Why, for people, and what to do."""
    last_transition_time: str
    """When the status last changed."""
    observed_generation: int
    """The generation of the resource that this is said of."""


class Type(StrEnum):
    READY = "Ready"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    PAUSED = "Paused"
    SERVICE_REACHABLE = "ServiceReachable"
    DELETION_BLOCKED = "DeletionBlocked"
    GATE_PASSED = "GatePassed"
    APPROVED = "Approved"
    POOL_EXHAUSTED = "PoolExhausted"
    ROLLOUT_BLOCKED = "RolloutBlocked"


class Reason(StrEnum):
    # Logs and forks.
    SERVING = "Serving"
    CREATING = "Creating"
    ENGINE_NOT_AVAILABLE = "EngineNotAvailable"
    PARENT_MISSING = "ParentMissing"
    PARENT_NOT_READY = "ParentNotReady"
    NAME_TAKEN = "NameTaken"
    REFUSED = "Refused"
    PARENT_BLOCKED = "ParentBlocked"
    NO_SPARE_BROKER = "NoSpareBroker"
    SERVICE_AWAY = "ServiceAway"
    SERVICE_ANSWERS = "ServiceAnswers"
    LOG_LOST = "LogLost"
    NOT_SERVED = "NotServed"
    PROMOTING = "Promoting"
    PROMOTED = "Promoted"
    SQUASHED = "Squashed"
    EXPIRED = "Expired"
    INVALID = "Invalid"
    WRITE_FAILED = "WriteFailed"
    # Deletion.
    TERMINATING = "Terminating"
    PROTECTED = "Protected"
    HAS_FORKS = "HasForks"
    # Gates.
    GATE_RUNNING = "GateRunning"
    GATE_SUCCEEDED = "GateSucceeded"
    GATE_FAILED = "GateFailed"
    GATE_INVALID = "GateInvalid"
    AWAITING_APPROVAL = "AwaitingApproval"
    APPROVED = "Approved"
    # Pools.
    POOL_COMPLETE = "PoolComplete"
    SCALING = "Scaling"
    ROLLING = "Rolling"
    DRAINING = "Draining"
    AT_MAXIMUM = "AtMaximum"
    WITHIN_BOUNDS = "WithinBounds"
    PODS_FAILING = "PodsFailing"
    PODS_HEALTHY = "PodsHealthy"
    WAITING_FOR_BROKERS = "WaitingForBrokers"
    UP_TO_DATE = "UpToDate"
    # Everybody's.
    PAUSED = "Paused"
    RUNNING = "Running"


@dataclass(frozen=True, slots=True)
class Declared:
    """A condition as a kind of resource may bear it."""

    type: Type
    kinds: tuple[str, ...]
    meaning: str
    reasons: tuple[Reason, ...]


_LOGS = ("Log", "Fork")

TABLE: tuple[Declared, ...] = (
    Declared(
        Type.READY,
        ("Log", "Fork", "BrokerPool"),
        "It is there as it was asked for and can be used.",
        (
            Reason.SERVING,
            Reason.CREATING,
            Reason.ENGINE_NOT_AVAILABLE,
            Reason.PARENT_MISSING,
            Reason.PARENT_NOT_READY,
            Reason.PARENT_BLOCKED,
            Reason.NAME_TAKEN,
            Reason.REFUSED,
            Reason.NO_SPARE_BROKER,
            Reason.SERVICE_AWAY,
            Reason.LOG_LOST,
            Reason.NOT_SERVED,
            Reason.PROMOTING,
            Reason.PROMOTED,
            Reason.SQUASHED,
            Reason.EXPIRED,
            Reason.TERMINATING,
            Reason.INVALID,
            Reason.WRITE_FAILED,
            Reason.POOL_COMPLETE,
            Reason.SCALING,
            Reason.WAITING_FOR_BROKERS,
        ),
    ),
    Declared(
        Type.PROGRESSING,
        ("BrokerPool",),
        "Pods are being made, moved or taken away.",
        (Reason.SCALING, Reason.ROLLING, Reason.DRAINING, Reason.UP_TO_DATE),
    ),
    Declared(
        Type.DEGRADED,
        ("BrokerPool",),
        "Some pods can't serve.",
        (Reason.PODS_FAILING, Reason.PODS_HEALTHY),
    ),
    Declared(
        Type.PAUSED,
        ("Log", "Fork", "BrokerPool"),
        "The operator leaves it alone because the annotation `anabranch.dev/paused` says so.",
        (Reason.PAUSED, Reason.RUNNING),
    ),
    Declared(
        Type.SERVICE_REACHABLE,
        ("Log", "Fork", "BrokerPool"),
        "The log service answers the operator.",
        (Reason.SERVICE_ANSWERS, Reason.SERVICE_AWAY),
    ),
    Declared(
        Type.DELETION_BLOCKED,
        _LOGS,
        "It was deleted, and something must be decided or come back before it can go.",
        (Reason.PROTECTED, Reason.HAS_FORKS, Reason.SERVICE_AWAY, Reason.REFUSED),
    ),
    Declared(
        Type.GATE_PASSED,
        ("Fork",),
        "The Job of its promotion gate has succeeded.",
        (Reason.GATE_RUNNING, Reason.GATE_SUCCEEDED, Reason.GATE_FAILED, Reason.GATE_INVALID),
    ),
    Declared(
        Type.APPROVED,
        ("Fork",),
        "Somebody has set `spec.approved`.",
        (Reason.AWAITING_APPROVAL, Reason.APPROVED),
    ),
    Declared(
        Type.POOL_EXHAUSTED,
        ("BrokerPool",),
        "More brokers are needed than `spec.max` allows.",
        (Reason.AT_MAXIMUM, Reason.WITHIN_BOUNDS),
    ),
    Declared(
        Type.ROLLOUT_BLOCKED,
        ("BrokerPool",),
        "Pods should be replaced, and it isn't safe to.",
        (Reason.WAITING_FOR_BROKERS, Reason.PODS_FAILING, Reason.UP_TO_DATE),
    ),
)
