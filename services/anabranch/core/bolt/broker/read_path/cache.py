"""Extents that a broker has at hand: what it wrote lately, and what it fetched.

Everything in here has been checked, on its way in from a producer or from the store, so that a
record at the tail is read without a GET and without summing it again.
"""

from collections.abc import Sequence

from anabranch.core.bolt.protocol.queries import Slice
from anabranch.core.machine import Buffer
from anabranch.core.storage.s3fifo import Keeping
from anabranch.core.types import NEVER, ObjectId

ENTRY_BYTES = 1_024
BATCH_BYTES = 240
"""What an extent and each of its batches cost beside their bytes, roughly; many small ones must not
outgrow the limit.
"""


class Extent:
    """Whole batches of one log that follow each other in one object."""

    __slots__ = ("batches", "bytes", "holes", "reason", "upto")

    def __init__(self, batches: Sequence[Buffer], upto: Sequence[int], size: int) -> None:
        assert len(batches) == len(upto), "each batch has its count"
        self.batches = batches
        self.upto = upto
        """Records up to and including each batch."""
        self.bytes = size
        self.holes: Sequence[tuple[int, int]] = ()
        """Records that can't be read, from and without; an extent that has any is never cached."""
        self.reason = ""
        """What is wrong with the first of them."""

    @staticmethod
    def unreadable(reason: str) -> "Extent":
        """Nothing of it can be read."""
        extent = Extent((), (), 0)
        extent.holes, extent.reason = ((0, NEVER),), reason
        return extent


ExtentKey = tuple[ObjectId, int, int]
"""Object, offset and length: extents are never cut differently while they live in one object."""


def key_of(piece: Slice) -> ExtentKey:
    return (piece.object, piece.offset, piece.length)


class ExtentCache:
    """Bounded by bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._extents: Keeping[ExtentKey, Extent] = Keeping(bytes_max)

    @property
    def bytes(self) -> int:
        return self._extents.bytes

    def __len__(self) -> int:
        return len(self._extents)

    def __contains__(self, key: ExtentKey) -> bool:
        return key in self._extents

    def get(self, key: ExtentKey, skip: int = 0, *, passing: bool = False) -> Extent | None:
        """To be read from its record `skip` on; `passing`: nobody will come back for it."""
        return self._extents.get(key, skip, passing=passing)

    def put(self, key: ExtentKey, extent: Extent, *, fresh: bool = False) -> None:
        """`fresh`: it was just written, and readers of the tail will come for it."""
        assert not extent.holes, "what is damaged is never cached"
        if key not in self._extents:
            weight = extent.bytes + ENTRY_BYTES + BATCH_BYTES * len(extent.batches)
            self._extents.put(key, extent, weight, fresh=fresh)
