"""What a replicated log consists of, and what a replica's journal holds of it.

The structs are arrays in the journal: a release may only add fields at the end, with a default.
"""

import msgspec

from anabranch.core.replication.terms import Term
from anabranch.core.types import LocalSequence
from anabranch.core.wire.numbers import Bounded


class Item(msgspec.Struct, frozen=True, array_like=True, tag="item", gc=False):
    """The unit of logging, sending and journaling: a record batch, or a number of no-ops."""

    first: Bounded
    count: Bounded
    batch: bytes
    """Empty for no-ops."""

    @property
    def end(self) -> LocalSequence:
        return self.first + self.count


class CutBack(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="cut", gc=False):
    """The log now ends at `to`, and the terms after `term` are void."""

    to: LocalSequence
    term: int


class Skipped(msgspec.Struct, frozen=True, array_like=True, tag="skip", gc=False):
    """The log is emptied and goes on at this place."""

    to: LocalSequence


class SealedBelow(msgspec.Struct, frozen=True, array_like=True, tag="seal", gc=False):
    """The replica takes nothing from an epoch below this one."""

    epoch: int


class Born(msgspec.Struct, frozen=True, array_like=True, tag="born", gc=False):
    """The first entry of a journal: tells it from a journal that was here before and was lost."""

    disk: int


class Note(msgspec.Struct, frozen=True, array_like=True, tag="note", gc=False):
    """The owner's own entry, opaque to the replica."""

    note: bytes


class LogImage(msgspec.Struct, frozen=True, array_like=True):
    """A replica's state after entry `held` of its journal, without the items: those that are kept
    are in the journal, behind the snapshot's index.
    """

    held: int
    first: LocalSequence
    last: LocalSequence
    terms: tuple[Term, ...]
    highest: int
    sealed: int
    disk: int
    owner: bytes


JournalEntry = Item | Term | CutBack | Skipped | SealedBelow | Born | Note

encode = msgspec.msgpack.Encoder().encode
_entries: "msgspec.msgpack.Decoder[JournalEntry]" = msgspec.msgpack.Decoder(JournalEntry)
_images = msgspec.msgpack.Decoder(LogImage)


def decode_entry(entry: bytes) -> JournalEntry:
    return _entries.decode(entry)


def decode_image(image: bytes) -> LogImage:
    return _images.decode(image)
