"""What a request asked for, in eight bytes: they tell its repetition from another request that uses
the same id.
"""

from hashlib import blake2b

from anabranch.core.machine import Buffer
from anabranch.core.records.batch import Header
from anabranch.core.records.record import decode_verified

UNKNOWN = 0
"""What requests of versions without digests have; it matches every other digest."""

DIGEST_BYTES = 8
_IDENTITY_BYTES = 16
"""Of the id of a request that changes a log; a digest may stand behind it."""


def digest_of(content: bytes) -> int:
    """Never `UNKNOWN`."""
    return int.from_bytes(blake2b(content, digest_size=DIGEST_BYTES).digest()) or 1


def digest_of_records(batch: Buffer, header: Header) -> int:
    """Of the values, keys and headers of a batch that was checked, in order.

    Times and compression don't count: a record without a time of its own gets the time at which it
    is sent, and so another one when it is sent again.
    """
    hashed = blake2b(digest_size=DIGEST_BYTES)
    for record in decode_verified(batch, header, "under a request id"):
        value, key, headers = record.value, record.key, record.headers
        # Lengths stand before what they measure, so that no two records look alike.
        hashed.update(b"%d %d %d;" % (_length(value), _length(key), len(headers)))
        hashed.update(value or b"")
        hashed.update(key or b"")
        for name, content in headers:
            named = name.encode()
            hashed.update(b"%d %d;" % (len(named), _length(content)))
            hashed.update(named)
            hashed.update(content or b"")
    return int.from_bytes(hashed.digest()) or 1


def named_request(identity: bytes, content: bytes) -> bytes:
    """The id of a request that a caller may repeat, and a digest of what it asks."""
    assert len(identity) == _IDENTITY_BYTES
    return identity + digest_of(content).to_bytes(DIGEST_BYTES)


def split_request(request: bytes) -> tuple[bytes, int]:
    """The id of a request, and the digest behind it, if there is one."""
    if len(request) != _IDENTITY_BYTES + DIGEST_BYTES:
        return request, UNKNOWN
    return request[:_IDENTITY_BYTES], int.from_bytes(request[_IDENTITY_BYTES:])


def matches(one: int, other: int) -> bool:
    """Can both be digests of the same request?"""
    return one == other or UNKNOWN in (one, other)


def _length(content: bytes | None) -> int:
    """Null and empty differ."""
    return -1 if content is None else len(content)
