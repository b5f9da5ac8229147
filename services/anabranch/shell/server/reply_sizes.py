"""How much the reply to a question counts as, before it is there."""

from anabranch.core.bolt.protocol.messages import (
    Compare,
    ListLogs,
    Read,
    ReadCursors,
    Redeem,
    Subscribe,
)
from anabranch.core.limits import KIB, Limits

Question = Read | Subscribe | Redeem | ListLogs | Compare | ReadCursors
"""Changes nothing, may take long and may be answered at length."""

_LISTING_BYTES = 256 * KIB
"""What the answer to a listing is counted as."""
_WAITING_BYTES = 64 * KIB
"""What a read that may wait for records counts as among all: most of them get few."""


def reply_bytes(message: Question, limits: Limits) -> int:
    """Among the replies to one connection."""
    match message:
        case Read(bytes_max=bytes_max):
            return max(0, min(bytes_max, limits.read_bytes_max))
        case ListLogs() | Compare() | ReadCursors():
            return _LISTING_BYTES
        case _:
            return 0


def shared_bytes(message: Question, limits: Limits) -> int:
    """Among those to all connections of a process."""
    size = reply_bytes(message, limits)
    if isinstance(message, Read) and message.wait_ms > 0:
        return min(size, _WAITING_BYTES)
    return size
