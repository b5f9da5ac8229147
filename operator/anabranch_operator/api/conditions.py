"""Every condition and every reason there is, declared once: code, CRDs and documents read it here.

A condition's reason is a word in the resources; what it means to people stands below it here.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from anabranch_operator.api.common import Moment, Shape, keyed_by

_WORD = "^[A-Za-z]+$"


class Condition(Shape, frozen=True, kw_only=True):
    """A condition of the resource, as in the Kubernetes API conventions."""

    type: Annotated[str, Meta(max_length=64, pattern=_WORD)]
    """What the condition is about, such as `Ready`."""
    status: Annotated[str, Meta(extra_json_schema={"enum": ["True", "False", "Unknown"]})]
    """Whether it is so: `True`, `False` or `Unknown`."""
    reason: Annotated[str, Meta(max_length=64, pattern=_WORD)]
    """Why it is so, as one word that programs may compare."""
    message: Annotated[str, Meta(max_length=32_768)]
    """Why it is so, for people, and what to do about it."""
    last_transition_time: Moment
    """When `status` last changed."""
    observed_generation: Annotated[int, Meta(ge=0)]
    """The `metadata.generation` that the condition is about."""


Conditions = Annotated[list[Condition], Meta(max_length=32), keyed_by("type")]


class Type(StrEnum):
    READY = "Ready"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    PAUSED = "Paused"
    SERVICE_REACHABLE = "ServiceReachable"
    GATE_PASSED = "GatePassed"
    APPROVED = "Approved"
    POOL_EXHAUSTED = "PoolExhausted"
    ROLLOUT_BLOCKED = "RolloutBlocked"
    WINDOW_OPEN = "WindowOpen"
    JOINING = "Joining"
    LEAVING = "Leaving"
    SEALED = "Sealed"
    RECONFIGURING = "Reconfiguring"


class Reason(StrEnum):
    # Logs and forks.
    SERVING = "Serving"
    """It is there and can be used."""
    ENGINE_NOT_AVAILABLE = "EngineNotAvailable"
    """The engine isn't run here: the message says why, and what to do."""
    PARENT_MISSING = "ParentMissing"
    """There is no Log or Fork of the parent's name in this namespace."""
    PARENT_NOT_READY = "ParentNotReady"
    """The parent isn't made yet."""
    NAME_TAKEN = "NameTaken"
    """Another log has this name: take another, or set `adopt` if nobody declares that log."""
    REFUSED = "Refused"
    """The log service refused what was asked, and the message says why."""
    PARENT_BLOCKED = "ParentBlocked"
    """An undecided promotable fork of the parent stands in the way: promote or squash it."""
    NO_SPARE_BROKER = "NoSpareBroker"
    """An exclusive fork waits for a broker that serves nothing."""
    SERVICE_AWAY = "ServiceAway"
    """The log service doesn't answer; it is asked again."""
    SERVICE_ANSWERS = "ServiceAnswers"
    """The log service answers."""
    LOG_LOST = "LogLost"
    """The log service doesn't know the log any more."""
    NOT_SERVED = "NotServed"
    """No broker serves it at the moment; one will be found."""
    ETCD_FULL = "EtcdFull"
    """Appends and changes are refused, because etcd takes no more."""
    PROMOTING = "Promoting"
    """It is being promoted."""
    PROMOTED = "Promoted"
    """Its records are its parent's."""
    SQUASHED = "Squashed"
    """The fork is gone."""
    EXPIRED = "Expired"
    """The fork is gone, because its time to live had ended."""
    INVALID = "Invalid"
    """The spec can't be understood: it was written under another CRD."""
    WRITE_FAILED = "WriteFailed"
    """The API server refused a write of the operator, and the message says which."""
    # Deletion.
    TERMINATING = "Terminating"
    """It was deleted."""
    # Gates.
    GATE_RUNNING = "GateRunning"
    """The gate's Job hasn't ended yet."""
    GATE_SUCCEEDED = "GateSucceeded"
    """The gate's Job has succeeded."""
    GATE_FAILED = "GateFailed"
    """The gate's Job has failed. The message has the last lines of its log where `gates.logs` is
    set, with what looks like a secret left out.
    """
    FORK_MOVED = "ForkMoved"
    """Records were appended to the fork that the gate's Job hasn't judged. The fork isn't promoted
    with that verdict, and another Job judges it. The message says how many records were judged, how
    many there are, and when the next Job starts. Appends to the fork must stop for a while, or each
    Job finds the same.
    """
    GATE_REPORT_INVALID = "GateReportInvalid"
    """The gate's Job has succeeded, and its report can't be understood: the message says why. The
    fork is neither promoted nor squashed.
    """
    GATE_INVALID = "GateInvalid"
    """The gate's Job isn't run: this installation allows no gates or not what the template asks
    for, or the API server refused the Job. The message says which.
    """
    AWAITING_APPROVAL = "AwaitingApproval"
    """`approved: true` is what it waits for."""
    APPROVED = "Approved"
    """Somebody has set `approved: true`."""
    # Pools.
    POOL_COMPLETE = "PoolComplete"
    """There are as many brokers as there should be, and they serve."""
    SCALING = "Scaling"
    """There are more or fewer brokers than there should be."""
    ROLLING = "Rolling"
    """Pods are being replaced by those of the new spec."""
    DRAINING = "Draining"
    """A broker hands over what it serves before it ends."""
    AT_MAXIMUM = "AtMaximum"
    """There are as many brokers as `max` allows, and more would be used."""
    WITHIN_BOUNDS = "WithinBounds"
    """`max` isn't in the way."""
    PODS_FAILING = "PodsFailing"
    """Some pods don't come up, or end again and again."""
    CERTIFICATES_FLAWED = "CertificatesFlawed"
    """A certificate that the operator hasn't made isn't as it should be; the message says which."""
    PODS_HEALTHY = "PodsHealthy"
    """All pods run."""
    WAITING_FOR_BROKERS = "WaitingForBrokers"
    """Others must serve before the next step."""
    UP_TO_DATE = "UpToDate"
    """There is nothing to do."""
    # Sequencers and shards.
    LEADING = "Leading"
    """A sequencer leads a majority of them."""
    SEQUENCERS_MISSING = "SequencersMissing"
    """There is no SequencerSet of that name in this namespace."""
    SHARDS_MISSING = "ShardsMissing"
    """There is no ShardGroup of that name in this namespace."""
    SEQUENCERS_AWAY = "SequencersAway"
    """No sequencer says that it leads; they are asked again."""
    SEATED = "Seated"
    """Every shard that is wanted takes appends."""
    AWAITING_SEATS = "AwaitingSeats"
    """Shards take no appends yet. Belfast gives them a seat in the next window that is published;
    Erwin takes them in when all of their replicas are there.
    """
    SHARDS_FAILED = "ShardsFailed"
    """Shards have failed as a whole: their subscribers are served by others."""
    WINDOW_PUBLISHED = "WindowPublished"
    """The order is fixed for some time to come, and shards speculate in it."""
    FREE_WILL = "FreeWill"
    """Cuts follow the shards at the moment: nothing is delivered before its cut."""
    NO_WINDOW = "NoWindow"
    """No window is published: no shard of the log has a seat."""
    AWAITING_BOUNDARY = "AwaitingBoundary"
    """A window counts on a shard that leaves: it goes at that window's end."""
    AWAITING_TRIM = "AwaitingTrim"
    """A shard takes no appends any more, and its records are kept until they are trimmed."""
    WAITING_FOR_COPIES = "WaitingForCopies"
    """All replicas of a shard, or all sequencers, must answer before the next step."""
    NONE_JOINS = "NoneJoins"
    """All shards that are wanted take appends."""
    NONE_LEAVES = "NoneLeaves"
    """There is no shard that isn't wanted."""
    # Sequencers and shards of Erwin logs, and sequencers of lazy fronts.
    NO_VIEW = "NoView"
    """The first view hasn't begun: it waits for the sequencers, and for a shard of an Erwin log."""
    VIEW_STARTED = "ViewStarted"
    """The members of the view take appends."""
    VIEW_SEALED = "ViewSealed"
    """The members take nothing of the old view any more: appends wait for the next one."""
    VIEW_CHANGING = "ViewChanging"
    """Another view is being made, because a member is silent, leaves, or comes back."""
    TAKING_OVER = "TakingOver"
    """Another replica becomes the primary of a shard."""
    CONTROLLER_AWAY = "ControllerAway"
    """No controller decides for the log: it goes on, and nothing is reconfigured."""
    OBSTRUCTED = "Obstructed"
    """The log's controller can't go on by itself; the message says what stands in the way."""
    LOG_MISSING = "LogMissing"
    """No Log has been found yet whose lazy appends these sequencers are to take."""
    NOTHING_COMMITTED = "NothingCommitted"
    """The log commits nothing of what a lazy front holds: appends go on until its ring is full."""
    FRONT_ENDING = "FrontEnding"
    """Lazy appends become direct: appends wait until the log has what the sequencers hold."""
    LAST_SHARD = "LastShard"
    """The last shard of an Erwin log stays, because appends need one."""
    UNCHANGED = "Unchanged"
    """Nothing is being reconfigured."""
    # Everybody's.
    PAUSED = "Paused"
    """The annotation `anabranch.dev/paused` is set."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A condition as a kind of resource may bear it."""

    type: Type
    kinds: tuple[str, ...]
    meaning: str
    reasons: tuple[Reason, ...]


_LOGS = ("Log", "Fork")
_PODS = ("BrokerPool", "SequencerSet", "ShardGroup")

TABLE: tuple[Declared, ...] = (
    Declared(
        Type.READY,
        ("Log", "Fork", "BrokerPool", "SequencerSet", "ShardGroup"),
        "It is there as it was asked for and can be used.",
        (
            Reason.SERVING,
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
            Reason.ETCD_FULL,
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
            Reason.LEADING,
            Reason.SEQUENCERS_MISSING,
            Reason.SHARDS_MISSING,
            Reason.SEQUENCERS_AWAY,
            Reason.SEATED,
            Reason.AWAITING_SEATS,
            Reason.SHARDS_FAILED,
            Reason.NO_VIEW,
            Reason.OBSTRUCTED,
            Reason.LOG_MISSING,
            Reason.FRONT_ENDING,
        ),
    ),
    Declared(
        Type.PROGRESSING,
        _PODS,
        "Pods are being made, moved or taken away.",
        (Reason.SCALING, Reason.ROLLING, Reason.DRAINING, Reason.UP_TO_DATE),
    ),
    Declared(
        Type.DEGRADED,
        _PODS,
        "Some pods can't serve, or a certificate isn't as it should be.",
        (
            Reason.PODS_FAILING,
            Reason.CERTIFICATES_FLAWED,
            Reason.WAITING_FOR_COPIES,
            Reason.OBSTRUCTED,
            Reason.CONTROLLER_AWAY,
            Reason.NOTHING_COMMITTED,
            Reason.PODS_HEALTHY,
        ),
    ),
    Declared(
        Type.PAUSED,
        ("Log", "Fork", "BrokerPool", "SequencerSet", "ShardGroup"),
        "The operator leaves it alone because the annotation `anabranch.dev/paused` says so.",
        (Reason.PAUSED,),
    ),
    Declared(
        Type.SERVICE_REACHABLE,
        ("Log", "Fork", "BrokerPool"),
        "The log service answers the operator.",
        (Reason.SERVICE_ANSWERS, Reason.SERVICE_AWAY),
    ),
    Declared(
        Type.GATE_PASSED,
        ("Fork",),
        "The Job of its promotion gate has succeeded.",
        (
            Reason.GATE_RUNNING,
            Reason.GATE_SUCCEEDED,
            Reason.GATE_FAILED,
            Reason.FORK_MOVED,
            Reason.GATE_REPORT_INVALID,
            Reason.GATE_INVALID,
        ),
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
        _PODS,
        "Pods should be replaced, and it isn't safe to.",
        (
            Reason.WAITING_FOR_BROKERS,
            Reason.WAITING_FOR_COPIES,
            Reason.SEQUENCERS_AWAY,
            Reason.PODS_FAILING,
            Reason.UP_TO_DATE,
        ),
    ),
    Declared(
        Type.WINDOW_OPEN,
        ("ShardGroup",),
        "A window is published, and shards speculate in it.",
        (
            Reason.WINDOW_PUBLISHED,
            Reason.FREE_WILL,
            Reason.NO_WINDOW,
            Reason.SEQUENCERS_AWAY,
            Reason.SEQUENCERS_MISSING,
            Reason.INVALID,
        ),
    ),
    Declared(
        Type.JOINING,
        ("ShardGroup",),
        "Shards that are wanted have no seat yet.",
        (Reason.AWAITING_SEATS, Reason.NONE_JOINS),
    ),
    Declared(
        Type.LEAVING,
        ("ShardGroup",),
        "Shards that aren't wanted are still there.",
        (
            Reason.AWAITING_BOUNDARY,
            Reason.AWAITING_TRIM,
            Reason.SEQUENCERS_AWAY,
            Reason.SEQUENCERS_MISSING,
            Reason.DRAINING,
            Reason.LAST_SHARD,
            Reason.INVALID,
            Reason.NONE_LEAVES,
        ),
    ),
    Declared(
        Type.SEALED,
        ("Log", "SequencerSet"),
        "Engine erwin and lazy appends: appends wait, because the view has ended and the next one "
        "hasn't begun.",
        (
            Reason.VIEW_SEALED,
            Reason.VIEW_STARTED,
            Reason.NO_VIEW,
            Reason.SEQUENCERS_AWAY,
        ),
    ),
    Declared(
        Type.RECONFIGURING,
        ("Log", "SequencerSet", "ShardGroup"),
        "Engine erwin and lazy appends: the members of the view, or the replicas of a shard, are "
        "being changed.",
        (
            Reason.VIEW_CHANGING,
            Reason.TAKING_OVER,
            Reason.UNCHANGED,
            Reason.SEQUENCERS_AWAY,
            Reason.SEQUENCERS_MISSING,
            Reason.INVALID,
        ),
    ),
)
