"""Which letters of an Erwin log are from controllers, and which are for them."""

from typing import Any

from anabranch.core.erwin.protocol.letters import (
    Configuration,
    Control,
    LearnShard,
    OpenShard,
    SealShard,
    ShardPresent,
    ShardSealed,
)
from anabranch.core.sequencing.controller.names import named
from anabranch.core.sequencing.protocol.letters import (
    Prepare,
    Prepared,
    Present,
    Seal,
    Sealed,
    Start,
)

_FROM_CONTROLLERS = (Configuration, Control, LearnShard, SealShard, Prepare, Seal, Start)
_TO_CONTROLLERS = (OpenShard, ShardPresent, ShardSealed, Present, Prepared, Sealed)


def sender_of(letter: Any, address: str) -> str:
    """The node of the process at this address that sends such a letter."""
    return named(address, controller=isinstance(letter, _FROM_CONTROLLERS))


def receiver_of(letter: Any, address: str) -> str:
    """The node of the process at this address that such a letter is for."""
    return named(address, controller=isinstance(letter, _TO_CONTROLLERS))
