"""What the replicas of a shard write to each other. Letters may be lost, repeated or late.

A primary says nothing in a reign before the reign is in its own journal.
"""

import msgspec

from anabranch.core.replication.entries import Item
from anabranch.core.replication.terms import Reign
from anabranch.core.types import LocalSequence


class CopyBase(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The shard by name, and the epoch in which this is said; in another it is void."""

    shard: str
    epoch: int


class Joining(CopyBase, frozen=True, tag="joining"):
    """A replica to its primary: this is my log, what of it is yours, and what do I miss?"""

    last: LocalSequence
    reigns: tuple[Reign, ...]


class Match(CopyBase, frozen=True, tag="match"):
    """The primary's answer: your log is mine up to `shared`, which `common` began; cut the rest.

    It is meant for a log that ends at `last` with `last_reign`, as it was said to.
    """

    reign: int
    last: LocalSequence
    last_reign: int
    common: int
    shared: LocalSequence
    first: LocalSequence
    """What lies below is trimmed: a log that is shorter goes on from here."""
    reigns: tuple[Reign, ...]
    """The primary's after `common`."""


class Copy(CopyBase, frozen=True, tag="copy"):
    """The primary's items from `first` on; without any it asks for an answer."""

    reign: int
    first: LocalSequence
    durable: LocalSequence
    items: list[Item]


class Stored(CopyBase, frozen=True, tag="stored"):
    """A replica to its primary: my log is yours, and up to here it is in my journal."""

    reign: int
    upto: LocalSequence
    adopted: int
    """The last reign in its journal. Only in the primary's own it counts towards a majority."""


CopyLetter = Joining | Match | Copy | Stored
