"""Set sums: one number for a set of record batches, whatever their order and however it is divided.

A batch's value is made of its CRC-32C, which covers all that a producer sent and is verified when
the batch arrives; where the batch lies, and at which position, doesn't count. A set's sum is that
of its batches' values modulo 2**32 - 1. So the sums of two parts make the sum of both together, and
an audit computes from the data alone what the service keeps. Decision 78 says what that detects.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence

from anabranch.core.machine import Buffer

MODULUS = (1 << 32) - 1
UNKNOWN = 0
"""In the place of a sum. No batch has this value, and no set but the empty one this sum."""

_SPREAD = 0x9E3779B97F4A7C15
"""The golden ratio, as 64 bits."""
_CRC = struct.Struct(">17xI")
_VALUE_BYTES = 4


def batch_value(crc: int) -> int:
    """What one batch adds. The square is there so that two checksums of which one grew by what the
    other lost don't make the same sum.
    """
    return (crc * (crc + _SPREAD) >> 32 & MODULUS) or MODULUS


def combined(sums: Iterable[int]) -> int:
    """The sum of the union of disjoint sets, whose sums are known."""
    total = sum(sums)
    return total and (total % MODULUS or MODULUS)


def set_sum(batches: Iterable[Buffer]) -> int:
    """Of whole record batches as they lie in objects, or as they are read from a log."""
    return combined(batch_value(_CRC.unpack_from(batch)[0]) for batch in batches)


def pack_values(values: Sequence[int]) -> bytes:
    """How a commit carries the values of several batches."""
    return struct.pack(f">{len(values)}I", *values)


def packed_sum(packed: bytes, first: int, end: int) -> int:
    """Of some of the batches whose values were packed; `UNKNOWN` if theirs weren't."""
    assert 0 <= first < end, "a batch at least"
    if len(packed) < end * _VALUE_BYTES:
        return UNKNOWN
    return combined(struct.unpack_from(f">{end - first}I", packed, first * _VALUE_BYTES))


def column_sum(column: "array[int]") -> int:
    """The sums of a whole column as one, far faster than number by number: as the digits of one
    large number, of which each power of the base leaves 1.
    """
    assert column.itemsize == _VALUE_BYTES, "the base of the number is 2**32"
    number = int.from_bytes(column.tobytes(), sys.byteorder)
    return number and (number % MODULUS or MODULUS)
