"""What a shard's local log consists of, and what a replica's journal holds of it."""

import msgspec

from anabranch.core.replication.terms import Reign
from anabranch.core.types import LocalSequence


class Item(msgspec.Struct, frozen=True, array_like=True, tag="item", gc=False):
    """What is logged, sent and journaled as one: a record batch, or so many no-ops."""

    first: LocalSequence
    count: int
    batch: bytes
    """Empty: no-ops."""

    @property
    def end(self) -> LocalSequence:
        return self.first + self.count


class CutBack(msgspec.Struct, frozen=True, array_like=True, tag="cut", gc=False):
    """The log ends here, and the reigns after this one are void."""

    to: LocalSequence
    reign: int


class Skipped(msgspec.Struct, frozen=True, array_like=True, tag="skip", gc=False):
    """The log begins anew here, empty."""

    to: LocalSequence


class SealedBelow(msgspec.Struct, frozen=True, array_like=True, tag="seal", gc=False):
    """Nothing is taken of an epoch below this one."""

    epoch: int


class Born(msgspec.Struct, frozen=True, array_like=True, tag="born", gc=False):
    """The first entry: what tells this journal from one that was here before, and was lost."""

    disk: int


class Note(msgspec.Struct, frozen=True, array_like=True, tag="note", gc=False):
    """The owner's; it means nothing here."""

    note: bytes


class LogImage(msgspec.Struct, frozen=True, array_like=True):
    """A replica's state after entry `held` of its journal, without the items themselves: those
    that are kept stand in the journal, from the entry on that follows the snapshot's index.
    """

    held: int
    first: LocalSequence
    last: LocalSequence
    reigns: tuple[Reign, ...]
    highest: int
    sealed: int
    disk: int
    owner: bytes


Entry = Item | Reign | CutBack | Skipped | SealedBelow | Born | Note

encode = msgspec.msgpack.Encoder().encode
_entries: "msgspec.msgpack.Decoder[Entry]" = msgspec.msgpack.Decoder(Entry)
_images = msgspec.msgpack.Decoder(LogImage)


def decode_entry(entry: bytes) -> Entry:
    return _entries.decode(entry)


def decode_image(image: bytes) -> LogImage:
    return _images.decode(image)
