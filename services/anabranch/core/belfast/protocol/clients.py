"""Belfast's `ClientProtocol`."""

from typing import Final

from msgspec.structs import replace

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
    Welcome,
)
from anabranch.core.errors import AnabranchError, VersionMismatch, WrongCluster
from anabranch.core.limits import KIB, Limits
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize

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


def _window(message: Subscribe) -> int:
    return message.window_bytes


def _with_window(message: Subscribe, window: int) -> Subscribe:
    return replace(message, window_bytes=window)


def _node(hello: Hello) -> str:
    return hello.node


def _objection(hello: Hello, welcome: Welcome) -> AnabranchError | None:
    if hello.version != welcome.version:
        return VersionMismatch(hello.version, welcome.version)
    if hello.cluster != welcome.cluster:
        return WrongCluster(f"node {welcome.node}", welcome.cluster, hello.cluster)
    return None


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
    window=_window,
    with_window=_with_window,
    node=_node,
    trace=lambda _: "",
    objection=_objection,
)
