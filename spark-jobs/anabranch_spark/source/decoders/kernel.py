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

FIELDS = 6
"""Numbers that are kept of each record, in rows of these names. Lengths are negative for null."""
KEY_STARTS, KEY_LENGTHS, VALUE_STARTS, VALUE_LENGTHS, HEADER_STARTS, HEADER_COUNTS = range(FIELDS)


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
    content: Any,
    at: int,
    count: int,
    meant: tuple[int, int],
    stamp: int,
    fields: Any,
    stamps: Any,
    row: int,
) -> tuple[int, int]:
    """Find the fields of those records that are meant, of all `count`, which start at `at` and
    fill the content. Give the row behind the last, and the number of all headers: -1 if a record
    isn't usual.
    """
    size, headers = len(content), 0
    for nth in range(count):
        length, at = _number(content, at, size)
        if at < 0 or length <= 0 or length > size - at:
            return -1, 0
        end = at + length
        # The attributes of a record mean nothing yet.
        if content[at] >= 0x80:
            return -1, 0
        delta, at = _number(content, at + 1, end)
        if at < 0 or delta > _DELTA_MAX or delta < -_DELTA_MAX:
            return -1, 0
        _, at = _number(content, at, end)
        if at < 0:
            return -1, 0
        key_length, key = _number(content, at, end)
        if key < 0 or key_length > end - key:
            return -1, 0
        value_length, value = _number(content, key + max(key_length, 0), end)
        if value < 0 or value_length > end - value:
            return -1, 0
        headed, first = _number(content, value + max(value_length, 0), end)
        if first < 0 or headed < 0 or headed > end - first:
            return -1, 0
        headers += headed
        at = _behind_headers(content, first, end, headed) if headed else first
        if at != end:
            return -1, 0
        if meant[0] <= nth < meant[1]:
            fields[KEY_STARTS, row], fields[KEY_LENGTHS, row] = key, max(key_length, -1)
            fields[VALUE_STARTS, row], fields[VALUE_LENGTHS, row] = value, max(value_length, -1)
            fields[HEADER_STARTS, row], fields[HEADER_COUNTS, row] = first, headed
            stamps[row] = stamp + delta
            row += 1
    return (row, headers) if at == size else (-1, 0)


@_compiled
def place_headers(content: Any, starts: Any, counts: Any, fields: Any, row: int) -> int:
    """Find names and values of headers that were walked; give the row behind the last. Names stand
    where keys of records do.
    """
    size = len(content)
    for nth in range(len(starts)):
        at = np.int64(starts[nth])
        for _ in range(counts[nth]):
            length, at = _number(content, at, size)
            fields[KEY_STARTS, row], fields[KEY_LENGTHS, row] = at, length
            length, at = _number(content, at + length, size)
            fields[VALUE_STARTS, row], fields[VALUE_LENGTHS, row] = at, max(length, -1)
            at += max(length, 0)
            row += 1
    return row


@_compiled
def gather(
    content: Any, starts: Any, lengths: Any, rows: tuple[int, int], out: Any, at: int, offsets: Any
) -> int:
    """Copy the fields of these rows one after the other, from `at` on, and give where they end."""
    for row in range(rows[0], rows[1]):
        length = lengths[row]
        if length > 0:
            # Unsigned, or each byte would be asked whether it is counted from the end.
            source, target = np.uint64(starts[row]), np.uint64(at)
            for nth in range(np.uint64(length)):
                out[target + nth] = content[source + nth]
            at += length
        offsets[row + 1] = at
    return at
