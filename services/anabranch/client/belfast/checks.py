"""What programs pass to a client of Belfast alone, checked as in `client/session/arguments.py`."""

from typing import Any

from anabranch.client.session.arguments import number, octets, several, text
from anabranch.core.belfast.protocol.checks import MODULUS_END
from anabranch.core.belfast.protocol.messages import Where
from anabranch.core.errors import BadRequest
from anabranch.core.wire.numbers import check_shard


def shard_name(value: Any) -> str:
    check_shard(text("a shard's name", value))
    return value


def shard_names(values: Any) -> frozenset[str]:
    what = "a subscription's shards"
    found = frozenset(shard_name(each) for each in several(what, values, "['shard-0']"))
    if not found:
        raise BadRequest(what, "name at least one, or leave them out for all")
    return found


def check_filter(where: Any) -> None:
    """A Where, or a function of a record."""
    if not isinstance(where, Where):
        if not callable(where):
            raise BadRequest("a subscription's where", "it must be a Where or a function")
        return
    octets("a Where's key_prefix", where.key_prefix)
    octets("a Where's header_value", where.header_value)
    if where.header is not None:
        text("a Where's header", where.header)
    modulus = number("a Where's key_modulus", where.key_modulus, MODULUS_END)
    number("a Where's key_remainder", where.key_remainder, modulus or MODULUS_END)
