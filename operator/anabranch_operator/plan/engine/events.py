"""What the operator's machine hears, and what it wants done."""

from msgspec import Struct

from anabranch_operator.api.anabranch_names import (
    BrokerSeat,
    CancelTimer,
    Description,
    Done,
    Promotion,
    Refused,
    SetTimer,
    Status,
    TimerFired,
)
from anabranch_operator.plan.certificates.facts import Holdings
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.objects import Observed, Ref


class Seen(Struct, frozen=True):
    """An object is so; told of each when the operator starts, and of every change."""

    object: Observed


class Gone(Struct, frozen=True):
    """Of all objects of its name, the one with this UID is no more."""

    ref: Ref
    uid: str


class Listed(Struct, frozen=True):
    """All objects of this kind have been told of."""

    kind: str


class Elected(Struct, frozen=True):
    """We lead; whatever an earlier leader asks of the log service from now on is refused."""

    epoch: int


class Deposed(Struct, frozen=True):
    """It doesn't lead any more. What is on its way may still be answered."""


class Viewed(Struct, frozen=True):
    """The owned logs and all brokers, as the log service told them."""

    logs: tuple[Description, ...]
    brokers: tuple[BrokerSeat, ...]


class Unseen(Struct, frozen=True):
    """The log service couldn't be looked at."""

    why: str


class Visited(Struct, frozen=True):
    """How the leader of a Belfast log says it is; or why nobody says so."""

    ref: Ref
    """The SequencerSet."""
    uid: str
    status: Status | None = None
    why: str = ""


class Vitals(Struct, frozen=True):
    """What a pod says of itself."""

    leading: bool = False
    """A metadata member's: it leads the group."""
    behind: int = 0
    """A metadata member's: entries of the journal that it hasn't applied."""
    etcd_full: bool = False
    """A metadata member's: etcd takes no more, so nothing can be journaled."""
    append_bytes_per_s: float = 0.0
    confirmed: int = 0
    """A shard's: its records and no-ops whose places turned out as they were foretold."""
    voided: int = 0
    """And those whose places were void, because it had failed."""


class Measured(Struct, frozen=True):
    """What pods say, by their UIDs; one that doesn't answer isn't in it."""

    vitals: dict[str, Vitals]


class Evicting(Struct, frozen=True):
    """Somebody wants this pod off its node; again and again, until it may go."""

    uid: str


class Refusal(Struct, frozen=True):
    """Why an action didn't work."""

    code: str
    """The log service's, or one of the API server's below."""
    message: str
    retry_after_ms: int = 0
    """As whoever refused wants it."""


CONFLICT, NOT_FOUND, INVALID, FORBIDDEN = "conflict", "not-found", "invalid", "forbidden"
TOO_MANY, AWAY, NOT_STANDING = "too-many-requests", "away", "not-standing"
"""`not-standing`: our lease isn't good any more, and nothing was sent."""


class Text(Struct, frozen=True):
    """Lines of a log."""

    text: str


Outcome = Observed | Description | Promotion | Done | Text | Holdings | Refusal | Refused | None
"""Of one action. An `Observed` is the object as it is after it; None where there is nothing to
tell.
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
    """Perform an action, and tell its outcome under this number. Several may be on their way."""

    number: int
    reconcile: int
    """Which reconciliation it is part of."""
    ref: Ref
    """Of whom."""
    action: Action


class Look(Struct, frozen=True):
    """Look at the log service, and tell `Viewed` or `Unseen`."""


class Visit(Struct, frozen=True):
    """Ask the sequencers of a Belfast log how it is, and tell `Visited`."""

    ref: Ref
    uid: str
    url: str


class Evict(Struct, frozen=True):
    """The pod may go now."""

    uid: str


class Note(Struct, frozen=True):
    """A line for the operator's own log, and a result for its counters."""

    reconcile: int
    ref: Ref
    result: str
    """`steady`, `changed`, `refused` or `failed`."""
    message: str = ""


Effect = Do | Look | Visit | Evict | Note | SetTimer | CancelTimer
