"""Compaction: copies of a log's extents, and the command that refers to them instead."""

import msgspec

from anabranch.core.types import LogId, ObjectId, Position

COPIED_MAX = 1_024
"""Extents of one copy: bounds the command that names them, and the reads of the broker."""


class Copied(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An extent of a log as it was when it was copied."""

    first: Position
    count: int
    object: ObjectId
    offset: int
    length: int
    sum: int = 0
    """The set sum of its batches: as the index has it when the leader asks for the copy, and as
    the broker read it when the extents are to be swapped; 0: unknown.
    """


class Joined(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where so many of the copied extents, one behind the other, lie as one."""

    extents: int
    offset: int
    length: int


class SwapExtents(msgspec.Struct, frozen=True, array_like=True, tag="swap"):
    """A durable object holds copies of these extents of a log: refer to it instead.

    The extents follow each other in the log's own index. Idempotent on the object; a broker has
    one in doubt at a time, and gives its objects in order.
    """

    broker: str
    object: ObjectId
    log: LogId
    extents: list[Copied]
    joined: list[Joined]


class Swapped(msgspec.Struct, frozen=True, array_like=True, tag="swapped"):
    """How many extents there are fewer now; or why none, and that the new object is garbage."""

    fewer: int
    why: str = ""
