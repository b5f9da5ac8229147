"""The one hierarchy of errors: a stable code, what was asked, what stood in the way, what to do.

AnabranchError
|-- Retry      the same request may succeed later
|-- Refresh    what the caller knows is out of date: look again, then decide
|-- Fenced     somebody else has taken over: stop
|-- Mistake    the request itself can't be granted
`-- Damage     stored bytes are not what was written: an operator must look
"""

from collections.abc import Mapping

from anabranch.core.errors.base import (
    AnabranchError,
    Damage,
    Fact,
    Fenced,
    Mistake,
    Refresh,
    Retry,
)
from anabranch.core.errors.belfast import (
    CantJoin,
    LastShard,
    NotPrimary,
    PositionTrimmed,
    RecordVoided,
    ShardAway,
    ShardElsewhere,
    ShardFailed,
    ShardLeft,
    TrimTooFar,
    UnknownShard,
)
from anabranch.core.errors.black_box import (
    BLACK_BOX_TROUBLES,
    BlackBoxBehind,
    BlackBoxChanged,
    BlackBoxFailed,
    BlackBoxFenced,
    BlackBoxReplaced,
    BlackBoxTaken,
    BlackBoxUnfit,
)
from anabranch.core.errors.logs import (
    AppendBlocked,
    BadName,
    CompactorEnded,
    EngineNotServed,
    ForkBlocked,
    ForkMoved,
    FrontDiffers,
    FrontNotServed,
    IsRoot,
    LazyAppendsOnly,
    LogExists,
    LogHasForks,
    NotOffered,
    NotPromotable,
    NotRoot,
    NotSealed,
    OutOfRange,
    OwnedByAnother,
    OwnsAnother,
    PlanEnded,
    PlanOutdated,
    PositionForgotten,
    Promoted,
    ReadBlocked,
    ReceiptExpired,
    ReceiptPending,
    SequenceGap,
    Squashed,
    UnknownLog,
    WrongEngine,
)
from anabranch.core.errors.marks import (
    NoWriterMarks,
    PartDiffers,
    PartGap,
    WriterConflict,
)
from anabranch.core.errors.service import (
    BadFrame,
    BadRequest,
    BatchTooLarge,
    BatchUnreadable,
    BrokerDraining,
    BrokerFenced,
    BrokerInUse,
    CorruptBatch,
    DeadlineExceeded,
    Forbidden,
    LateCommit,
    NoSpareBroker,
    NotReady,
    OutcomeUnknown,
    Overloaded,
    PositionPending,
    QuotaExceeded,
    RecordTooLarge,
    RequestForgotten,
    RequestReused,
    StaleView,
    TooMany,
    TooManyHeaders,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    UnknownBroker,
    UnsupportedBatch,
    VersionMismatch,
)
from anabranch.core.errors.storage import (
    AccessDenied,
    ClockSkewed,
    CorruptObject,
    DataDirLocked,
    Deposed,
    EntryCorrupt,
    HalfCluster,
    JournalBehind,
    JournalCorrupt,
    JournalTooNew,
    NoteDamaged,
    NotFetchable,
    NotLost,
    ObjectExists,
    ObjectMissing,
    RecordsDamaged,
    StorageFailed,
    StorageFull,
    UnknownCluster,
    WrongCluster,
)

__all__ = [
    "BLACK_BOX_TROUBLES",
    "BY_CODE",
    "AccessDenied",
    "AnabranchError",
    "AppendBlocked",
    "BadFrame",
    "BadName",
    "BadRequest",
    "BatchTooLarge",
    "BatchUnreadable",
    "BlackBoxBehind",
    "BlackBoxChanged",
    "BlackBoxFailed",
    "BlackBoxFenced",
    "BlackBoxReplaced",
    "BlackBoxTaken",
    "BlackBoxUnfit",
    "BrokerDraining",
    "BrokerFenced",
    "BrokerInUse",
    "CantJoin",
    "ClockSkewed",
    "CompactorEnded",
    "CorruptBatch",
    "CorruptObject",
    "Damage",
    "DataDirLocked",
    "DeadlineExceeded",
    "Deposed",
    "EngineNotServed",
    "EntryCorrupt",
    "Fact",
    "Fenced",
    "Forbidden",
    "ForkBlocked",
    "ForkMoved",
    "FrontDiffers",
    "FrontNotServed",
    "HalfCluster",
    "IsRoot",
    "JournalBehind",
    "JournalCorrupt",
    "JournalTooNew",
    "LastShard",
    "LateCommit",
    "LazyAppendsOnly",
    "LogExists",
    "LogHasForks",
    "Mistake",
    "NoSpareBroker",
    "NoWriterMarks",
    "NotFetchable",
    "NotLost",
    "NotOffered",
    "NotPrimary",
    "NotPromotable",
    "NotReady",
    "NotRoot",
    "NotSealed",
    "NoteDamaged",
    "ObjectExists",
    "ObjectMissing",
    "OutOfRange",
    "OutcomeUnknown",
    "Overloaded",
    "OwnedByAnother",
    "OwnsAnother",
    "PartDiffers",
    "PartGap",
    "PlanEnded",
    "PlanOutdated",
    "PositionForgotten",
    "PositionPending",
    "PositionTrimmed",
    "Promoted",
    "QuotaExceeded",
    "ReadBlocked",
    "ReceiptExpired",
    "ReceiptPending",
    "RecordTooLarge",
    "RecordVoided",
    "RecordsDamaged",
    "Refresh",
    "RequestForgotten",
    "RequestReused",
    "Retry",
    "SequenceGap",
    "ShardAway",
    "ShardElsewhere",
    "ShardFailed",
    "ShardLeft",
    "Squashed",
    "StaleView",
    "StorageFailed",
    "StorageFull",
    "TooMany",
    "TooManyHeaders",
    "TrimTooFar",
    "Unauthenticated",
    "Unauthorized",
    "Unavailable",
    "UnknownBroker",
    "UnknownCluster",
    "UnknownLog",
    "UnknownShard",
    "UnsupportedBatch",
    "VersionMismatch",
    "WriterConflict",
    "WrongCluster",
    "WrongEngine",
    "restore",
    "reworded",
]


def _family(root: type[AnabranchError]) -> list[type[AnabranchError]]:
    """Depth first in order of definition, so that the table of codes reads like this file."""
    return [root, *(c for child in root.__subclasses__() for c in _family(child))]


BY_CODE = {kind.code: kind for kind in _family(AnabranchError)}


def restore(code: str, message: str, facts: dict[str, Fact]) -> AnabranchError:
    """The error that the other side raised, as the same class where this version knows it."""
    kind = BY_CODE.get(code, AnabranchError)
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.message, error.facts = message, facts
    return error


def reworded(error: AnabranchError, words: Mapping[str, str]) -> str:
    """What an error says to a reader whose own words for some codes are these.

    Words for `wrong-engine/fork` are for errors of that code whose fact `asked` is `fork`. An error
    of another version may lack facts that the words name: then it speaks for itself.
    """
    said = words.get(f"{error.code}/{error.facts.get('asked')}") or words.get(error.code)
    if said is None:
        return error.message
    try:
        return said.format(**error.facts)
    except LookupError:
        return error.message
