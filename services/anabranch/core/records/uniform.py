"""Recognize well-formed records without decoding them: those without headers, laid out alike.

The compiled reader makes objects of every record, which costs many times their checksum. Where
records of one length follow each other, each byte of their framing stands in one column, which is a
slice with a stride: compiled code compares it as a whole. Records that differ in more than their
numbers, times, keys and values are left to the reader.
"""

from functools import lru_cache
from typing import Final, NamedTuple

_RUNS_MAX: Final = 16
"""Stretches of records alike in one batch: past it, columns cost more than they save."""
_RUN_MIN: Final = 16
"""Records in a stretch, but for the last, likewise."""

_BLOCK: Final = 1 << 13
"""The third byte of a record's number is the same for so many records."""
_STEPS: Final = (0, 1 << 6, _BLOCK, 1 << 20)
"""Numbers below take so many bytes; larger ones are left to the reader."""
_LOW: Final = bytes(range(0, 0x80, 2))
"""The only byte of each number below 64."""
_LOW_OF_MORE: Final = bytes(byte | 0x80 for byte in _LOW)
"""The first byte, over and over, of numbers that have more."""
_HIGH: Final = b"".join(bytes([byte]) * 64 for byte in range(0x80))
"""The second byte of each number below `_BLOCK` if it is the last one."""
_HIGH_OF_MORE: Final = bytes(byte | 0x80 for byte in _HIGH)
_EVEN: Final = bytes(range(0, 0x100, 2))
_NULL: Final = 1
"""The length -1."""


_SIZES_REMEMBERED: Final = 1_024
_VARINT_BYTES_MAX: Final = 5
"""A length below 2^31 takes no more."""


class _Layout(NamedTuple):
    """Where the parts of a record's framing stand in the batch."""

    stamp: int
    number: int
    key: int
    key_content: int
    value: int
    value_content: int
    end: int
    delta: int
    """What the record's time adds to the batch's."""


def is_plain(content: bytes, at: int, deltas: tuple[int, int], bytes_max: int) -> bool:
    """Is the one record that fills `content` from here on well formed, without headers, with a time
    between these deltas, and of no more than so many bytes?

    False says nothing: the reader has to look at it.
    """
    size = len(content) - at
    if size > bytes_max:
        return False
    # Most producers send neither a key nor a time of its own, and then the size says all.
    if content.startswith(_bare_framing(size), at) and not content[-1]:
        return deltas[0] <= 0 <= deltas[1]
    try:
        layout = _layout(content, at, 0)
    except IndexError:
        return False
    if layout is None:
        return False
    return layout[6] == len(content) and deltas[0] <= layout[7] <= deltas[1]


def are_uniform(
    content: bytes, at: int, count: int, deltas: tuple[int, int], bytes_max: int
) -> bool:
    """Are so many records like that, numbered from 0 on, and for long stretches laid out alike?"""
    nth = 0
    for _ in range(_RUNS_MAX):
        try:
            found = _layout(content, at, nth)
        except IndexError:
            return False
        if found is None:
            return False
        first, start = _Layout(*found), at
        if first.end - start > bytes_max or not deltas[0] <= first.delta <= deltas[1]:
            return False
        more = _alike(content, start, first, nth + 1, count, deltas[1])
        nth += 1 + more
        at = first.end + more * (first.end - start)
        if nth == count:
            return at == len(content)
        if more + 1 < _RUN_MIN:
            return False
    return False


@lru_cache(maxsize=_SIZES_REMEMBERED)
def _bare_framing(size: int) -> bytes | tuple[()]:
    """What comes before the value of a record of so many bytes that has number 0, its batch's time,
    no key and no headers. None of no beginnings, which nothing begins with, where a length would
    just not fit into the bytes that are left for it.
    """
    for width in range(1, _VARINT_BYTES_MAX + 1):
        length = _zigzag(size - width)
        if len(length) != width:
            continue
        for inner in range(1, width + 1):
            # Attributes, time, number, key and the count of headers take one byte each.
            value = _zigzag(size - width - 5 - inner)
            if len(value) == inner:
                return length + bytes((0, 0, 0, _NULL)) + value
    return ()


def _zigzag(length: int) -> bytes:
    """A length as records write it; empty for one that isn't possible."""
    if length < 0:
        return b""
    rest = length << 1
    found = bytearray()
    while rest >= 0x80:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _layout(
    content: bytes, at: int, nth: int
) -> tuple[int, int, int, int, int, int, int, int] | None:
    """A `_Layout` of the record that starts here; None if it isn't number `nth`, or has headers.

    Every append of one record comes here, hence no calls and no objects where a byte is enough.
    """
    length = content[at]
    at += 1
    if length >= 0x80:
        length, at = _long(content, at - 1)
    body = at
    stamp = at + 1
    delta = content[stamp]
    number = at + 2
    if delta >= 0x80:
        delta, number = _long(content, stamp)
    found = content[number]
    key = number + 1
    if found >= 0x80:
        found, key = _long(content, number)
    size = content[key]
    value = key_content = key + 1
    if size >= 0x80:
        size, key_content = _long(content, key)
    if size != _NULL:
        value = key_content + (size >> 1)
        length |= size & 1
    size = content[value]
    last = value_content = value + 1
    if size >= 0x80:
        size, value_content = _long(content, value)
    if size != _NULL:
        last = value_content + (size >> 1)
        length |= size & 1
    end = last + 1
    # An odd length is negative; the compiled reader takes some of them for null.
    if length != end - body << 1 or found != nth << 1 or content[body] or content[last]:
        return None
    if key - number != (1 if nth < _STEPS[1] else 2 if nth < _STEPS[2] else 3):
        return None
    return stamp, number, key, key_content, value, value_content, end, delta >> 1 ^ -(delta & 1)


def _alike(content: bytes, start: int, first: _Layout, nth: int, count: int, delta_max: int) -> int:
    """How many records behind this one, the next being number `nth`, are sure to be so too."""
    stamp, number, key, key_content, value, value_content, end, _ = first
    stride = end - start
    width = key - number
    most = min(count, _STEPS[width], (nth // _BLOCK + 1) * _BLOCK) - nth
    most = min(most, (len(content) - end) // stride)
    if most <= 0 or content[end] != content[start]:
        return 0
    lengths = content[end : end + most * stride : stride]
    most -= len(lengths.lstrip(content[start : start + 1]))
    upto = end + most * stride
    fixed = (*range(start, stamp), *range(key, key_content), *range(value, value_content), end - 1)
    for column in fixed:
        expected = content[column : column + 1] * most
        if content[column + stride : upto : stride] != expected:
            return 0
    numbers = [content[column + stride : upto : stride] for column in range(number, key)]
    if numbers != _numbers(nth, most, width):
        return 0
    return most if _times(content, start, first, upto, delta_max) else 0


def _numbers(nth: int, count: int, width: int) -> list[bytes]:
    """The columns of so many numbers of this width, from `nth` on, within one block."""
    if width == 1:
        return [_LOW[nth : nth + count]]
    within, turn = nth % _BLOCK, nth % 64
    low = (_LOW_OF_MORE * (count // 64 + 2))[turn : turn + count]
    if width == 2:
        return [low, _HIGH[within : within + count]]
    return [low, _HIGH_OF_MORE[within : within + count], bytes([nth // _BLOCK]) * count]


def _times(content: bytes, start: int, first: _Layout, upto: int, delta_max: int) -> bool:
    """Are the times of the records behind this one the same, or at least not too late or early?"""
    stamp, number, end = first.stamp, first.number, first.end
    stride = end - start
    columns = [content[column + stride : upto : stride] for column in range(stamp, number)]
    count = len(columns[0])
    if all(each == content[stamp + at : stamp + at + 1] * count for at, each in enumerate(columns)):
        return True
    # Of one byte, all even: none lies before the batch's own time.
    column = columns[0]
    return (
        len(columns) == 1
        and column.isascii()
        and not column.translate(None, _EVEN)
        and max(column) >> 1 <= delta_max
    )


def _long(content: bytes, at: int) -> tuple[int, int]:
    """A number of two to four bytes, its sign still in its lowest bit, and where it ends."""
    number = content[at] & 0x7F
    for nth in range(1, 4):
        byte = content[at + nth]
        number |= (byte & 0x7F) << 7 * nth
        if byte < 0x80:
            return number, at + nth + 1
    raise IndexError(at)
