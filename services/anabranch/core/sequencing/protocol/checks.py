"""What a request to a sequencing replica may say, whoever wrote it: checked by a replica before it
does anything with it.
"""

from anabranch.core.errors import BadRequest
from anabranch.core.producers import REQUEST_EPOCH, SEQUENCE_SPACE
from anabranch.core.records.digest import DIGEST_BYTES
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    FindPosition,
    Hello,
    Inspect,
    Locate,
    SetShardOpen,
    Survey,
    ToSequencer,
    Trim,
)
from anabranch.core.types import NEVER
from anabranch.core.wire.numbers import check_position, check_shard
from anabranch.core.wire.session import Cancel

_PRODUCER_END = 1 << 63


def check(message: ToSequencer) -> None:
    """Raises BadRequest, which names the part."""
    match message:
        case Append(view=view, lowest=lowest):
            _check("an append's view", view, NEVER)
            _check("an append's lowest sequence", lowest, SEQUENCE_SPACE)
        case AppendMeta():
            _check_meta(message)
        case FindPosition(id):
            _check_id(id)
        case AskTail(view):
            _check("a question's view", view, NEVER)
        case Trim(position):
            check_position("a trim's position", position)
        case SetShardOpen(shard=shard):
            check_shard(shard)
        case Hello() | Locate() | Inspect() | Survey() | Cancel():
            """Their types bound them."""


def _check_meta(message: AppendMeta) -> None:
    _check("an append's view", message.view, NEVER)
    _check("an append's lowest sequence", message.lowest, SEQUENCE_SPACE)
    _check_id(message.id)
    for what, amount in (("count", message.count), ("size", message.size)):
        if not 0 < amount < SEQUENCE_SPACE:
            reason = f"{amount} isn't from 1 up to {SEQUENCE_SPACE - 1}"
            raise BadRequest(f"an append's {what}", reason)
    check_shard(message.shard)
    if len(message.digest) not in (0, DIGEST_BYTES):
        reason = f"it has {len(message.digest)} bytes: it must have {DIGEST_BYTES}, or none"
        raise BadRequest("an append's digest", reason)


def _check_id(id: AppendId) -> None:
    _check("an append's producer", id.producer, _PRODUCER_END)
    _check("an append's epoch", id.epoch, REQUEST_EPOCH + 1)
    _check("an append's sequence", id.sequence, SEQUENCE_SPACE)


def _check(what: str, number: int, end: int) -> None:
    if not 0 <= number < end:
        raise BadRequest(what, f"{number} isn't from 0 up to {end - 1}")
