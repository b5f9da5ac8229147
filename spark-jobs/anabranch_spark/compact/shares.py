"""What a task of a compaction is told, and what it answers: both travel as bytes."""

from collections.abc import Iterator, Sequence

import msgspec

from anabranch import Plan
from anabranch.client.bolt.compactors import CopyOrder
from anabranch.core.bolt.protocol.compactors import Compactor

SHARE_BYTES = 64 << 20
"""What one task copies at most, unless it is one object."""
SHARE_EXTENTS = 8_192
"""Extents of it, about: each may cost a GET."""
SHARES_MIN = 8
"""Tasks of a wave at least, so that every core has something to do."""


class Numbered(msgspec.Struct, frozen=True, array_like=True):
    """A copy to make, and the number of the object that it becomes."""

    sequence: int
    order: CopyOrder


class Share(msgspec.Struct, frozen=True, array_like=True):
    """One task."""

    service: str
    cluster: str
    compactor: Compactor
    plan: Plan
    orders: list[Numbered]


class Written(msgspec.Struct, frozen=True, array_like=True):
    """An object that a task has written."""

    sequence: int
    size: int


class Unmade(msgspec.Struct, frozen=True, array_like=True):
    """A copy that a task didn't make."""

    sequence: int
    position: int
    reason: str
    damaged: bool
    """The extents aren't what was committed; otherwise something was away."""


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What became of a share."""

    written: list[Written]
    unmade: list[Unmade]


def share_out(
    orders: Sequence[Numbered],
    *,
    bytes_max: int = SHARE_BYTES,
    extents_max: int = SHARE_EXTENTS,
    shares_min: int = SHARES_MIN,
) -> Iterator[list[Numbered]]:
    """Cut a wave into tasks of at most so many bytes and extents, or one object each."""
    total = sum(each.order.size for each in orders)
    goal = min(bytes_max, max(1, -(-total // shares_min)))
    share: list[Numbered] = []
    size = extents = 0
    for each in orders:
        mine, named = each.order.size, len(each.order.extents)
        if share and (size + mine > goal or extents + named > extents_max):
            yield share
            share, size, extents = [], 0, 0
        share.append(each)
        size += mine
        extents += named
    if share:
        yield share


_encoder = msgspec.msgpack.Encoder()
_shares = msgspec.msgpack.Decoder(Share)
_answers = msgspec.msgpack.Decoder(Answer)


def packed(message: Share | Answer) -> bytes:
    return _encoder.encode(message)


def unpacked_share(content: bytes) -> Share:
    return _shares.decode(content)


def unpacked_answer(content: bytes) -> Answer:
    return _answers.decode(content)
