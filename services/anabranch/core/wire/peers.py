"""What brokers and metadata members write to each other, as frames: bytes, and nothing of a
connection's life.

The frames are those of `frames.py`, with request 0. The broker begins with a greeting, and is
answered with the member's, or with a refusal and the end of the connection; then both sides write
letters. Both say now and then that they are there.
"""

from typing import Final

import msgspec

from anabranch.core.bolt.protocol.letters import FromMetadata, ToMetadata
from anabranch.core.errors.refused import Refused
from anabranch.core.wire.frames import Decoder, FrameReader, framed

PEER_VERSION: Final = 1
"""Of what is said before the first letter; commands have a version of their own."""

GREETING_BYTES_MAX: Final = 4_096
"""A stranger may make us keep no more than this."""

GREETING, LETTER, PULSE = range(1, 4)


class Greeting(msgspec.Struct, frozen=True, array_like=True, tag="greeting"):
    """The first frame in each direction: who is there, and of which cluster."""

    version: int
    cluster: str
    node: str
    release: str = ""
    token: str | None = None
    """What members ask of brokers, if they ask; a member shows none."""
    incarnation: str = ""
    """Of the cluster, as its bucket says; another's bucket has another."""


class Pulse(msgspec.Struct, frozen=True, array_like=True, tag="pulse"):
    """I am here, and have nothing to say."""


FromBroker = Greeting | ToMetadata | Pulse
FromMember = Greeting | Refused | FromMetadata | Pulse
FromNode = Greeting | Refused | Pulse
"""All that is said to who dials where each side dials the other and writes to it there."""

_pack = msgspec.msgpack.Encoder().encode
_greeting: "msgspec.msgpack.Decoder[Greeting]" = msgspec.msgpack.Decoder(Greeting)
_welcome: "msgspec.msgpack.Decoder[Greeting | Refused]" = msgspec.msgpack.Decoder(
    Greeting | Refused
)
_to_metadata: "msgspec.msgpack.Decoder[ToMetadata]" = msgspec.msgpack.Decoder(ToMetadata)
_from_metadata: "msgspec.msgpack.Decoder[FromMetadata]" = msgspec.msgpack.Decoder(FromMetadata)

_PULSE = Pulse()
PULSE_FRAME: Final = framed(PULSE, 0, b"")


def encode_greeting(message: Greeting | Refused) -> bytes:
    return framed(GREETING, 0, _pack(message))


def encode_letter(message: msgspec.Struct) -> bytes:
    """Of any vocabulary."""
    return framed(LETTER, 0, _pack(message))


def greetings_of_brokers() -> "FrameReader[FromBroker]":
    """For a member: reads the first frame of a connection and no other."""
    return FrameReader({GREETING: decode_greeting}, GREETING_BYTES_MAX)


def letters_of_brokers(frame_bytes_max: int) -> "FrameReader[FromBroker]":
    """For a member: reads all that follows."""
    return FrameReader(_LETTERS_OF_BROKERS, frame_bytes_max)


def messages_of_members(frame_bytes_max: int) -> "FrameReader[FromMember]":
    """For a broker: reads everything."""
    return FrameReader(_FROM_MEMBER, frame_bytes_max)


def decode_greeting(data: bytes | memoryview, start: int, end: int) -> Greeting:
    return _greeting.decode(data[start:end])


def decode_welcome(data: bytes | memoryview, start: int, end: int) -> Greeting | Refused:
    return _welcome.decode(data[start:end])


def _decode_to_metadata(data: bytes | memoryview, start: int, end: int) -> ToMetadata:
    return _to_metadata.decode(data[start:end])


def _decode_from_metadata(data: bytes | memoryview, start: int, end: int) -> FromMetadata:
    return _from_metadata.decode(data[start:end])


def decode_pulse(data: bytes | memoryview, start: int, end: int) -> Pulse:
    return _PULSE


_LETTERS_OF_BROKERS: "dict[int, Decoder[FromBroker]]" = {
    LETTER: _decode_to_metadata,
    PULSE: decode_pulse,
}
_FROM_MEMBER: "dict[int, Decoder[FromMember]]" = {
    GREETING: decode_welcome,
    LETTER: _decode_from_metadata,
    PULSE: decode_pulse,
}
