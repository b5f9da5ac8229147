"""Corfu's messages in the frames that every engine uses: batches travel raw, behind a header."""

from collections.abc import Sequence

import msgspec

from anabranch.core.machine import Buffer
from anabranch.core.types import Position
from anabranch.core.wire.codec import Codec
from anabranch.core.wire.frames import (
    REPLY_BYTES_MAX,
    Decoder,
    FrameReader,
    framed,
    parts,
    with_batches,
)
from benchmarks.erwin.corfu.messages import Found, FromCorfu, Hello, ToCorfu, Write

REQUEST, WRITE, REPLY, FOUND = range(64, 68)
"""Kinds of frames; no engine of the product uses them."""

_pack = msgspec.msgpack.Encoder().encode
_request: "msgspec.msgpack.Decoder[ToCorfu]" = msgspec.msgpack.Decoder(ToCorfu)
_reply: "msgspec.msgpack.Decoder[FromCorfu]" = msgspec.msgpack.Decoder(FromCorfu)
_hello: "msgspec.msgpack.Decoder[Hello]" = msgspec.msgpack.Decoder(Hello)
_position: "msgspec.msgpack.Decoder[Position]" = msgspec.msgpack.Decoder(Position)


def encode_request(request: int, message: ToCorfu) -> list[Buffer]:
    if type(message) is Write:
        head = _pack(message.position)
        return with_batches(WRITE, request, head, [message.batch], [len(message.batch)])
    return [framed(REQUEST, request, _pack(message))]


def encode_reply(request: int, message: FromCorfu) -> list[Buffer]:
    if type(message) is Found:
        return with_batches(FOUND, request, b"", [message.batch], [len(message.batch)])
    return [framed(REPLY, request, _pack(message))]


def encode_replies(requests: Sequence[int], messages: Sequence[FromCorfu]) -> bytes:
    frames = map(encode_reply, requests, messages)
    return b"".join([part for frame in frames for part in frame])


def _decode_hello(data: bytes | memoryview, start: int, end: int) -> Hello:
    return _hello.decode(data[start:end])


def _decode_request(data: bytes | memoryview, start: int, end: int) -> ToCorfu:
    return _request.decode(data[start:end])


def _decode_write(data: bytes | memoryview, start: int, end: int) -> Write:
    head, batch = parts(data, start, end)
    return Write(_position.decode(head), bytes(batch))


def _decode_reply(data: bytes | memoryview, start: int, end: int) -> FromCorfu:
    return _reply.decode(data[start:end])


def _decode_found(data: bytes | memoryview, start: int, end: int) -> Found:
    return Found(bytes(parts(data, start, end)[1]))


_REQUESTS: "dict[int, Decoder[ToCorfu]]" = {REQUEST: _decode_request, WRITE: _decode_write}
_REPLIES: "dict[int, Decoder[FromCorfu]]" = {REPLY: _decode_reply, FOUND: _decode_found}


def requests(frame_bytes_max: int) -> FrameReader[ToCorfu]:
    return FrameReader(_REQUESTS, frame_bytes_max)


def replies(frame_bytes_max: int = REPLY_BYTES_MAX) -> FrameReader[FromCorfu]:
    return FrameReader(_REPLIES, frame_bytes_max)


CODEC: Codec[ToCorfu, FromCorfu] = Codec(
    hello=(REQUEST, _decode_hello),
    requests=requests,
    replies=replies,
    encode_request=encode_request,
    encode_reply=encode_reply,
    encode_replies=encode_replies,
)
