"""Letters between the processes of a lazy front, as frames: most are of the sequencing layer."""

from typing import Any

import msgspec

from anabranch.core.bolt.protocol.fronts import FrontConfiguration
from anabranch.core.sequencing.controller.names import named
from anabranch.core.sequencing.letters import (
    Prepare,
    Prepared,
    Present,
    Seal,
    Sealed,
    SequencingLetter,
    Start,
)
from anabranch.core.wire.frames import Decoder, FrameReader, whole_body
from anabranch.core.wire.peers import LETTER, PULSE, Pulse, decode_pulse

FRONT_VERSION = 1


class FrontLeads(msgspec.Struct, frozen=True, array_like=True, tag="front-leads"):
    """The controller of this term to the others, again and again: it lives, and decides."""

    term: int
    leaving: bool = False
    """Its process is about to end: another one shall take over now."""


Letter = SequencingLetter | FrontConfiguration | FrontLeads

_FROM_CONTROLLERS = (FrontConfiguration, FrontLeads, Prepare, Seal, Start)
_TO_CONTROLLERS = (FrontLeads, Present, Prepared, Sealed)

_letter: "msgspec.msgpack.Decoder[Letter]" = msgspec.msgpack.Decoder(Letter)


def letters(frame_bytes_max: int) -> "FrameReader[Letter | Pulse]":
    """For a node: reads all that follows a greeting."""
    return FrameReader(_LETTERS, frame_bytes_max)


def sender_of(letter: Any, address: str) -> str:
    """The node of the process at this address that sends such a letter."""
    return named(address, controller=isinstance(letter, _FROM_CONTROLLERS))


def receiver_of(letter: Any, address: str) -> str:
    """The node of the process at this address that such a letter is for."""
    return named(address, controller=isinstance(letter, _TO_CONTROLLERS))


_decode = whole_body(_letter.decode)
_LETTERS: "dict[int, Decoder[Letter | Pulse]]" = {LETTER: _decode, PULSE: decode_pulse}
