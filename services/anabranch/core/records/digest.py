"""What a request asked for, in eight bytes: they tell its repetition from another request that uses
the same id.
"""

from collections.abc import Iterator
from hashlib import blake2b

from anabranch.core.machine import Buffer
from anabranch.core.records.batch import Header
from anabranch.core.records.record import Record, decode_verified

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
        hashed.update(b"".join(_parts(record)))
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


def _parts(record: Record) -> Iterator[bytes]:
    """Each behind its length, so that no two records look alike."""
    yield b"%d;" % len(record.headers)
    contents = [record.value, record.key]
    for name, content in record.headers:
        contents += [name.encode(), content]
    for content in contents:
        if content is None:
            yield b"-;"
        else:
            yield b"%d;" % len(content)
            yield content
