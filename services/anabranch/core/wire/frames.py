"""Messages as length-prefixed frames: how any bytes are framed on a connection.

A frame is `u32 length | u8 kind | u8 flags | u16 reserved | u32 request | body`, big-endian; the
length counts what follows it. Batches travel raw, behind a header, so that neither side copies or
re-encodes them. A body that can't be read costs its request and no more; a length that can't be
believed costs the connection, for nothing after it can be found.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec

from anabranch.core.errors import BadFrame
from anabranch.core.machine import Buffer

HEADER = struct.Struct(">IBBHI")
LENGTH_BYTES = 4
_UNCOUNTED = HEADER.size - LENGTH_BYTES
"""The least a length can say: the rest of the header."""

_U32 = struct.Struct(">I")
_JOINED_BYTES_MAX = 64 * 1024
"""Past this size copying a body costs more than writing it by itself."""

CONNECTION = 0
"""The request number of a reply that is about the connection as a whole; requests count from 1."""

REPLY_BYTES_MAX = 1 << 26
"""What a client takes from a server it has chosen to trust with its memory."""

M = TypeVar("M")
Decoder = Callable[["bytes | memoryview", int, int], M]


def whole_body(decode: "Callable[[bytes | memoryview], M]") -> "Decoder[M]":
    """Of frames whose whole body is one message."""

    def decoded(data: bytes | memoryview, start: int, end: int) -> M:
        return decode(data[start:end])

    return decoded


Size = Annotated[int, msgspec.Meta(ge=0)]


def framed(kind: int, request: int, body: bytes) -> bytes:
    """A whole frame."""
    return _header(kind, request, len(body)) + body


def framed_in_parts(kind: int, request: int, body: bytes) -> list[Buffer]:
    """A whole frame as buffers to be written one after the other. A large body isn't copied."""
    if len(body) <= _JOINED_BYTES_MAX:
        return [framed(kind, request, body)]
    return [_header(kind, request, len(body)), body]


def _header(kind: int, request: int, body_bytes: int) -> bytes:
    assert 0 <= kind < 256
    assert request >= 0
    return HEADER.pack(_UNCOUNTED + body_bytes, kind, 0, 0, request)


def for_request(frame: Buffer, request: int) -> list[Buffer]:
    """The same frame for another request. Its body isn't copied."""
    length, kind, flags, reserved, _ = HEADER.unpack_from(frame)
    return [HEADER.pack(length, kind, flags, reserved, request), memoryview(frame)[HEADER.size :]]


def with_batches(
    kind: int, request: int, head: bytes, batches: Sequence[Buffer], sizes: Sequence[int]
) -> list[Buffer]:
    """A frame whose body is a header and, behind it, batches as they are."""
    assert len(batches) == len(sizes), "each batch has its size"
    length = _UNCOUNTED + _U32.size + len(head) + sum(sizes)
    start = HEADER.pack(length, kind, 0, 0, request) + _U32.pack(len(head)) + head
    return [start, *batches]


_UNREADABLE = (BadFrame, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _bad(error: Exception) -> BadFrame:
    return error if isinstance(error, BadFrame) else BadFrame(str(error))


class FrameReader(Generic[M]):
    """Finds the frames in a stream of bytes that arrives in any pieces.

    It holds at most one unfinished frame, and of it only what has arrived. A message owns its
    bytes: it may be kept without keeping anything else of the stream alive.
    """

    __slots__ = ("_decoders", "_frame_bytes_max", "begun", "broken", "partial")

    def __init__(self, decoders: "Mapping[int, Decoder[M]]", frame_bytes_max: int) -> None:
        assert frame_bytes_max > HEADER.size, "no frame would fit"
        self._decoders = decoders
        self._frame_bytes_max = frame_bytes_max
        self.partial = bytearray()
        """What has arrived of the unfinished frame; only to be read."""
        self.begun = 0
        """Frames that came in more than one piece."""
        self.broken: BadFrame | None = None
        """Set when the stream can't be followed any more; whatever comes then is dropped."""

    def drop(self) -> None:
        """Nothing more will come. Whoever reads may be kept alive for long, by a cycle."""
        self.partial = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Of the unfinished frame."""
        return len(self.partial)

    @property
    def announced_bytes(self) -> int:
        """Of the unfinished frame, once its length has come."""
        if len(self.partial) < LENGTH_BYTES:
            return 0
        return LENGTH_BYTES + int.from_bytes(self.partial[:LENGTH_BYTES])

    def feed(self, data: bytes) -> "list[tuple[int, M | BadFrame]]":
        """The frames that these bytes complete, by request; BadFrame for one that can't be read."""
        frames: list[tuple[int, M | BadFrame]] = []
        at = self._resume(data, frames) if self.partial else 0
        if self.broken is not None:
            return frames
        size = len(data)
        longest, decoders, unpack = self._frame_bytes_max - 4, self._decoders, HEADER.unpack_from
        while size - at >= 12:
            length, kind, flags, reserved, request = unpack(data, at)
            if not 8 <= length <= longest:
                self._break(length)
                break
            end = at + 4 + length
            if end > size:
                break
            decoder = None if flags or reserved else decoders.get(kind)
            # Nearly every frame has a decoder and is read here, without one more call for each.
            try:
                if decoder is None:
                    message = self._decode(kind, flags or reserved, data, at + 12, end)
                else:
                    message = decoder(data, at + 12, end)
            except _UNREADABLE as error:
                message = _bad(error)
            frames.append((request, message))
            at = end
        if at < size and self.broken is None:
            self.begun += not self.partial
            self.partial += memoryview(data)[at:]
        return frames

    def _resume(self, data: bytes, frames: "list[tuple[int, M | BadFrame]]") -> int:
        """Complete the unfinished frame as far as these bytes go; says how many it took."""
        assert self.partial, "no frame has begun"
        partial = self.partial
        taken = 0
        if len(partial) < 12:
            taken = min(12 - len(partial), len(data))
            partial += data[:taken]
            if len(partial) < 12:
                return taken
        length, kind, flags, reserved, request = HEADER.unpack_from(partial)
        if not _UNCOUNTED <= length <= self._frame_bytes_max - LENGTH_BYTES:
            self._break(length)
            return taken
        missing = LENGTH_BYTES + length - len(partial)
        if missing > len(data) - taken:
            partial += memoryview(data)[taken:]
            return len(data)
        partial += memoryview(data)[taken : taken + missing]
        self.partial = bytearray()
        message = self._decode(kind, flags or reserved, memoryview(partial), 12, len(partial))
        frames.append((request, message))
        return taken + missing

    def _decode(
        self, kind: int, reserved: int, data: bytes | memoryview, start: int, end: int
    ) -> M | BadFrame:
        decoder = self._decoders.get(kind)
        if decoder is None:
            return BadFrame(f"kind {kind} is not one that is sent in this direction")
        if reserved:
            return BadFrame("its flags and reserved bits must be zero in this version")
        try:
            return decoder(data, start, end)
        except _UNREADABLE as error:
            return _bad(error)

    def _break(self, length: int) -> None:
        assert self.broken is None, "nothing is read behind a break"
        self.partial = bytearray()
        self.broken = BadFrame(
            f"a length of {length} bytes, where {_UNCOUNTED} to "
            f"{self._frame_bytes_max - LENGTH_BYTES} are possible (frame_bytes_max)"
        )


def parts(data: bytes | memoryview, start: int, end: int) -> tuple[memoryview, memoryview]:
    """The header and what follows it."""
    assert 0 <= start <= end <= len(data)
    if end - start < _U32.size:
        raise BadFrame(f"a body of {end - start} bytes ends before its header's size")
    body = memoryview(data[start:end])
    batches = _U32.size + _U32.unpack_from(body)[0]
    if batches > len(body):
        raise BadFrame(f"a header of {batches - _U32.size} bytes in a body of {len(body)}")
    return body[_U32.size : batches], body[batches:]


def batches_of(rest: memoryview, sizes: Sequence[int]) -> list[Buffer]:
    if sum(sizes) != len(rest):
        raise BadFrame(f"batches of {sum(sizes)} bytes by their header, but {len(rest)} came")
    batches: list[Buffer] = []
    at = 0
    for size in sizes:
        batches.append(rest[at : at + size])
        at += size
    return batches
