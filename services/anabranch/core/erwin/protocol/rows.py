"""Rows: which positions an append has, and on which shard its records are."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec

from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.view import ViewNumber
from anabranch.core.types import NEVER, Position
from anabranch.core.wire.numbers import Bounded, BoundedOrNone

_START_BITS = 20


class Mode(StrEnum):
    """How records reach the shards."""

    M = "m"
    """Through the sequencing layer (LazyLog, 4)."""
    ST = "st"
    """From the clients; only ids go through the sequencing layer (LazyLog, 5)."""


NO_SHARD = -1
"""The shard of a row whose append names a removed shard. Its records are no-ops at every shard; it
was never acknowledged, because a shard is removed when it holds all that was.
"""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An append's records have the positions from `first` up to and without `end`."""

    first: Bounded
    count: Annotated[int, msgspec.Meta(ge=1, le=NEVER)]
    shard: BoundedOrNone
    """The shard's number in the configuration, or `NO_SHARD`."""
    id: AppendId

    @property
    def end(self) -> Position:
        return self.first + self.count


def end_of(rows: Sequence[Row], first: Position) -> Position:
    """Where the positions of consecutive rows end that begin at `first`."""
    return rows[-1].end if rows else first


class Fence(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Whose pushes count: those of the latest view, and in it of the leader's latest start."""

    view: ViewNumber
    start: Annotated[int, msgspec.Meta(ge=0, lt=1 << _START_BITS)]

    @property
    def number(self) -> int:
        """As one number, which replication journals with its terms."""
        assert 0 <= self.start < 1 << _START_BITS
        return (self.view << _START_BITS) | self.start

    @classmethod
    def of(cls, number: int) -> "Fence":
        assert number >= 0
        return cls(number >> _START_BITS, number & ((1 << _START_BITS) - 1))
