"""What clients and nodes of an Erwin log write to each other, as frames: bytes, and nothing of a
connection's life.

A node has one port. Its first frame says who comes: a node greets and then writes letters, a client
says hello and then asks. No kind of frame is one of another engine's. Batches travel raw, behind a
header.
"""

from collections.abc import Sequence

import msgspec

from anabranch.core.errors import BadFrame
from anabranch.core.erwin.protocol.letters import ErwinLetter
from anabranch.core.erwin.protocol.messages import (
    Data,
    Delivered,
    FromShard,
    Hello,
    Records,
    Span,
    ToShard,
)
from anabranch.core.machine import Buffer
from anabranch.core.replication.letters import ReplicaLetter
from anabranch.core.sequencing.protocol.letters import SequencingLetter
from anabranch.core.types import Position
from anabranch.core.wire.codec import Codec
from anabranch.core.wire.frames import (
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
from anabranch.core.wire.peers import LETTER, PULSE, Pulse, decode_pulse

REQUEST, DATA, REPLY, RECORDS, DELIVERED = range(24, 29)

Letter = ErwinLetter | SequencingLetter | ReplicaLetter


class _DataHead(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    lowest: int


class _RecordsHead(msgspec.Struct, frozen=True, array_like=True):
    upto: Position
    stable: Position
    trimmed: Position
    firsts: tuple[Position, ...]
    counts: tuple[int, ...]
    sizes: list[Size]
    elsewhere: tuple[Span, ...]


class _DeliveredHead(msgspec.Struct, frozen=True, array_like=True):
    upto: Position
    firsts: tuple[Position, ...]
    counts: tuple[int, ...]
    sizes: list[Size]


_pack = msgspec.msgpack.Encoder().encode
_request: "msgspec.msgpack.Decoder[ToShard]" = msgspec.msgpack.Decoder(ToShard)
_reply: "msgspec.msgpack.Decoder[FromShard]" = msgspec.msgpack.Decoder(FromShard)
_letter: "msgspec.msgpack.Decoder[Letter]" = msgspec.msgpack.Decoder(Letter)
_hello: "msgspec.msgpack.Decoder[Hello]" = msgspec.msgpack.Decoder(Hello)
_data_head = msgspec.msgpack.Decoder(_DataHead)
_records_head = msgspec.msgpack.Decoder(_RecordsHead)
_delivered_head = msgspec.msgpack.Decoder(_DeliveredHead)


def encode_request(request: int, message: ToShard) -> list[Buffer]:
    """What a client sends: buffers to be written one after the other."""
    if type(message) is Data:
        head = _pack(_DataHead(message.epoch, message.lowest))
        return with_batches(DATA, request, head, [message.batch], [len(message.batch)])
    return [framed(REQUEST, request, _pack(message))]


def encode_reply(request: int, message: FromShard) -> list[Buffer]:
    """What a replica answers: buffers to be written one after the other."""
    match message:
        case Records():
            sizes = list(map(len, message.batches))
            head = _pack(
                _RecordsHead(
                    message.upto,
                    message.stable,
                    message.trimmed,
                    message.firsts,
                    message.counts,
                    sizes,
                    message.elsewhere,
                )
            )
            return with_batches(RECORDS, request, head, message.batches, sizes)
        case Delivered():
            sizes = list(map(len, message.batches))
            head = _pack(_DeliveredHead(message.upto, message.firsts, message.counts, sizes))
            return with_batches(DELIVERED, request, head, message.batches, sizes)
        case _:
            return [framed(REPLY, request, _pack(message))]


def encode_replies(requests: Sequence[int], messages: Sequence[FromShard]) -> bytes:
    frames = map(encode_reply, requests, messages)
    return b"".join([part for frame in frames for part in frame])


def letters(frame_bytes_max: int) -> "FrameReader[Letter | Pulse]":
    """For a node: reads all that follows a greeting."""
    return FrameReader(_LETTERS, frame_bytes_max)


def requests(frame_bytes_max: int) -> "FrameReader[ToShard]":
    """For a node: reads all that follows a hello."""
    return FrameReader(_REQUESTS, frame_bytes_max)


def replies(frame_bytes_max: int = REPLY_BYTES_MAX) -> "FrameReader[FromShard]":
    """For a client: reads what replicas answer."""
    return FrameReader(_REPLIES, frame_bytes_max)


_decode_hello = whole_body(_hello.decode)
_decode_letter = whole_body(_letter.decode)
_decode_request = whole_body(_request.decode)


def _decode_data(data: bytes | memoryview, start: int, end: int) -> Data:
    head_bytes, batch = parts(data, start, end)
    head = _data_head.decode(head_bytes)
    return Data(head.epoch, head.lowest, bytes(batch))


_decode_reply = whole_body(_reply.decode)


def _batches(
    rest: memoryview, sizes: list[Size], firsts: tuple[Position, ...], counts: tuple[int, ...]
) -> tuple[bytes, ...]:
    """Each batch has a first position, a number of records and a size; 0: no-ops."""
    if not len(sizes) == len(firsts) == len(counts):
        raise BadFrame(f"{len(firsts)} positions and {len(counts)} counts of {len(sizes)} batches")
    return tuple(map(bytes, batches_of(rest, sizes)))


def _decode_records(data: bytes | memoryview, start: int, end: int) -> Records:
    head_bytes, rest = parts(data, start, end)
    head = _records_head.decode(head_bytes)
    return Records(
        upto=head.upto,
        stable=head.stable,
        trimmed=head.trimmed,
        firsts=head.firsts,
        counts=head.counts,
        batches=_batches(rest, head.sizes, head.firsts, head.counts),
        elsewhere=head.elsewhere,
    )


def _decode_delivered(data: bytes | memoryview, start: int, end: int) -> Delivered:
    head_bytes, rest = parts(data, start, end)
    head = _delivered_head.decode(head_bytes)
    return Delivered(
        upto=head.upto,
        firsts=head.firsts,
        counts=head.counts,
        batches=_batches(rest, head.sizes, head.firsts, head.counts),
    )


_LETTERS: "dict[int, Decoder[Letter | Pulse]]" = {LETTER: _decode_letter, PULSE: decode_pulse}
_REQUESTS: "dict[int, Decoder[ToShard]]" = {REQUEST: _decode_request, DATA: _decode_data}
_REPLIES: "dict[int, Decoder[FromShard]]" = {
    REPLY: _decode_reply,
    RECORDS: _decode_records,
    DELIVERED: _decode_delivered,
}

CODEC = Codec(
    hello=(REQUEST, _decode_hello),
    requests=requests,
    replies=replies,
    encode_request=encode_request,
    encode_reply=encode_reply,
    encode_replies=encode_replies,
)
