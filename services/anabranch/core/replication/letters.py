"""The letters between the replicas of one log. A letter may be lost, repeated or late.

A primary sends nothing in a term before the term is in its own journal. The structs are arrays on
the wire: a release may only add fields at the end, with a default.
"""

import msgspec

from anabranch.core.replication.entries import Item
from anabranch.core.replication.terms import Term
from anabranch.core.types import LocalSequence


class ReplicaLetterBase(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Common fields. A replica in another epoch ignores the letter."""

    group: str
    epoch: int


class Joining(ReplicaLetterBase, frozen=True, kw_only=True, tag="joining"):
    """A replica describes its log to its primary, and asks which part both have and what to add."""

    last: LocalSequence
    terms: tuple[Term, ...]


class Match(ReplicaLetterBase, frozen=True, tag="match"):
    """The primary's answer: the two logs are the same up to `shared`, a place of the term `common`;
    the replica cuts off the rest. The answer holds only for a log that ends at `last` with
    `last_term`, as the replica described it.
    """

    term: int
    last: LocalSequence
    last_term: int
    common: int
    shared: LocalSequence
    first: LocalSequence
    """What lies below is trimmed: a shorter log goes on at this place."""
    terms: tuple[Term, ...]
    """The primary's terms after `common`."""


class Copy(ReplicaLetterBase, frozen=True, tag="copy"):
    """The primary's items from `first` on. Without items, it only asks for an answer."""

    term: int
    first: LocalSequence
    durable: LocalSequence
    items: list[Item]


class Stored(ReplicaLetterBase, frozen=True, tag="stored"):
    """A replica to its primary: my log is a part of yours, and my journal holds it up to `upto`."""

    term: int
    upto: LocalSequence
    adopted: int
    """The last term in the replica's journal. The replica counts towards the quorum only if that
    is the primary's own.
    """


ReplicaLetter = Joining | Match | Copy | Stored
