"""Promotion of a fork, with or without a condition, and its outcome.

Structs are arrays on the wire and in the journal: fields are only ever added at the end.
"""

import msgspec

from anabranch.core.types import LogId, Position

EXPECT_FORMAT = 10
"""From this format on members know `PromoteIf`."""


class Promote(msgspec.Struct, frozen=True, array_like=True, tag="promote"):
    """Make a fork its parent, whatever was appended to it (AgileLog, 4.1)."""

    log: LogId


class PromoteIf(Promote, frozen=True, array_like=True, tag="promote-if"):
    """Promote a fork only if it has exactly so many records of its own (decision 77).

    It is a command of its own, because a process of an earlier version skips fields that it
    doesn't know: it would promote without the condition. A command that it doesn't know it refuses.
    """

    expect_own: int


class Promotion(msgspec.Struct, frozen=True, array_like=True, tag="promotion"):
    """What a promotion did: the parent that now has the records, and the siblings it squashed."""

    into: str
    fork_point: Position
    records: int
    squashed: list[str]
    cursors: list[str] = []
    """Those of the parent that are now where the fork's of the same name were."""
