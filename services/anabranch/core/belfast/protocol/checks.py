"""What a request may say, whoever wrote it: checked by a node before it does anything with it."""

from anabranch.core.belfast.protocol.messages import (
    Append,
    Hello,
    Inspect,
    Join,
    Leave,
    Locate,
    Subscribe,
    ToServer,
    Trim,
    Where,
)
from anabranch.core.errors import BadRequest
from anabranch.core.wire.numbers import check_position, check_shard
from anabranch.core.wire.session import Cancel, Credit

MODULUS_END = 1 << 32
"""A CRC32C is smaller."""


def check(message: ToServer) -> None:
    """Raises BadRequest, which names the part."""
    match message:
        case Subscribe(shard, start, where):
            check_shard(shard)
            check_position("a subscription's start", start)
            if where is not None:
                check_where(where)
        case Trim(position):
            check_position("a trim's position", position)
        case Leave(shard) | Join(shard):
            check_shard(shard)
        case Hello() | Append() | Credit() | Cancel() | Locate() | Inspect():
            """Their types bound them, or the node that acts on them does."""


def check_where(where: Where) -> None:
    for part in ("key_modulus", "key_remainder"):
        value: int = getattr(where, part)
        if not 0 <= value < MODULUS_END:
            raise BadRequest(f"a Where's {part}", f"{value} isn't from 0 up to {MODULUS_END - 1}")
