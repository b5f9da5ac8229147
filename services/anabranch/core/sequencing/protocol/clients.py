"""The `ClientProtocol` of sequencing replicas."""

from typing import Final

from anabranch.core.limits import KIB, Limits
from anabranch.core.sequencing.protocol.codec import CODEC
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    Directory,
    Hello,
    Inspect,
    Locate,
    LogSurvey,
    SequencingStatus,
    Survey,
    Trim,
)
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize
from anabranch.core.wire.node_clients import Unstreamed, no_stream, node_of, objection

_SMALL = ReplySize(0, 0)
_SURVEY = ReplySize(256 * KIB, 256 * KIB)
"""What a Directory or a status counts as at least: both grow with the number of shards."""
_COMMANDS: Final = frozenset({Trim})


def reply_size(message: object, limits: Limits) -> ReplySize | None:
    match message:
        case Append() | AppendMeta() | Trim():
            return None
        case Locate() | Inspect() | Survey():
            return _SURVEY
        case _:
            return _SMALL


SEQUENCING: Final = ClientProtocol(
    name="sequencing",
    codec=CODEC,
    hello=Hello,
    append=Append,
    announced=AppendMeta,
    subscribe=Unstreamed,
    delivered=Unstreamed,
    pushed=frozenset(),
    commands=_COMMANDS,
    reply_size=reply_size,
    repeated={Locate: Directory, Inspect: SequencingStatus, Survey: LogSurvey},
    window=no_stream,
    with_window=no_stream,
    node=node_of,
    trace=lambda _: "",
    objection=objection,
)
