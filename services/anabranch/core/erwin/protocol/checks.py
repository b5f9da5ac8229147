"""What a request to a shard may say, whoever wrote it: checked by a replica before it does anything
with it.
"""

from anabranch.core.errors import BadRequest
from anabranch.core.erwin.protocol.messages import Data, Hello, Read, Subscribe, ToShard
from anabranch.core.producers import SEQUENCE_SPACE
from anabranch.core.sequencing.messages import Locate
from anabranch.core.wire.numbers import check_position, check_shard
from anabranch.core.wire.session import Cancel, Credit


def check(message: ToShard) -> None:
    """Raises BadRequest, which names the part."""
    match message:
        case Read(shard=shard, start=start, bytes_max=bytes_max, records_max=records_max):
            check_shard(shard)
            check_position("a read's start", start)
            _check_amount("a read's bytes_max", bytes_max)
            _check_amount("a read's records_max", records_max)
        case Subscribe(shard=shard, start=start):
            check_shard(shard)
            check_position("a subscription's start", start)
        case Data(lowest=lowest):
            if not 0 <= lowest < SEQUENCE_SPACE:
                reason = f"{lowest} isn't from 0 up to {SEQUENCE_SPACE - 1}"
                raise BadRequest("an append's lowest sequence", reason)
        case Hello() | Locate() | Credit() | Cancel():
            """Their types bound them."""


def _check_amount(what: str, amount: int) -> None:
    if amount < 1:
        raise BadRequest(what, f"it is {amount}: ask for 1 at least")
