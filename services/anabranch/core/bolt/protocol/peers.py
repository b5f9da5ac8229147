"""Letters between brokers and metadata members, as frames over those of `core/wire/peers.py`."""

import msgspec

from anabranch.core.bolt.protocol.letters import FromMetadata, ToMetadata
from anabranch.core.errors.refused import Refused
from anabranch.core.wire.frames import Decoder, FrameReader, whole_body
from anabranch.core.wire.peers import (
    GREETING,
    LETTER,
    PULSE,
    Greeting,
    Pulse,
    decode_pulse,
    decode_welcome,
)

FromBroker = ToMetadata | Pulse
"""What follows a broker's greeting."""
FromMember = Greeting | Refused | FromMetadata | Pulse

_to_metadata: "msgspec.msgpack.Decoder[ToMetadata]" = msgspec.msgpack.Decoder(ToMetadata)
_from_metadata: "msgspec.msgpack.Decoder[FromMetadata]" = msgspec.msgpack.Decoder(FromMetadata)


def letters_of_brokers(frame_bytes_max: int) -> "FrameReader[FromBroker]":
    """For a member: reads all frames that follow the greeting."""
    return FrameReader(_LETTERS_OF_BROKERS, frame_bytes_max)


def messages_of_members(frame_bytes_max: int) -> "FrameReader[FromMember]":
    """For a broker: reads every frame."""
    return FrameReader(_FROM_MEMBER, frame_bytes_max)


_decode_to_metadata = whole_body(_to_metadata.decode)
_decode_from_metadata = whole_body(_from_metadata.decode)
_LETTERS_OF_BROKERS: "dict[int, Decoder[FromBroker]]" = {
    LETTER: _decode_to_metadata,
    PULSE: decode_pulse,
}
_FROM_MEMBER: "dict[int, Decoder[FromMember]]" = {
    GREETING: decode_welcome,
    LETTER: _decode_from_metadata,
    PULSE: decode_pulse,
}
