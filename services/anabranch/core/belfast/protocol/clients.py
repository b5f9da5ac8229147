"""Belfast's `ClientProtocol`."""

from typing import Final

from anabranch.core.belfast.protocol.codec import CODEC
from anabranch.core.belfast.protocol.messages import (
    Append,
    Confirmed,
    Delivered,
    Directory,
    Eras,
    Failed,
    Hello,
    Inspect,
    Join,
    Leave,
    Locate,
    Status,
    Subscribe,
    Trim,
)
from anabranch.core.limits import KIB, Limits
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize
from anabranch.core.wire.node_clients import node_of, objection, window_of, with_window

_SMALL = ReplySize(0, 0)
_SURVEY = ReplySize(256 * KIB, 256 * KIB)
"""What a Directory or a Status counts as at least. Few are this large; but a node makes one of all
its log's shards, and this bounds how many it makes before it serves others.
"""
_COMMANDS: Final = frozenset({Trim, Leave, Join})


def reply_size(message: object, limits: Limits) -> ReplySize | None:
    if isinstance(message, Append) or type(message) in _COMMANDS:
        return None
    return _SURVEY if isinstance(message, Locate | Inspect) else _SMALL


BELFAST: Final = ClientProtocol(
    name="belfast",
    codec=CODEC,
    hello=Hello,
    append=Append,
    subscribe=Subscribe,
    delivered=Delivered,
    pushed=frozenset({Eras, Delivered, Confirmed, Failed}),
    commands=_COMMANDS,
    reply_size=reply_size,
    repeated={Locate: Directory, Inspect: Status},
    window=window_of,
    with_window=with_window,
    node=node_of,
    trace=lambda _: "",
    objection=objection,
)
