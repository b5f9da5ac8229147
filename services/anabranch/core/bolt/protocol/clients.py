"""Bolt's `ClientProtocol`."""

from typing import Final

from msgspec.structs import replace

from anabranch.core.bolt.protocol.codec import CODEC
from anabranch.core.bolt.protocol.compactors import (
    SIGNED_COPIES_MAX,
    RegisterCompactor,
    SignCopies,
    TakeCopies,
)
from anabranch.core.bolt.protocol.messages import (
    Append,
    Compare,
    Confirmed,
    Delivered,
    Failed,
    Guarded,
    Hello,
    ListLogs,
    Once,
    Read,
    ReadCursors,
    Redeem,
    Subscribe,
    Welcome,
)
from anabranch.core.bolt.protocol.scans import (
    PAGE_SLICES_MAX,
    SIGNED_SLICES_MAX,
    EraseGarbage,
    PlanScan,
    ReadPlan,
    SignScan,
)
from anabranch.core.bolt.protocol.set_sums import ReadSetSum
from anabranch.core.errors import AnabranchError, VersionMismatch
from anabranch.core.limits import KIB, MIB, Limits
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize

_LISTING_BYTES = 256 * KIB
"""What the reply to a listing is counted as."""
_WAITING_BYTES = 64 * KIB
"""What a read that may wait for records counts as among all: most of them get few."""

_SLICE_BYTES = 48
_URL_BYTES = 1_024
"""What a slice of a plan, and the URL of one, count as."""

_TAKEN_BYTES = 2 * MIB
"""What an answer that names copies to make counts as."""

_Bulky = ReadSetSum | ReadPlan | SignScan | TakeCopies | SignCopies
Question = Read | Subscribe | Redeem | ListLogs | Compare | ReadCursors | _Bulky
"""Changes nothing, may take long and may be answered at length."""

Pushed = Delivered | Confirmed | Failed
"""What a subscription is told, until it ends."""


def reply_size(message: object, limits: Limits) -> ReplySize | None:
    match message:
        case Read(bytes_max=bytes_max, wait_ms=wait_ms):
            own = max(0, min(bytes_max, limits.read_bytes_max))
            return ReplySize(own, min(own, _WAITING_BYTES) if wait_ms > 0 else own)
        case ListLogs() | Compare() | ReadCursors() | ReadSetSum():
            return ReplySize(_LISTING_BYTES, _LISTING_BYTES)
        case ReadPlan(slices_max=slices_max):
            own = _SLICE_BYTES * max(1, min(slices_max, PAGE_SLICES_MAX))
            return ReplySize(own, own)
        case SignScan(slices=slices):
            own = _URL_BYTES * min(len(slices), SIGNED_SLICES_MAX)
            return ReplySize(own, own)
        case TakeCopies():
            return ReplySize(_TAKEN_BYTES, _TAKEN_BYTES)
        case SignCopies(copies=copies):
            own = _URL_BYTES * min(len(copies), SIGNED_COPIES_MAX)
            return ReplySize(own, own)
        case Subscribe() | Redeem():
            return ReplySize(0, 0)
        case _:
            return None


def _window(message: Subscribe) -> int:
    return message.credit_bytes


def _with_window(message: Subscribe, window: int) -> Subscribe:
    return replace(message, credit_bytes=window)


def _trace(hello: Hello) -> str:
    return hello.traceparent


def _objection(hello: Hello, welcome: Welcome) -> AnabranchError | None:
    if hello.version != welcome.version:
        return VersionMismatch(hello.version, welcome.version)
    return None


BOLT: Final = ClientProtocol(
    name="bolt",
    codec=CODEC,
    hello=Hello,
    append=Append,
    subscribe=Subscribe,
    delivered=Delivered,
    pushed=frozenset(Pushed.__args__),
    commands=frozenset({*Once.__args__, Guarded, PlanScan, EraseGarbage, RegisterCompactor}),
    reply_size=reply_size,
    repeated={},
    window=_window,
    with_window=_with_window,
    node=lambda _: "",
    trace=_trace,
    objection=_objection,
)
