"""What clients, sequencers and shards write to each other, as frames: bytes, and nothing of a
connection's life.

A node has one port. The first frame tells who comes: a node greets, as in `peers.py`, and then
writes letters; a client says hello, and then asks. The frames are those of `frames.py`. Batches
travel raw, behind a header.
"""

from collections.abc import Sequence

import msgspec

from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol.letters import BetweenReplicas, FromReplica, FromSequencer
from anabranch.core.belfast.protocol.messages import (
    Append,
    Delivered,
    Hello,
    ToClient,
    ToServer,
)
from anabranch.core.consensus.letters import ConsensusLetter
from anabranch.core.errors import BadFrame
from anabranch.core.machine import Buffer
from anabranch.core.replication.letters import ReplicaLetter
from anabranch.core.types import Position
from anabranch.core.wire.codec import Codec
from anabranch.core.wire.frames import (
    REPLY_BYTES_MAX,
    Decoder,
    FrameReader,
    framed,
    parts,
    whole_body,
    with_batches,
)
from anabranch.core.wire.peers import LETTER, PULSE, Pulse, decode_pulse

REQUEST, APPEND, REPLY, DELIVERED = range(PULSE + 1, PULSE + 5)

Letter = FromReplica | FromSequencer | BetweenReplicas | ConsensusLetter | ReplicaLetter


class DeliveredHead(msgspec.Struct, frozen=True, array_like=True):
    """What stands before the batches of a Delivered."""

    view: int
    upto: Position
    speculative: bool
    runs: tuple[Run, ...]
    parts: tuple[tuple[int, int], ...]
    sizes: list[int]
    """Of each batch; 0: the one before it once more."""


_pack = msgspec.msgpack.Encoder().encode
_request: "msgspec.msgpack.Decoder[ToServer]" = msgspec.msgpack.Decoder(ToServer)
_reply: "msgspec.msgpack.Decoder[ToClient]" = msgspec.msgpack.Decoder(ToClient)
_letter: "msgspec.msgpack.Decoder[Letter]" = msgspec.msgpack.Decoder(Letter)
_hello: "msgspec.msgpack.Decoder[Hello]" = msgspec.msgpack.Decoder(Hello)
_delivered_head = msgspec.msgpack.Decoder(DeliveredHead)


def encode_request(request: int, message: ToServer) -> list[Buffer]:
    """What a client sends: buffers to be written one after the other."""
    if type(message) is Append:
        return with_batches(APPEND, request, b"", [message.batch], [len(message.batch)])
    return [framed(REQUEST, request, _pack(message))]


def encode_reply(request: int, message: ToClient) -> list[Buffer]:
    """What a server answers: buffers to be written one after the other."""
    if type(message) is not Delivered:
        return [framed(REPLY, request, _pack(message))]
    batches: list[Buffer] = []
    sizes: list[int] = []
    before: bytes | None = None
    for batch in message.batches:
        if batch is before:
            sizes.append(0)
        else:
            assert batch, "a batch has a header"
            batches.append(batch)
            sizes.append(len(batch))
        before = batch
    head = DeliveredHead(
        message.view, message.upto, message.speculative, message.runs, message.parts, sizes
    )
    return delivered_frame(request, head, batches)


def encode_replies(requests: Sequence[int], messages: Sequence[ToClient]) -> bytes:
    frames = map(encode_reply, requests, messages)
    return b"".join([part for frame in frames for part in frame])


def delivered_frame(request: int, head: DeliveredHead, batches: list[Buffer]) -> list[Buffer]:
    return with_batches(DELIVERED, request, _pack(head), batches, list(map(len, batches)))


def letters(frame_bytes_max: int) -> "FrameReader[Letter | Pulse]":
    """For a node: reads all that follows a greeting."""
    return FrameReader(_LETTERS, frame_bytes_max)


def requests(frame_bytes_max: int) -> "FrameReader[ToServer]":
    """For a node: reads all that follows a hello."""
    return FrameReader(_REQUESTS, frame_bytes_max)


def replies(frame_bytes_max: int = REPLY_BYTES_MAX) -> "FrameReader[ToClient]":
    """For a client: reads what nodes answer."""
    return FrameReader(_REPLIES, frame_bytes_max)


_decode_hello = whole_body(_hello.decode)
_decode_letter = whole_body(_letter.decode)
_decode_request = whole_body(_request.decode)


def _decode_append(data: bytes | memoryview, start: int, end: int) -> Append:
    _, batch = parts(data, start, end)
    return Append(bytes(batch))


_decode_reply = whole_body(_reply.decode)


def _decode_delivered(data: bytes | memoryview, start: int, end: int) -> Delivered:
    head_bytes, rest = parts(data, start, end)
    head = _delivered_head.decode(head_bytes)
    if len(head.parts) != len(head.sizes):
        raise BadFrame(f"{len(head.parts)} parts of {len(head.sizes)} batches")
    if sum(head.sizes) != len(rest) or min(head.sizes, default=0) < 0 or head.sizes[:1] == [0]:
        raise BadFrame(f"batches of {head.sizes[:10]} bytes by their header, {len(rest)} came")
    batches: list[bytes] = []
    at = 0
    for size in head.sizes:
        batches.append(bytes(rest[at : at + size]) if size else batches[-1])
        at += size
    return Delivered(head.view, head.upto, head.speculative, head.runs, tuple(batches), head.parts)


_LETTERS: "dict[int, Decoder[Letter | Pulse]]" = {LETTER: _decode_letter, PULSE: decode_pulse}
_REQUESTS: "dict[int, Decoder[ToServer]]" = {REQUEST: _decode_request, APPEND: _decode_append}
_REPLIES: "dict[int, Decoder[ToClient]]" = {REPLY: _decode_reply, DELIVERED: _decode_delivered}

CODEC = Codec(
    hello=(REQUEST, _decode_hello),
    requests=requests,
    replies=replies,
    encode_request=encode_request,
    encode_reply=encode_reply,
    encode_replies=encode_replies,
)
