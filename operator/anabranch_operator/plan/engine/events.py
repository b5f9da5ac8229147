"""The events that the operator's machine handles, and the effects that it asks for."""

from msgspec import Struct

from anabranch_operator.api.anabranch_names import (
    BrokerSeat,
    CancelTimer,
    Description,
    Done,
    Promotion,
    Refused,
    SetTimer,
    TimerFired,
)
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.plan.certificates.facts import Holdings
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.groups.report import Report


class Seen(Struct, frozen=True):
    """An object as it is now, told at the start of the operator and after every change."""

    object: Observed


class Gone(Struct, frozen=True):
    """The object with this name and UID doesn't exist any more."""

    ref: Ref
    uid: str


class Listed(Struct, frozen=True):
    """All objects of this kind have been seen."""

    kind: str


class Elected(Struct, frozen=True):
    """The operator leads from now on. The log service refuses what earlier leaders still ask."""

    epoch: int


class Deposed(Struct, frozen=True):
    """The operator doesn't lead any more. Actions in flight may still be answered."""


class Viewed(Struct, frozen=True):
    """All logs with an owner and all brokers, as the log service listed them."""

    logs: tuple[Description, ...]
    brokers: tuple[BrokerSeat, ...]


class Unseen(Struct, frozen=True):
    """The log service couldn't be asked for its logs and brokers."""

    why: str


class Visited(Struct, frozen=True):
    """What the leader of a log told of it, or why nobody did."""

    ref: Ref
    """The SequencerSet."""
    uid: str
    report: Report | None = None
    why: str = ""


class Vitals(Struct, frozen=True):
    """What the metrics of a pod say."""

    leading: bool = False
    """Of a metadata member: it leads the group."""
    behind: int = 0
    """Of a metadata member: number of journal entries that it hasn't applied."""
    etcd_full: bool = False
    """Of a metadata member: etcd takes no more, so nothing can be journaled."""
    append_bytes_per_s: float = 0.0
    confirmed: int = 0
    """Of a shard: number of its records and no-ops whose predicted positions were confirmed."""
    voided: int = 0
    """Of a shard: number of those that lost their positions because it had failed."""


class Measured(Struct, frozen=True):
    """The metrics of pods, by UID. A pod that doesn't answer is left out."""

    vitals: dict[str, Vitals]


class Evicting(Struct, frozen=True):
    """Somebody asks to evict this pod, and asks again until it may go."""

    uid: str


class Refusal(Struct, frozen=True):
    """Why an action failed."""

    code: str
    """The log service's error code, or one of the codes below for the API server."""
    message: str
    retry_after_ms: int = 0
    """Least pause before the next attempt, if the refusal gave one."""


CONFLICT, NOT_FOUND, INVALID, FORBIDDEN = "conflict", "not-found", "invalid", "forbidden"
TOO_MANY, AWAY, NOT_STANDING = "too-many-requests", "away", "not-standing"
"""`not-standing`: this operator's Lease has expired, so nothing was sent."""


class Text(Struct, frozen=True):
    """The last lines of a pod's log."""

    text: str


Outcome = Observed | Description | Promotion | Done | Text | Holdings | Refusal | Refused | None
"""The outcome of one action. `Observed` is the object after the action; None says that it succeeded
and has no result.
"""


class Answered(Struct, frozen=True):
    number: int
    outcome: Outcome


Event = (
    Seen
    | Gone
    | Listed
    | Elected
    | Deposed
    | Viewed
    | Unseen
    | Visited
    | Measured
    | Evicting
    | Answered
    | TimerFired
)


class Do(Struct, frozen=True):
    """Perform an action, and report its outcome under this number. Several may be in flight."""

    number: int
    reconcile: int
    """Number of the reconciliation that planned it."""
    ref: Ref
    """The object that it was planned for."""
    action: Action


class Look(Struct, frozen=True):
    """Ask the log service for its logs and brokers, and report `Viewed` or `Unseen`."""


class Visit(Struct, frozen=True):
    """Ask the sequencers of a log how it is, and report `Visited`."""

    ref: Ref
    uid: str
    url: str
    engine: GroupEngineName = GroupEngineName.BELFAST


class Evict(Struct, frozen=True):
    """Let the pod be evicted now."""

    uid: str


class Note(Struct, frozen=True):
    """A line for the operator's log, and a result for its metrics."""

    reconcile: int
    ref: Ref
    result: str
    """`steady`, `changed`, `refused` or `failed`."""
    message: str = ""


Effect = Do | Look | Visit | Evict | Note | SetTimer | CancelTimer
