"""What Bolt's clients and brokers write to each other, as frames."""

import struct
from collections.abc import Sequence

import msgspec

from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    ClientMessage,
    Control,
    Delivered,
    Hello,
    Plain,
    Records,
    ServerMessage,
)
from anabranch.core.errors import BadFrame
from anabranch.core.machine import Buffer
from anabranch.core.records.origins import Run
from anabranch.core.types import LogId, Position
from anabranch.core.wire.codec import Codec
from anabranch.core.wire.frames import (
    HEADER,
    LENGTH_BYTES,
    REPLY_BYTES_MAX,
    Decoder,
    FrameReader,
    Size,
    batches_of,
    framed,
    parts,
    whole_body,
    with_batches,
)

CONTROL, APPEND, PLAIN, APPENDED, PROMISED, RECORDS, DELIVERED = range(1, 8)

_APPEND = struct.Struct(">Qi")
_POSITION = struct.Struct(">q")
_RECEIPT = struct.Struct(">qqq")
_WHOLE_APPEND = struct.Struct(">IBBHIQi")
_WHOLE_APPENDED = struct.Struct(">IBBHIq")
_WHOLE_PROMISED = struct.Struct(">IBBHIqqq")


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
_hello = msgspec.msgpack.Decoder(Hello)
_control = msgspec.msgpack.Decoder(Control)
_plain = msgspec.msgpack.Decoder(Plain)
_records_head = msgspec.msgpack.Decoder(_RecordsHead)
_delivered_head = msgspec.msgpack.Decoder(_DeliveredHead)


def encode_request(request: int, message: ClientMessage) -> list[Buffer]:
    """What a client sends: buffers to be written one after the other."""
    if type(message) is Append:
        length = HEADER.size - LENGTH_BYTES + _APPEND.size + len(message.batch)
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


def requests(frame_bytes_max: int) -> "FrameReader[ClientMessage]":
    """For a server: reads what clients send."""
    return FrameReader(_FROM_CLIENT, frame_bytes_max)


def replies(frame_bytes_max: int = REPLY_BYTES_MAX) -> "FrameReader[ServerMessage]":
    """For a client: reads what servers answer."""
    return FrameReader(_FROM_SERVER, frame_bytes_max)


def _decode_append(data: bytes | memoryview, start: int, end: int) -> Append:
    batch = start + _APPEND.size
    if batch > end:
        raise BadFrame(f"an append of {end - start} bytes ends before its batch")
    log, wait_ms = _APPEND.unpack_from(data, start)
    return Append(log, data[batch:end], wait_ms)


_decode_hello = whole_body(_hello.decode)
_decode_control = whole_body(_control.decode)
_decode_plain = whole_body(_plain.decode)


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
    batches = batches_of(rest, head.sizes)
    return Records(head.runs, batches, head.next, head.start, head.tail, head.settled)


def _decode_delivered(data: bytes | memoryview, start: int, end: int) -> Delivered:
    head_bytes, rest = parts(data, start, end)
    head = _delivered_head.decode(head_bytes)
    return Delivered(head.runs, batches_of(rest, head.sizes), head.speculative)


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

CODEC = Codec(
    hello=(CONTROL, _decode_hello),
    requests=requests,
    replies=replies,
    encode_request=encode_request,
    encode_reply=encode_reply,
    encode_replies=encode_replies,
)
