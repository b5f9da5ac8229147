"""What a replica journals beside the local log: where decisions have put its shard's records.

The ledger itself isn't kept: whoever starts anew gets it from the group, entry by entry or whole.
What entries up to `index` meant for the shard's positions is known by then, and not done twice.
"""

import msgspec

from anabranch.core.belfast.ledger.placements import Row
from anabranch.core.belfast.shard.duplicates import Known
from anabranch.core.belfast.shard.record_counts import Counted
from anabranch.core.types import LocalSequence


class Note(msgspec.Struct, frozen=True, array_like=True, tag="note"):
    """What one entry of the group's, or an image of its ledger, meant."""

    index: int
    view: int
    """The last that is taken account of."""
    settled: LocalSequence
    """Cuts had come to here."""
    cut: LocalSequence
    """Positions from here on are void; -1: none are. The rows come after that."""
    rows: list[Row]
    foretold: int = 0
    voided: int = 0


class Taught(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="taught"):
    """Rows from another replica, of what lies below `upto`."""

    floor: LocalSequence
    upto: LocalSequence
    rows: list[Row]


class ShardImage(msgspec.Struct, frozen=True, array_like=True):
    """All that notes and items up to a trim have led to."""

    index: int
    view: int
    floor: LocalSequence
    rows: list[Row]
    counted: Counted
    producers: list[Known]
    partial: bool
    settled: LocalSequence = 0
    foretold: int = 0
    voided: int = 0


encode = msgspec.msgpack.Encoder().encode
decode_note: "msgspec.msgpack.Decoder[Note | Taught]" = msgspec.msgpack.Decoder(Note | Taught)
decode_image: "msgspec.msgpack.Decoder[ShardImage]" = msgspec.msgpack.Decoder(ShardImage)
