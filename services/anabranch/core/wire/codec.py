"""What a connection needs of an engine to carry its messages, on either side."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import Decoder, FrameReader

Q = TypeVar("Q")
A = TypeVar("A")


class Codec(msgspec.Struct, Generic[Q, A], frozen=True, kw_only=True):
    """Requests (`Q`) and replies (`A`) of one engine as frames."""

    hello: tuple[int, Decoder[Any]]
    """The kind of a client's first frame, and how its body is read. A server that serves several
    engines at one port tells their clients apart by it.
    """

    requests: Callable[[int], FrameReader[Q]]
    """Reads what clients send, in frames of at most this many bytes."""

    replies: Callable[[], FrameReader[A]]
    """Reads what servers answer."""

    encode_request: Callable[[int, Q], list[Buffer]]
    """The buffers to write one after the other for a request with this number."""

    encode_reply: Callable[[int, A], list[Buffer]]

    encode_replies: Callable[[Sequence[int], Sequence[A]], Buffer]
    """One reply to each of these requests."""
