"""Letters between the processes of a lazy front, as frames: most are of the sequencing layer."""

from typing import Any

import msgspec

from anabranch.core.bolt.protocol.fronts import FrontConfiguration
from anabranch.core.sequencing.controller.names import named
from anabranch.core.sequencing.protocol.letters import (
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


class FrontControl(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="front-control"):
    """The controller that leads, to every sequencer: what it is doing, for whoever asks these."""

    node: str
    term: int
    obstacle: str
    """Why nothing is decided, or what can't be; empty: all is well."""
    changing: str
    """The phase of the view change under way; empty: none is."""
    silent: tuple[str, ...]
    """Sequencers that nothing is heard of."""
    leaving: tuple[str, ...]
    """Sequencers whose processes are about to end."""


Letter = SequencingLetter | FrontConfiguration | FrontLeads | FrontControl

_FROM_CONTROLLERS = (FrontConfiguration, FrontControl, FrontLeads, Prepare, Seal, Start)
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
