"""An engine's messages as the simulation needs them: as bytes, and by what they ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch.core.wire.codec import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWire:
    """The messages of clients, and how a server greets them."""

    codec: Codec[Any, Any]
    frame_bytes_max: int
    """A server's bound on requests."""
    hello: type
    welcome: Callable[[str], Any]
    """A server's answer to a hello, by the name of the node."""
    pushed: tuple[type, ...]
    """Replies after which more may come to the same request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Letters between nodes, and the messages of clients if all nodes have the same kind."""

    letter: Callable[[bytes], Any]
    """Reads a letter's bytes where it arrives."""
    clients: ClientWire | None = None
