"""How an engine's clients and servers talk: its frames, and how each engine says the same."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from anabranch.client.session.settings import Settings
from anabranch.core.wire.codec import Codec

Q = TypeVar("Q")
A = TypeVar("A")


class Greeting(msgspec.Struct, frozen=True):
    """What a server says of itself in its welcome."""

    cluster: str
    record_bytes_max: int
    batch_bytes_max: int
    batch_records_max: int
    engines: tuple[str, ...] = ()
    """Whose logs its catalogue keeps, besides its own engine's."""


class Dialect(msgspec.Struct, Generic[Q, A], frozen=True):
    """One engine's part of a conversation; the session knows no other message of an engine."""

    hello: Callable[[Settings, str | None, str], Q]
    """The first message on a connection, with the token to show, to the server of this address."""
    probe: Q
    """A question that any server answers by itself at once."""
    cancel: Callable[[int], Q]
    """Tells the server that nobody wants the answer to this request."""
    greeting: Callable[[A], Greeting | None]
    """What a welcome says; None for any other message."""
    codec: Codec[Q, A]
