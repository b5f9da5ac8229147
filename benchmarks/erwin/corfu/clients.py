"""The `ClientProtocol` of Corfu's nodes, and the service of one of them."""

from typing import Final

from anabranch.core.limits import Limits
from anabranch.core.rights.claims import LOGS, Subject
from anabranch.core.rights.one_log import OneLogRights
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize
from anabranch.core.wire.node_clients import Unstreamed, no_stream, node_of, objection
from anabranch.core.wire.session import Cancel, Credit
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.service import Service
from benchmarks.erwin.corfu.codec import CODEC
from benchmarks.erwin.corfu.messages import CORFU_VERSION, Hello, Next, Read, Welcome, Write

_SMALL = ReplySize(0, 0)


def _reply_size(message: object, limits: Limits) -> ReplySize | None:
    match message:
        case Write() | Next():
            return None
        case Read():
            return ReplySize(limits.batch_bytes_max, limits.batch_bytes_max)
        case _:
            return _SMALL


CORFU: Final = ClientProtocol(
    name="corfu",
    codec=CODEC,
    hello=Hello,
    append=Write,
    subscribe=Unstreamed,
    delivered=Unstreamed,
    pushed=frozenset(),
    commands=frozenset(),
    reply_size=_reply_size,
    repeated={},
    window=no_stream,
    with_window=no_stream,
    node=node_of,
    trace=lambda _: "",
    objection=objection,
)


def corfu_service(host: Host, node: str, limits: Limits, cluster: str) -> Service:
    """Open to everybody: it is served on loopback, while a benchmark runs."""
    sizes = (limits.batch_bytes_max, limits.batch_records_max)
    kinds: tuple[type, ...] = (Hello, Next, Write, Read, Credit, Cancel)
    return Service(
        CORFU,
        host,
        node,
        welcome=Welcome(CORFU_VERSION, cluster, node, "", *sizes),
        authority=SharedToken(None),
        rights=OneLogRights(Subject(LOGS, cluster), dict.fromkeys(kinds, ())),
    )
