"""Extents that a broker has at hand: what it wrote lately, and what it fetched.

Everything in here has been checked, on its way in from a producer or from the store, so that a
record at the tail is read without a GET and without summing it again.
"""

from collections import OrderedDict
from collections.abc import Sequence

from anabranch.core.bolt.queries import Slice
from anabranch.core.machine import Buffer
from anabranch.core.types import ObjectId

ENTRY_BYTES = 768
BATCH_BYTES = 240
"""What an extent and each of its batches cost beside their bytes, roughly; many small ones must not
outgrow the limit.
"""


class Extent:
    """Whole batches of one log that follow each other in one object."""

    __slots__ = ("batches", "bytes", "upto")

    def __init__(self, batches: Sequence[Buffer], upto: Sequence[int], size: int) -> None:
        self.batches = batches
        self.upto = upto
        """Records up to and including each batch."""
        self.bytes = size


ExtentKey = tuple[ObjectId, int, int]
"""Object, offset and length: extents are never cut differently while they live in one object."""


def key_of(piece: Slice) -> ExtentKey:
    return (piece.object, piece.offset, piece.length)


class ExtentCache:
    """Least recently used out first, by bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._extents: OrderedDict[ExtentKey, Extent] = OrderedDict()
        self.bytes = 0

    def get(self, key: ExtentKey, *, passing: bool = False) -> Extent | None:
        """`passing`: without a claim to have it kept for longer."""
        extent = self._extents.get(key)
        if extent is not None and not passing:
            self._extents.move_to_end(key)
        return extent

    def put(self, key: ExtentKey, extent: Extent) -> None:
        if key in self._extents:
            return
        self._extents[key] = extent
        self.bytes += _weight(extent)
        while self.bytes > self._bytes_max:
            _, oldest = self._extents.popitem(last=False)
            self.bytes -= _weight(oldest)


def _weight(extent: Extent) -> int:
    return extent.bytes + ENTRY_BYTES + BATCH_BYTES * len(extent.batches)
