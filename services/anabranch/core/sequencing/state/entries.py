"""What the journal of a sequencing replica holds.

The structs are arrays in the journal: a release may only add fields at the end, with a default.
"""

import msgspec

from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.sequencing.state.state import StateImage
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Position


class Born(msgspec.Struct, frozen=True, array_like=True, tag="born", gc=False):
    """The first entry of a journal: tells it from a journal that was here before and was lost."""

    life: int


class Added(msgspec.Struct, frozen=True, array_like=True, tag="add", gc=False):
    """An append was taken into the ring."""

    entry: Entry
    lowest: int


class Ordered(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="order", gc=False):
    """Appends are ordered and leave the ring."""

    first: Position
    upto: Position
    ids: list[AppendId]
    positions: list[Position]
    forgotten: list[AppendId] = []
    stable: Position = 0
    """At the leader: all members have dropped what lies below."""
    shards: list[str] = []
    """Of each id, if it is a request whose data a shard has, that shard. Empty if none is."""


class Voided(msgspec.Struct, frozen=True, array_like=True, tag="void", gc=False):
    """Appends that no other member has leave the ring, and are never ordered."""

    ids: list[AppendId]


class SealedBy(msgspec.Struct, frozen=True, array_like=True, tag="seal", gc=False):
    """Nothing of the view is taken any more."""

    ballot: Ballot


class StatePart(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="part", gc=False):
    """One part of the state that the next view may begin with, encoded. The last one counts."""

    ballot: Ballot
    part: int
    parts: int
    content: bytes


class Started(msgspec.Struct, frozen=True, array_like=True, tag="start", gc=False):
    """The prepared state is the replica's, and it takes appends of this view."""

    view: View


class Began(msgspec.Struct, frozen=True, array_like=True, tag="begin", gc=False):
    """The leader begins to order, so many times in its view by now."""

    begun: int


class MemberImage(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A snapshot: all that the journal says up to here."""

    life: int
    view: View | None
    sealed: Ballot | None
    begun: int
    state: StateImage
    prepared: Ballot | None
    next_state: StateImage | None
    unstable: list[Ordered]


MemberEntry = Born | Added | Ordered | Voided | SealedBy | StatePart | Started | Began

encode = msgspec.msgpack.Encoder().encode
_entries: "msgspec.msgpack.Decoder[MemberEntry]" = msgspec.msgpack.Decoder(MemberEntry)
_images = msgspec.msgpack.Decoder(MemberImage)


def decode_entry(entry: bytes) -> MemberEntry:
    return _entries.decode(entry)


def decode_image(image: bytes) -> MemberImage:
    return _images.decode(image)
