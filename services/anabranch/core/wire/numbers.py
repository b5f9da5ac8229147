"""The numbers that a request may hold, whoever wrote it: checked before anything is done with it.

What a number means for a log is found out where it is used. Here none gets in that no memory and no
clock could follow, and no amount that would give back what nobody took.
"""

from typing import Annotated

from msgspec import Meta, Struct

from anabranch.core.errors import BadRequest
from anabranch.core.types import NEVER, Position

AMOUNTS = frozenset(
    {"credit_bytes", "window_bytes", "records_max", "bytes_max", "count_max", "expect_own"}
)
"""What is asked for: never less than nothing. Positions and times below 0 are refused where they
are used, in words that name the log; a wait below 0 is none, or the one that the server is set to.
"""

_PRODUCER = "producer"
_PRODUCER_END = 1 << 63
"""Producers are drawn from all numbers of 63 bits: they are names, with which nobody counts."""

Bounded = Annotated[int, Meta(ge=0, le=NEVER)]
"""A number in a letter between nodes. It is checked as the letter is decoded, so that a letter with
any other number is unreadable: it is dropped and counted (`anabranch_peers_unreadable_total`).
"""
BoundedOrNone = Annotated[int, Meta(ge=-1, le=NEVER)]
"""The same, where -1 stands for none."""

NAME_BYTES_MAX = 253
"""Of a shard: as long as Kubernetes lets a name be."""


def check_shard(shard: str) -> None:
    """Raises BadRequest for what can't be a shard's name."""
    size = len(shard.encode())
    if not 0 < size <= NAME_BYTES_MAX:
        reason = f"it has {size} bytes: it must have 1 to {NAME_BYTES_MAX}"
        raise BadRequest("a shard's name", reason)


def check_position(what: str, position: Position) -> None:
    """Raises BadRequest for what can't be a position."""
    if not 0 <= position < NEVER:
        raise BadRequest(what, f"{position} isn't from 0 up to {NEVER - 1}")


def fault_in(message: Struct) -> BadRequest | None:
    """What is wrong with a number in a message of either engine, or in what it holds."""
    for field in message.__struct_fields__:
        value = getattr(message, field)
        if isinstance(value, Struct):
            fault = fault_in(value)
            if fault is not None:
                return fault
        elif type(value) is int:
            least = 0 if field in AMOUNTS else -NEVER
            most = _PRODUCER_END - 1 if field == _PRODUCER else NEVER
            if not least <= value <= most:
                return BadRequest(f"{field} of {value}", f"it must lie from {least} to {most}")
    return None
