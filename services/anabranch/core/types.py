"""The words everything else is written in: ids, positions, kinds of logs, and the limits."""

from enum import StrEnum
from typing import NewType

LogId = NewType("LogId", int)
"""Given by the state machine, never reused."""

Position = int
"""Dense, from 0, per log. The same record has different positions in different logs (AgileLog,
fig. 4).
"""

ObjectId = NewType("ObjectId", int)
"""Broker epoch and sequence packed in 64 bits: the object's name, without its text."""

Nanoseconds = int
"""Monotonic time as the driver of a machine tells it."""

Milliseconds = int
"""Wall time since 1970, as commands and records carry it."""

LocalSequence = int
"""The place of a record or no-op in a replicated log of one shard, from 0."""

MS = 1_000_000
NEVER = (1 << 62) - 1
"""A position or time past every real one: the paper's +inf."""

NOWHERE = LogId(0)
"""The id of no log: ids begin at 1. A request that was done before gets its first outcome under it,
any other is refused.
"""


class Kind(StrEnum):
    ROOT = "root"
    CONTINUOUS = "continuous"
    SEVERED = "severed"


class OnParentDelete(StrEnum):
    """What a severed fork does when the log it was cut from is squashed or deleted."""

    ORPHAN = "orphan"
    CASCADE = "cascade"


class OnPromote(StrEnum):
    """Does a cursor go where a promotion takes its fork's records, or does it stay behind?"""

    FOLLOW = "follow"
    STAY = "stay"
