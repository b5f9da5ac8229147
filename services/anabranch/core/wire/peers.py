"""Greetings, pulses and letters between processes of one cluster, as frames.

The frames are those of `frames.py`, with request 0. The side that dials begins with a greeting and
is answered with the other's, or with a refusal and the end of the connection; then come letters,
whose vocabulary is the engine's. Each side sends a pulse now and then to show that it lives.
"""

from typing import Final

import msgspec

from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import FrameReader, framed, framed_in_parts, whole_body

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


FromNode = Greeting | Refused | Pulse
"""All that is said to who dials where each side dials the other and writes to it there."""

_pack = msgspec.msgpack.Encoder().encode
_greeting: "msgspec.msgpack.Decoder[Greeting]" = msgspec.msgpack.Decoder(Greeting)
_welcome: "msgspec.msgpack.Decoder[Greeting | Refused]" = msgspec.msgpack.Decoder(
    Greeting | Refused
)

_PULSE = Pulse()
PULSE_FRAME: Final = framed(PULSE, 0, b"")


def first_greeting() -> FrameReader[Greeting]:
    """For a process that is dialed: reads the first frame of a connection and no other."""
    return FrameReader({GREETING: decode_greeting}, GREETING_BYTES_MAX)


def greetings() -> FrameReader[FromNode]:
    """For a node that has dialed another: reads all that is said to it there."""
    return FrameReader({GREETING: decode_welcome, PULSE: decode_pulse}, GREETING_BYTES_MAX)


def encode_greeting(message: Greeting | Refused) -> bytes:
    return framed(GREETING, 0, _pack(message))


def encode_letter(message: msgspec.Struct) -> list[Buffer]:
    """Of any vocabulary: buffers to be written one after the other."""
    return framed_in_parts(LETTER, 0, _pack(message))


decode_greeting = whole_body(_greeting.decode)
decode_welcome = whole_body(_welcome.decode)


def decode_pulse(data: bytes | memoryview, start: int, end: int) -> Pulse:
    return _PULSE
