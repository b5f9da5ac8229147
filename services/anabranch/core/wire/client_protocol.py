"""What a server's connection must know of an engine's messages, to serve its clients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from anabranch.core.errors import AnabranchError
from anabranch.core.limits import Limits
from anabranch.core.wire.codec import Codec


class ReplySize(NamedTuple):
    """What the reply to a request counts as, before it is there."""

    own: int
    """Among the replies to its connection."""
    shared: int
    """Among those to all connections of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProtocol:
    """One engine's. Messages are the engine's own structs, of the types that are named here."""

    name: str
    codec: Codec[Any, Any]

    hello: type
    """The first request of a connection; it has a `token`."""

    append: type
    """A request with a `batch`. Those that arrive together reach the machine together."""

    announced: type | None = None
    """A request that announces a batch which other nodes of the log get, by its `id`, `count` and
    `size`; None: there is none.
    """

    subscribe: type
    """A request that is answered with a stream, for as many bytes as it has credit for."""

    delivered: type
    """A reply to a subscription with `batches`, which use up its credit."""

    pushed: frozenset[type]
    """Replies after which more will come."""

    commands: frozenset[type]
    """Requests that change something other than by appending. Each client may make so many in a
    time, and where clients have names it is logged who made them.
    """

    reply_size: Callable[[Any, Limits], ReplySize | None]
    """For a request that changes nothing and may wait until there is room for its reply, and that
    a stopping server needn't finish. None for any other request.
    """

    repeated: Mapping[type, type]
    """By type, questions that everybody gets the same reply to until something has changed, and the
    type of that reply. It is encoded once, and each is counted as as large as the last one was, but
    not as less than `reply_size` says.
    """

    window: Callable[[Any], int]
    """The bytes that a subscription wants to have coming."""

    with_window: Callable[[Any, int], Any]
    """The same subscription with another window."""

    node: Callable[[Any], str]
    """The machine that a hello asks for; empty where a process has only one of this engine."""

    trace: Callable[[Any], str]
    """The caller's span, as W3C's traceparent, from its hello; empty if it has none."""

    objection: Callable[[Any, Any], AnabranchError | None]
    """Why a server that says this welcome can't serve a client that says this hello."""
