"""What a request asked for, in eight bytes: they tell its repetition from another request that uses
the same id.
"""

from hashlib import blake2b

from anabranch.core.errors import BadRequest
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import Header
from anabranch.core.records.record import GIVEN_TIMES_BITS, decode_verified

UNKNOWN = 0
"""What requests of versions without digests have; it matches every other digest."""

REQUEST_BYTES_MAX = 64
"""A request id is sixteen random bytes; longer ones would only fill the memory of requests."""
DIGEST_BYTES = 8
_TIMES = (1 << GIVEN_TIMES_BITS) - 1
"""The bits of a digest of records that are a hash of the times that were given. All are 0 where a
client of an earlier version sent them."""
_IDENTITY_BYTES = 16
"""Of the id of a request that changes a log; a digest may stand behind it."""


def digest_of(content: bytes) -> int:
    """Never `UNKNOWN`."""
    return int.from_bytes(blake2b(content, digest_size=DIGEST_BYTES).digest()) or 1


def digest_of_records(batch: Buffer, header: Header) -> int:
    """Of the values, keys, headers and given times of a batch that was checked, in order.

    Compression doesn't count, nor do times that nobody gave: a record without a time of its own
    gets the time at which it is sent, and so another one when it is sent again. Which times were
    given is known to the client alone, whose hash of them ends the digest.
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
    given = header.leader_epoch
    times = given if 0 < given <= _TIMES else 0
    return (int.from_bytes(hashed.digest()) & ~_TIMES | times) or 1


def named_request(identity: bytes, content: bytes) -> bytes:
    """The id of a request that a caller may repeat, and a digest of what it asks."""
    assert len(identity) == _IDENTITY_BYTES
    return identity + digest_of(content).to_bytes(DIGEST_BYTES)


def check_request(request: bytes) -> None:
    """Raises BadRequest if this can't be the id of a request, with a digest or without."""
    if not 0 < len(request) <= REQUEST_BYTES_MAX:
        what = f"a request id of {len(request)} bytes"
        reason = f"1 to {REQUEST_BYTES_MAX} bytes, by which a repetition is known, were expected"
        raise BadRequest(what, reason)


def split_request(request: bytes) -> tuple[bytes, int]:
    """The id of a request, and the digest behind it, if there is one."""
    if len(request) != _IDENTITY_BYTES + DIGEST_BYTES:
        return request, UNKNOWN
    return request[:_IDENTITY_BYTES], int.from_bytes(request[_IDENTITY_BYTES:])


def matches(one: int, other: int) -> bool:
    """Can both be digests of the same request?"""
    if one == other or UNKNOWN in (one, other):
        return True
    return one & ~_TIMES == other & ~_TIMES and 0 in (one & _TIMES, other & _TIMES)


def _length(content: bytes | None) -> int:
    """Null and empty differ."""
    return -1 if content is None else len(content)
