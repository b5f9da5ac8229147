"""The `ClientProtocol` of Erwin's shards."""

from typing import Final

from msgspec.structs import replace

from anabranch.core.errors import AnabranchError, VersionMismatch, WrongCluster
from anabranch.core.erwin.protocol.codec import CODEC
from anabranch.core.erwin.protocol.messages import (
    Data,
    Delivered,
    Hello,
    Read,
    Subscribe,
    Welcome,
)
from anabranch.core.limits import KIB, Limits
from anabranch.core.sequencing.messages import Directory, Locate
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize

_SMALL = ReplySize(0, 0)
_SURVEY = ReplySize(256 * KIB, 256 * KIB)
"""What a Directory counts as at least: it grows with the number of shards."""
_WAITING_BYTES = 64 * KIB
"""What a read that may wait for its position counts as among all: most of them get few records."""


def reply_size(message: object, limits: Limits) -> ReplySize | None:
    match message:
        case Read(bytes_max=bytes_max, wait_ms=wait_ms):
            own = max(0, min(bytes_max, limits.read_bytes_max))
            return ReplySize(own, min(own, _WAITING_BYTES) if wait_ms > 0 else own)
        case Data():
            return None
        case Locate():
            return _SURVEY
        case _:
            return _SMALL


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


ERWIN: Final = ClientProtocol(
    name="erwin",
    codec=CODEC,
    hello=Hello,
    append=Data,
    subscribe=Subscribe,
    delivered=Delivered,
    pushed=frozenset({Delivered}),
    commands=frozenset(),
    reply_size=reply_size,
    repeated={Locate: Directory},
    window=_window,
    with_window=_with_window,
    node=_node,
    trace=lambda _: "",
    objection=_objection,
)
