"""The names of the log service that the operator's resources and plans are written in.

Nothing else in `api` and `plan` imports `anabranch`: what the operator depends on is read here.
"""

from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.messages import ShardStatus, Status
from anabranch.core.bolt.protocol.commands import Description, Done, EngineSettings, Promotion
from anabranch.core.bolt.protocol.queries import BrokerSeat
from anabranch.core.bolt.state.catalogue import ENDING
from anabranch.core.bolt.state.placement import DRAINING as BROKER_DRAINING
from anabranch.core.bolt.state.placement import LOST as BROKER_LOST
from anabranch.core.bolt.state.placement import READY as BROKER_READY
from anabranch.core.errors import (
    BadRequest,
    DeadlineExceeded,
    ForkBlocked,
    ForkMoved,
    LogExists,
    NoSpareBroker,
    Promoted,
    Squashed,
    Unavailable,
    UnknownBroker,
    UnknownLog,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import CancelTimer, SetTimer, TimerFired, Value
from anabranch.core.quota import AppendShare
from anabranch.core.quota import Quota as LogQuota
from anabranch.core.redaction import IS, NAMED, VALUE, printable, redacted, replaced
from anabranch.core.sequencing.protocol.messages import LogSurvey, SequencingStatus, ShardPlace
from anabranch.core.types import (
    MS,
    Kind,
    LogId,
    Milliseconds,
    Nanoseconds,
    OnParentDelete,
    Position,
)
from anabranch.shell.runtime.prose import proses

__all__ = [
    "BROKER_DRAINING",
    "BROKER_LOST",
    "BROKER_READY",
    "ENDING",
    "IS",
    "MS",
    "NAMED",
    "VALUE",
    "AppendShare",
    "BadRequest",
    "BrokerSeat",
    "CancelTimer",
    "DeadlineExceeded",
    "Description",
    "Done",
    "EngineSettings",
    "ForkBlocked",
    "ForkMoved",
    "Kind",
    "LogExists",
    "LogId",
    "LogQuota",
    "LogSurvey",
    "Milliseconds",
    "Mode",
    "Nanoseconds",
    "NoSpareBroker",
    "OnParentDelete",
    "Position",
    "Promoted",
    "Promotion",
    "Refused",
    "Rules",
    "SequencingStatus",
    "SetTimer",
    "ShardPlace",
    "ShardStatus",
    "Squashed",
    "Status",
    "TimerFired",
    "Unavailable",
    "UnknownBroker",
    "UnknownLog",
    "Value",
    "printable",
    "proses",
    "redacted",
    "replaced",
]
