"""What a task of an audit is told, and what it answers: both travel as bytes."""

from collections.abc import Iterator, Sequence

import msgspec

from anabranch import Plan
from anabranch_spark.audit.location import Weighed
from anabranch_spark.audit.portions import Portion
from anabranch_spark.audit.tally import Tally

SHARE_BYTES = 128 << 20
"""What one task reads at most, unless it is one extent."""
SHARES_MIN = 8
"""Tasks of a wave at least, so that every core has something to do."""
SHARE_BYTES_MIN = 1 << 20
"""Less than this isn't worth a task."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """What a task reads of one log."""

    log: int
    """The number of the log in the audit."""
    plan: Plan
    portions: list[Portion]


class Share(msgspec.Struct, frozen=True, array_like=True):
    """One task."""

    service: str
    cluster: str
    pieces: list[Piece]


class Found(msgspec.Struct, frozen=True, array_like=True):
    """What a task found in a piece."""

    log: int
    tally: Tally
    weighed: list[Weighed]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a task found in its share."""

    found: list[Found]


def share_out(
    pieces: Sequence[Piece],
    *,
    bytes_max: int = SHARE_BYTES,
    bytes_min: int = SHARE_BYTES_MIN,
    shares_min: int = SHARES_MIN,
) -> Iterator[list[Piece]]:
    """Cut a wave into tasks of at most `bytes_max` bytes or one portion each.

    Small logs share a task, and a large one is many tasks'.
    """
    total = sum(each.place.length for piece in pieces for each in piece.portions)
    goal = min(bytes_max, max(bytes_min, -(-total // shares_min)))
    share: list[Piece] = []
    size = 0
    for piece in pieces:
        mine: list[Portion] = []
        for each in piece.portions:
            if size and size + each.place.length > goal:
                yield [*share, *_piece(piece, mine)]
                share, mine, size = [], [], 0
            mine.append(each)
            size += each.place.length
        share += _piece(piece, mine)
    if share:
        yield share


def _piece(piece: Piece, portions: list[Portion]) -> Iterator[Piece]:
    if portions:
        yield Piece(piece.log, piece.plan, portions)


_encoder = msgspec.msgpack.Encoder()
_shares = msgspec.msgpack.Decoder(Share)
_answers = msgspec.msgpack.Decoder(Answer)


def packed(message: Share | Answer) -> bytes:
    return _encoder.encode(message)


def unpacked_share(content: bytes) -> Share:
    return _shares.decode(content)


def unpacked_answer(content: bytes) -> Answer:
    return _answers.decode(content)
