"""The `ClientProtocol` of Erwin's shards."""

from typing import Final

from anabranch.core.erwin.protocol.codec import CODEC
from anabranch.core.erwin.protocol.messages import (
    Data,
    Delivered,
    Hello,
    Read,
    Subscribe,
)
from anabranch.core.limits import KIB, Limits
from anabranch.core.sequencing.protocol.messages import Directory, Locate
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize
from anabranch.core.wire.node_clients import node_of, objection, window_of, with_window

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
    window=window_of,
    with_window=with_window,
    node=node_of,
    trace=lambda _: "",
    objection=objection,
)
