"""What numba compiles: records of an uncompressed batch are walked, and their fields copied.

Compiled code is kept beside this file, or where numba keeps it for the user; where neither can be
written, each process compiles for one or two seconds.
"""

from importlib import import_module
from typing import Any

np: Any = import_module("numpy")
_numba: Any = import_module("numba")

_NUMBER_BYTES_MAX = 9
"""Of a varint: the plain decoder takes those that need all 64 bits."""
_DELTA_MAX = 1 << 61


def _compiled(function: Any) -> Any:
    """The function, compiled when it is first called."""
    try:
        return _numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # there is no folder to keep it in
        return _numba.njit(nogil=True)(function)


@_compiled
def _number(content: Any, at: int, end: int) -> tuple[int, int]:
    """A number in zigzag encoding, and where it ends: -1 if it isn't usual."""
    value = 0
    for nth in range(_NUMBER_BYTES_MAX):
        if at >= end:
            break
        byte = np.int64(content[at])
        at += 1
        value |= (byte & 0x7F) << (7 * nth)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    return 0, -1


@_compiled
def _behind(content: Any, at: int, end: int) -> int:
    """Where the bytes end whose length stands here: -1 if that isn't usual."""
    length, at = _number(content, at, end)
    if at < 0 or length > end - at:
        return -1
    return at + max(length, 0)


@_compiled
def _behind_headers(content: Any, at: int, end: int, count: int) -> int:
    """Where so many headers end: -1 if one isn't usual, as a name is that isn't ASCII."""
    for _ in range(count):
        length, start = _number(content, at, end)
        if start < 0 or length < 0 or length > end - start:
            return -1
        at = start + length
        for place in range(start, at):
            if content[place] >= 0x80:
                return -1
        at = _behind(content, at, end)
        if at < 0:
            return -1
    return at


@_compiled
def walk(
    content: Any, at: int, count: int, low: int, high: int, stamp: int, headers_max: int,
    key_starts: Any, key_lengths: Any, value_starts: Any, value_lengths: Any,
    header_starts: Any, header_counts: Any, stamps: Any, row: int,
) -> int:  # fmt: skip
    """Find the fields of records `low` to `high` of all `count`, which start at `at` and fill the
    content. Give the row behind the last: -1 if a record isn't usual.
    """
    size, headers = len(content), 0
    for nth in range(count):
        length, at = _number(content, at, size)
        if at < 0 or length <= 0 or length > size - at:
            return -1
        end = at + length
        # The attributes of a record mean nothing yet.
        if content[at] >= 0x80:
            return -1
        delta, at = _number(content, at + 1, end)
        if at < 0 or delta > _DELTA_MAX or delta < -_DELTA_MAX:
            return -1
        _, at = _number(content, at, end)
        if at < 0:
            return -1
        key_length, key_start = _number(content, at, end)
        if key_start < 0 or key_length > end - key_start:
            return -1
        value_length, value_start = _number(content, key_start + max(key_length, 0), end)
        if value_start < 0 or value_length > end - value_start:
            return -1
        headed, first = _number(content, value_start + max(value_length, 0), end)
        headers += headed
        if first < 0 or headed < 0 or headers > headers_max:
            return -1
        at = _behind_headers(content, first, end, headed) if headed else first
        if at != end:
            return -1
        if low <= nth < high:
            key_starts[row], key_lengths[row] = key_start, max(key_length, -1)
            value_starts[row], value_lengths[row] = value_start, max(value_length, -1)
            header_starts[row], header_counts[row] = first, headed
            stamps[row] = stamp + delta
            row += 1
    return row if at == size else -1


@_compiled
def place_headers(
    content: Any, starts: Any, counts: Any,
    name_starts: Any, name_lengths: Any, value_starts: Any, value_lengths: Any, row: int,
) -> int:  # fmt: skip
    """Find names and values of headers that were walked; give the row behind the last."""
    size = len(content)
    for nth in range(len(starts)):
        at = np.int64(starts[nth])
        for _ in range(counts[nth]):
            length, at = _number(content, at, size)
            name_starts[row], name_lengths[row] = at, length
            length, at = _number(content, at + length, size)
            value_starts[row], value_lengths[row] = at, max(length, -1)
            at += max(length, 0)
            row += 1
    return row


@_compiled
def gather(
    content: Any, starts: Any, lengths: Any, low: int, high: int, out: Any, at: int, offsets: Any
) -> int:
    """Copy the fields of these rows one after the other, from `at` on, and give where they end."""
    for row in range(low, high):
        length = lengths[row]
        if length > 0:
            # Unsigned, or each byte would be asked whether it is counted from the end.
            source, target = np.uint64(starts[row]), np.uint64(at)
            for nth in range(np.uint64(length)):
                out[target + nth] = content[source + nth]
            at += length
        offsets[row + 1] = at
    return at
