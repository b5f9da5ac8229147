"""The compressions a record batch may use, each with a bound on what it may grow to.

The frames are Kafka's: gzip, xerial or raw snappy, lz4 with independent blocks, zstd.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from itertools import islice

import cramjam

from anabranch.core.errors import BatchTooLarge, CorruptBatch
from anabranch.core.machine import Buffer

_GZIP_FRAME = 31
"""zlib's code for a deflate stream in a gzip frame, with the largest window."""

_GZIP_LEVEL = 6
_LZ4_LEVEL = 1
_ZSTD_LEVEL = 3

_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_BLOCKS_MAX = 16_384
"""Blocks in one frame. Java's producers make them of 32 KiB; tiny ones cost more than they hold."""
_BLOCK_LENGTH = struct.Struct(">i")

_FIRST_GUESS_BYTES = 64 * 1024
_GROWTH = 4
_NO_ROOM = "failed to write whole buffer"
"""How the package says that a stream holds more than the room it was given."""


class Codec(IntEnum):
    """As numbered in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, content: Buffer) -> bytes:
    """The same bytes give the same bytes: no frame holds a time or a name."""
    match codec:
        case Codec.NONE:
            return bytes(content)
        case Codec.GZIP:
            deflate = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FRAME)
            return deflate.compress(content) + deflate.flush()
        case Codec.SNAPPY:
            return _xerial(content)
        case Codec.LZ4:
            # Kafka's readers refuse linked blocks (KIP-57).
            frame = cramjam.lz4.Compressor(_LZ4_LEVEL, content_checksum=False, block_linked=False)
            frame.compress(bytes(content))
            return bytes(frame.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(content, _ZSTD_LEVEL))


def expand(codec: Codec, content: Buffer, bytes_max: int, where: str) -> Buffer:
    """Undo `compress`, never writing more than `bytes_max`: a bomb is refused, not set off.

    Over the bound the error tells where counting stopped, which is one past it.
    """
    assert bytes_max >= 0
    try:
        match codec:
            case Codec.NONE:
                expanded: Buffer = content
            case Codec.GZIP:
                expanded = _gunzip(content, bytes_max, where)
            case Codec.SNAPPY:
                expanded = _unsnap(content, bytes_max, where)
            case Codec.LZ4 | Codec.ZSTD:
                expanded = _unframe(codec, content, bytes_max)
    except (cramjam.DecompressionError, zlib.error) as fault:
        if _NO_ROOM in str(fault):
            raise BatchTooLarge(bytes_max + 1, bytes_max) from None
        raise _undone(codec, str(fault), where) from fault
    if len(expanded) > bytes_max:
        raise BatchTooLarge(bytes_max + 1, bytes_max)
    return expanded


def _undone(codec: Codec, reason: str, where: str) -> CorruptBatch:
    assert codec is not Codec.NONE
    return CorruptBatch(f"its records can't be expanded from {codec.name.lower()}: {reason}", where)


def _gunzip(content: Buffer, bytes_max: int, where: str) -> bytes:
    inflate = zlib.decompressobj(_GZIP_FRAME)
    expanded = inflate.decompress(content, bytes_max + 1)
    if len(expanded) <= bytes_max and (not inflate.eof or inflate.unused_data):
        reason = "bytes follow the frame" if inflate.eof else "the frame is cut short"
        raise _undone(Codec.GZIP, reason, where)
    return expanded


def _unframe(codec: Codec, content: Buffer, bytes_max: int) -> memoryview:
    assert codec in (Codec.LZ4, Codec.ZSTD)
    decompress = cramjam.lz4.decompress_into if codec is Codec.LZ4 else cramjam.zstd.decompress_into
    size = min(bytes_max, max(_FIRST_GUESS_BYTES, 8 * len(content)))
    while True:
        room = bytearray(size)
        try:
            return memoryview(room)[: decompress(content, room)]
        except cramjam.DecompressionError as fault:
            if size == bytes_max or _NO_ROOM not in str(fault):
                raise
        # Straight to the bound, each dense batch would cost clearing all of that memory.
        size = min(bytes_max, size * _GROWTH)


def _xerial(content: Buffer) -> bytes:
    source = memoryview(content)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(source), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(source[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _unsnap(content: Buffer, bytes_max: int, where: str) -> memoryview:
    blocks = [*islice(_snappy_blocks(memoryview(content), where), _XERIAL_BLOCKS_MAX + 1)]
    if len(blocks) > _XERIAL_BLOCKS_MAX:
        raise _undone(Codec.SNAPPY, f"it has more than {_XERIAL_BLOCKS_MAX} blocks", where)
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    # A block's own word for its size is what it gets; claiming more or less is an error below.
    if sum(sizes) > bytes_max:
        raise BatchTooLarge(bytes_max + 1, bytes_max)
    room = memoryview(bytearray(sum(sizes)))
    start = 0
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, room[start : start + size])
        start += size
    assert start == len(room), "all blocks together fill it"
    return room


def _snappy_blocks(source: memoryview, where: str) -> Iterator[memoryview]:
    """Java's producers send xerial's framing, others a bare block; its header tells them apart."""
    if bytes(source[: len(_XERIAL_HEADER)]) != _XERIAL_HEADER:
        yield source
        return
    start = len(_XERIAL_HEADER)
    while start < len(source):
        if len(source) - start < _BLOCK_LENGTH.size:
            raise _undone(Codec.SNAPPY, "a block's length is cut short", where)
        (length,) = _BLOCK_LENGTH.unpack_from(source, start)
        start += _BLOCK_LENGTH.size
        if not 0 < length <= len(source) - start:
            raise _undone(Codec.SNAPPY, f"a block claims {length} bytes", where)
        yield source[start : start + length]
        start += length
