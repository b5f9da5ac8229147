"""What clients and sequencing replicas write to each other, as frames: bytes, and nothing of a
connection's life.

No kind of frame is one of another protocol's, because one port serves all of them. Batches travel
raw, behind a header. The letters among replicas are framed by the codec of their engine.
"""

from collections.abc import Sequence

import msgspec

from anabranch.core.machine import Buffer
from anabranch.core.sequencing.protocol.messages import (
    Append,
    FromSequencer,
    Hello,
    Taken,
    ToSequencer,
)
from anabranch.core.wire.codec import Codec
from anabranch.core.wire.frames import (
    HEADER,
    LENGTH_BYTES,
    REPLY_BYTES_MAX,
    Decoder,
    FrameReader,
    framed,
    parts,
    whole_body,
    with_batches,
)

REQUEST, APPEND, REPLY = range(16, 19)


class AppendHead(msgspec.Struct, frozen=True, array_like=True):
    """What stands before the batch of an `Append`."""

    view: int
    lowest: int


_pack = msgspec.msgpack.Encoder().encode
_request: "msgspec.msgpack.Decoder[ToSequencer]" = msgspec.msgpack.Decoder(ToSequencer)
_reply: "msgspec.msgpack.Decoder[FromSequencer]" = msgspec.msgpack.Decoder(FromSequencer)
_hello: "msgspec.msgpack.Decoder[Hello]" = msgspec.msgpack.Decoder(Hello)
_append_head = msgspec.msgpack.Decoder(AppendHead)

_TAKEN = _pack(Taken())
_TAKEN_LENGTH = HEADER.size - LENGTH_BYTES + len(_TAKEN)


def encode_request(request: int, message: ToSequencer) -> list[Buffer]:
    """What a client sends: buffers to be written one after the other."""
    if type(message) is Append:
        head = _pack(AppendHead(message.view, message.lowest))
        return with_batches(APPEND, request, head, [message.batch], [len(message.batch)])
    return [framed(REQUEST, request, _pack(message))]


def encode_reply(request: int, message: FromSequencer) -> list[Buffer]:
    """What a replica answers: buffers to be written one after the other."""
    return [_encode(request, message)]


def encode_replies(requests: Sequence[int], messages: Sequence[FromSequencer]) -> bytes:
    return b"".join(map(_encode, requests, messages))


def _encode(request: int, message: FromSequencer) -> bytes:
    if type(message) is Taken and not message.shard:
        # Where batches come with their ids, nearly all answers are this one.
        return HEADER.pack(_TAKEN_LENGTH, REPLY, 0, 0, request) + _TAKEN
    return framed(REPLY, request, _pack(message))


def requests(frame_bytes_max: int) -> "FrameReader[ToSequencer]":
    """For a replica: reads all that follows a hello."""
    return FrameReader(_REQUESTS, frame_bytes_max)


def replies(frame_bytes_max: int = REPLY_BYTES_MAX) -> "FrameReader[FromSequencer]":
    """For a client: reads what replicas answer."""
    return FrameReader(_REPLIES, frame_bytes_max)


_decode_hello = whole_body(_hello.decode)
_decode_request = whole_body(_request.decode)


def _decode_append(data: bytes | memoryview, start: int, end: int) -> Append:
    head_bytes, batch = parts(data, start, end)
    head = _append_head.decode(head_bytes)
    return Append(head.view, head.lowest, bytes(batch))


_decode_reply = whole_body(_reply.decode)
_REQUESTS: "dict[int, Decoder[ToSequencer]]" = {REQUEST: _decode_request, APPEND: _decode_append}
_REPLIES: "dict[int, Decoder[FromSequencer]]" = {REPLY: _decode_reply}

CODEC = Codec(
    hello=(REQUEST, _decode_hello),
    requests=requests,
    replies=replies,
    encode_request=encode_request,
    encode_reply=encode_reply,
    encode_replies=encode_replies,
)
