"""The `ClientProtocol` of sequencing replicas."""

from typing import Any, Final, NoReturn

from anabranch.core.errors import AnabranchError, VersionMismatch, WrongCluster
from anabranch.core.limits import KIB, Limits
from anabranch.core.sequencing.codec import CODEC
from anabranch.core.sequencing.messages import (
    Append,
    AppendMeta,
    Directory,
    Hello,
    Inspect,
    Locate,
    SequencingStatus,
    Trim,
    Welcome,
)
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize

_SMALL = ReplySize(0, 0)
_SURVEY = ReplySize(256 * KIB, 256 * KIB)
"""What a Directory or a status counts as at least: both grow with the number of shards."""
_COMMANDS: Final = frozenset({Trim})


class Unstreamed:
    """Stands for the types of streams, which sequencing replicas have none of."""


def reply_size(message: object, limits: Limits) -> ReplySize | None:
    match message:
        case Append() | AppendMeta() | Trim():
            return None
        case Locate() | Inspect():
            return _SURVEY
        case _:
            return _SMALL


def _no_stream(*_: Any) -> NoReturn:
    raise AssertionError("sequencing replicas have no streams")


def _node(hello: Hello) -> str:
    return hello.node


def _objection(hello: Hello, welcome: Welcome) -> AnabranchError | None:
    if hello.version != welcome.version:
        return VersionMismatch(hello.version, welcome.version)
    if hello.cluster != welcome.cluster:
        return WrongCluster(f"node {welcome.node}", welcome.cluster, hello.cluster)
    return None


SEQUENCING: Final = ClientProtocol(
    name="sequencing",
    codec=CODEC,
    hello=Hello,
    append=Append,
    subscribe=Unstreamed,
    delivered=Unstreamed,
    pushed=frozenset(),
    commands=_COMMANDS,
    reply_size=reply_size,
    repeated={Locate: Directory, Inspect: SequencingStatus},
    window=_no_stream,
    with_window=_no_stream,
    node=_node,
    trace=lambda _: "",
    objection=_objection,
)
