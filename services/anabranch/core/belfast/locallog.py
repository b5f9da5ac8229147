"""A shard's local log as one replica holds it: where each item is, and the recent ones themselves."""

import msgspec

from anabranch.core.belfast.windows import LocalSequence


class Item(msgspec.Struct, frozen=True, array_like=True, tag="item", gc=False):
    """What is logged, sent and journaled as one: a record batch, or so many no-ops."""

    first: LocalSequence
    count: int
    batch: bytes
    """Empty: no-ops."""

    @property
    def end(self) -> LocalSequence:
        return self.first + self.count
