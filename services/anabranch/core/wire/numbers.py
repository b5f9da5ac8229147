"""The numbers that a request may hold, whoever wrote it: checked before anything is done with it.

What a number means for a log is found out where it is used. Here none gets in that no memory and no
clock could follow, and no amount that would give back what nobody took.
"""

from msgspec import Struct

from anabranch.core.errors import BadRequest
from anabranch.core.types import NEVER

AMOUNTS = frozenset({"credit_bytes", "window_bytes", "records_max", "bytes_max", "count_max"})
"""What is asked for: never less than nothing. Positions and times below 0 are refused where they
are used, in words that name the log; a wait below 0 is none, or the one that the server is set to.
"""


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
            if not least <= value <= NEVER:
                return BadRequest(f"{field} of {value}", f"it must lie from {least} to {NEVER}")
    return None
