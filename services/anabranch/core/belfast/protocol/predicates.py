"""Which records of a batch a subscriber wants."""

from anabranch.core.belfast.protocol.messages import Where
from anabranch.core.errors import BatchTooLarge, TooManyHeaders
from anabranch.core.records.batch import peek
from anabranch.core.records.checksum import crc32c
from anabranch.core.records.record import Record, decode_verified

Part = tuple[int, int]
"""So many leading records aren't meant, and so many after those are."""


def passes(record: Record, where: Where) -> bool:
    key = record.key or b""
    if where.key_prefix is not None and (
        record.key is None or not key.startswith(where.key_prefix)
    ):
        return False
    if where.key_modulus > 0 and crc32c(key) % where.key_modulus != where.key_remainder:
        return False
    if where.header is None:
        return True
    return any(
        name == where.header and (where.header_value is None or value == where.header_value)
        for name, value in record.headers
    )


def wanted(batch: bytes, skip: int, count: int, where: Where | None) -> list[Part]:
    """Of `count` records behind the first `skip`, those that pass, in parts that are in a row."""
    if where is None:
        return [(skip, count)]
    try:
        records = decode_verified(batch, peek(batch), "a logged batch")
    except (BatchTooLarge, TooManyHeaders):
        # Taken before there was such a limit. The subscriber finds the same, and names the place.
        return [(skip, count)]
    parts: list[Part] = []
    for nth in range(skip, skip + count):
        if not passes(records[nth], where):
            continue
        if parts and sum(parts[-1]) == nth:
            parts[-1] = (parts[-1][0], parts[-1][1] + 1)
        else:
            parts.append((nth, 1))
    return parts
