"""What refusals of brokers mean to a client: what was certainly not done, and how long to wait."""

from anabranch.core.errors import (
    AppendBlocked,
    BrokerDraining,
    BrokerFenced,
    ForkBlocked,
    Mistake,
    NoSpareBroker,
    Overloaded,
    PartGap,
    QuotaExceeded,
    ReadBlocked,
    ReceiptPending,
    SequenceGap,
)
from anabranch.core.types import Milliseconds

BLOCKED = (AppendBlocked, ForkBlocked, NoSpareBroker, ReadBlocked, ReceiptPending)
"""Refused until somebody else does something: decides about a fork, adds a broker."""

PUT_OFF = (*BLOCKED, Overloaded, QuotaExceeded)
"""Refused for now, and certainly not done: a caller who doesn't want to wait is told."""

LEAVING = (BrokerDraining, BrokerFenced)
"""The broker is about to stop: any other does what it won't do any more."""

NOTHING_DONE = (*PUT_OFF, BrokerDraining, Mistake, PartGap, SequenceGap)
"""After these it is certain that what was asked did not happen; after others it isn't."""

HOLD_MARGIN_MS_MAX: Milliseconds = 1_000
"""A server holds a blocked append until so long before its deadline, at most: time in which its
refusal arrives, so that the caller is told what stood in the way instead of nothing at all."""


def hold_ms(left_ms: Milliseconds, timeout_ms: Milliseconds) -> Milliseconds:
    """How long a server may hold an append that is blocked, of a caller with so much time left."""
    return max(0, left_ms - min(HOLD_MARGIN_MS_MAX, timeout_ms // 2))
