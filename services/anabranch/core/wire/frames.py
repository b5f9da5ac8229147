"""Messages as length-prefixed frames: what bytes a connection carries, and nothing of its life.

A frame is `u32 length | u8 kind | u8 flags | u16 reserved | u32 request | body`, big-endian; the
length counts what follows it. Batches travel raw, behind a header, so that neither side copies or
re-encodes them. A body that can't be read costs its request and no more; a length that can't be
believed costs the connection, for nothing after it can be found.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec

from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    ClientMessage,
    Control,
    Delivered,
    Plain,
    Records,
    ServerMessage,
)
from anabranch.core.errors import BadFrame
from anabranch.core.machine import Buffer
from anabranch.core.records.origins import Run
from anabranch.core.types import LogId, Position

CONTROL, APPEND, PLAIN, APPENDED, PROMISED, RECORDS, DELIVERED = range(1, 8)

HEADER = struct.Struct(">IBBHI")
_LENGTH_BYTES = 4
_UNCOUNTED = HEADER.size - _LENGTH_BYTES
"""The least a length can say: the rest of the header."""

_APPEND = struct.Struct(">Qi")
_POSITION = struct.Struct(">q")
_RECEIPT = struct.Struct(">qqq")
_U32 = struct.Struct(">I")
_WHOLE_APPEND = struct.Struct(">IBBHIQi")
_WHOLE_APPENDED = struct.Struct(">IBBHIq")
_WHOLE_PROMISED = struct.Struct(">IBBHIqqq")

CONNECTION = 0
"""The request number of a reply that is about the connection as a whole; requests count from 1."""

REPLY_BYTES_MAX = 1 << 26
"""What a client takes from a server it has chosen to trust with its memory."""

M = TypeVar("M")
Decoder = Callable[["bytes | memoryview", int, int], M]
Size = Annotated[int, msgspec.Meta(ge=0)]


class _RecordsHead(msgspec.Struct, frozen=True, array_like=True):
    runs: list[Run]
    sizes: list[Size]
    next: Position
    start: Position
    tail: Position
    settled: Position


class _DeliveredHead(msgspec.Struct, frozen=True, array_like=True):
    runs: list[Run]
    sizes: list[Size]
    speculative: bool


_pack = msgspec.msgpack.Encoder().encode
_control = msgspec.msgpack.Decoder(Control)
_plain = msgspec.msgpack.Decoder(Plain)
_records_head = msgspec.msgpack.Decoder(_RecordsHead)
_delivered_head = msgspec.msgpack.Decoder(_DeliveredHead)


def encode_request(request: int, message: ClientMessage) -> list[Buffer]:
    """What a client sends: buffers to be written one after the other."""
    if type(message) is Append:
        length = _UNCOUNTED + _APPEND.size + len(message.batch)
        return [
            _WHOLE_APPEND.pack(length, APPEND, 0, 0, request, message.log, message.wait_ms),
            message.batch,
        ]
    return [framed(CONTROL, request, _pack(message))]


def encode_reply(request: int, message: ServerMessage) -> list[Buffer]:
    """What a server answers: buffers to be written one after the other."""
    if type(message) is Appended and message.position is not None and message.receipt is None:
        return [_WHOLE_APPENDED.pack(16, APPENDED, 0, 0, request, message.position)]
    match message:
        case Appended(None, Receipt(log, generation, provisional)):
            return [_WHOLE_PROMISED.pack(32, PROMISED, 0, 0, request, log, generation, provisional)]
        case Records():
            sizes = list(map(len, message.batches))
            head = _RecordsHead(
                message.runs, sizes, message.next, message.start, message.tail, message.settled
            )
            return with_batches(RECORDS, request, _pack(head), message.batches, sizes)
        case Delivered():
            sizes = list(map(len, message.batches))
            head = _DeliveredHead(message.runs, sizes, message.speculative)
            return with_batches(DELIVERED, request, _pack(head), message.batches, sizes)
        case _:
            assert type(message) is not Appended, "an append has a position or a receipt"
            return [framed(PLAIN, request, _pack(message))]


def encode_replies(requests: Sequence[int], messages: Sequence[ServerMessage]) -> bytes:
    """The answers to many requests; to appends they cost next to nothing."""
    pack = _WHOLE_APPENDED.pack
    return b"".join(
        [
            pack(16, APPENDED, 0, 0, request, message.position)
            if type(message) is Appended and message.position is not None
            else b"".join(encode_reply(request, message))
            for request, message in zip(requests, messages, strict=True)
        ]
    )


def framed(kind: int, request: int, body: bytes) -> bytes:
    """A whole frame."""
    return HEADER.pack(_UNCOUNTED + len(body), kind, 0, 0, request) + body


def with_batches(
    kind: int, request: int, head: bytes, batches: Sequence[Buffer], sizes: Sequence[int]
) -> list[Buffer]:
    """A frame whose body is a header and, behind it, batches as they are."""
    length = _UNCOUNTED + _U32.size + len(head) + sum(sizes)
    start = HEADER.pack(length, kind, 0, 0, request) + _U32.pack(len(head)) + head
    return [start, *batches]


class FrameReader(Generic[M]):
    """Finds the frames in a stream of bytes that arrives in any pieces.

    It holds at most one unfinished frame, and of it only what has arrived. A message owns its
    bytes: it may be kept without keeping anything else of the stream alive.
    """

    __slots__ = ("_decoders", "_frame_bytes_max", "_partial", "begun", "broken")

    def __init__(self, decoders: "Mapping[int, Decoder[M]]", frame_bytes_max: int) -> None:
        self._decoders = decoders
        self._frame_bytes_max = frame_bytes_max
        self._partial = bytearray()
        self.begun = 0
        """Frames that came in more than one piece."""
        self.broken: BadFrame | None = None
        """Set when the stream can't be followed any more; whatever comes then is dropped."""

    def drop(self) -> None:
        """Nothing more will come. Whoever reads may be kept alive for long, by a cycle."""
        self._partial = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Of the unfinished frame."""
        return len(self._partial)

    @property
    def announced_bytes(self) -> int:
        """Of the unfinished frame, once its length has come."""
        if len(self._partial) < _LENGTH_BYTES:
            return 0
        return _LENGTH_BYTES + int.from_bytes(self._partial[:_LENGTH_BYTES])

    def feed(self, data: bytes) -> "list[tuple[int, M | BadFrame]]":
        """The frames that these bytes complete, by request; BadFrame for one that can't be read."""
        frames: list[tuple[int, M | BadFrame]] = []
        at = self._resume(data, frames) if self._partial else 0
        size = len(data)
        frame_bytes_max = self._frame_bytes_max
        while size - at >= 12 and self.broken is None:
            length, kind, flags, reserved, request = HEADER.unpack_from(data, at)
            if not _UNCOUNTED <= length <= frame_bytes_max - _LENGTH_BYTES:
                self._break(length)
                break
            end = at + _LENGTH_BYTES + length
            if end > size:
                break
            frames.append((request, self._decode(kind, flags or reserved, data, at + 12, end)))
            at = end
        if at < size and self.broken is None:
            self.begun += not self._partial
            self._partial += memoryview(data)[at:]
        return frames

    def _resume(self, data: bytes, frames: "list[tuple[int, M | BadFrame]]") -> int:
        """Complete the unfinished frame as far as these bytes go; says how many it took."""
        partial = self._partial
        taken = 0
        if len(partial) < 12:
            taken = min(12 - len(partial), len(data))
            partial += data[:taken]
            if len(partial) < 12:
                return taken
        length, kind, flags, reserved, request = HEADER.unpack_from(partial)
        if not _UNCOUNTED <= length <= self._frame_bytes_max - _LENGTH_BYTES:
            self._break(length)
            return taken
        missing = _LENGTH_BYTES + length - len(partial)
        if missing > len(data) - taken:
            partial += memoryview(data)[taken:]
            return len(data)
        partial += memoryview(data)[taken : taken + missing]
        self._partial = bytearray()
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
        except BadFrame as error:
            return error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return BadFrame(str(error))

    def _break(self, length: int) -> None:
        self._partial = bytearray()
        self.broken = BadFrame(
            f"a length of {length} bytes, where {_UNCOUNTED} to "
            f"{self._frame_bytes_max - _LENGTH_BYTES} are possible (frame_bytes_max)"
        )


def client_messages(frame_bytes_max: int) -> "FrameReader[ClientMessage]":
    """For a server: reads what clients send."""
    return FrameReader(_FROM_CLIENT, frame_bytes_max)


def server_messages(frame_bytes_max: int = REPLY_BYTES_MAX) -> "FrameReader[ServerMessage]":
    """For a client: reads what servers answer."""
    return FrameReader(_FROM_SERVER, frame_bytes_max)


def _decode_append(data: bytes | memoryview, start: int, end: int) -> Append:
    batch = start + _APPEND.size
    if batch > end:
        raise BadFrame(f"an append of {end - start} bytes ends before its batch")
    log, wait_ms = _APPEND.unpack_from(data, start)
    return Append(log, data[batch:end], wait_ms)


def _decode_control(data: bytes | memoryview, start: int, end: int) -> ClientMessage:
    return _control.decode(data[start:end])


def _decode_plain(data: bytes | memoryview, start: int, end: int) -> ServerMessage:
    return _plain.decode(data[start:end])


def _decode_appended(data: bytes | memoryview, start: int, end: int) -> Appended:
    _exactly(_POSITION, start, end)
    return Appended(_POSITION.unpack_from(data, start)[0])


def _decode_promised(data: bytes | memoryview, start: int, end: int) -> Appended:
    _exactly(_RECEIPT, start, end)
    log, generation, provisional = _RECEIPT.unpack_from(data, start)
    return Appended(None, Receipt(LogId(log), generation, provisional))


def _exactly(body: struct.Struct, start: int, end: int) -> None:
    if end - start != body.size:
        raise BadFrame(f"a body of {end - start} bytes where {body.size} belong")


def _decode_records(data: bytes | memoryview, start: int, end: int) -> Records:
    head_bytes, rest = parts(data, start, end)
    head = _records_head.decode(head_bytes)
    batches = _batches(rest, head.sizes)
    return Records(head.runs, batches, head.next, head.start, head.tail, head.settled)


def _decode_delivered(data: bytes | memoryview, start: int, end: int) -> Delivered:
    head_bytes, rest = parts(data, start, end)
    head = _delivered_head.decode(head_bytes)
    return Delivered(head.runs, _batches(rest, head.sizes), head.speculative)


def parts(data: bytes | memoryview, start: int, end: int) -> tuple[memoryview, memoryview]:
    """The header and what follows it."""
    if end - start < _U32.size:
        raise BadFrame(f"a body of {end - start} bytes ends before its header's size")
    body = memoryview(data[start:end])
    batches = _U32.size + _U32.unpack_from(body)[0]
    if batches > len(body):
        raise BadFrame(f"a header of {batches - _U32.size} bytes in a body of {len(body)}")
    return body[_U32.size : batches], body[batches:]


def _batches(rest: memoryview, sizes: Sequence[int]) -> list[Buffer]:
    if sum(sizes) != len(rest):
        raise BadFrame(f"batches of {sum(sizes)} bytes by their header, but {len(rest)} came")
    batches: list[Buffer] = []
    at = 0
    for size in sizes:
        batches.append(rest[at : at + size])
        at += size
    return batches


_FROM_CLIENT: "dict[int, Decoder[ClientMessage]]" = {
    CONTROL: _decode_control,
    APPEND: _decode_append,
}
_FROM_SERVER: "dict[int, Decoder[ServerMessage]]" = {
    PLAIN: _decode_plain,
    APPENDED: _decode_appended,
    PROMISED: _decode_promised,
    RECORDS: _decode_records,
    DELIVERED: _decode_delivered,
}
