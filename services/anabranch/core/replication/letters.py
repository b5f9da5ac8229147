"""The letters between the replicas of one log. A letter may be lost, repeated or late.

A primary sends nothing in a term before the term is in its own journal. The structs are arrays on
the wire: a release may only add fields at the end, with a default.
"""

from typing import Annotated

import msgspec

from anabranch.core.replication.entries import Item
from anabranch.core.replication.terms import Term
from anabranch.core.wire.numbers import Bounded

Epoch = Annotated[int, msgspec.Meta(ge=0, lt=1 << 30)]
"""Terms are made of it and of 32 bits more, and must stay below `NEVER`."""


class ReplicaLetterBase(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Common fields. A replica in another epoch ignores the letter."""

    group: str
    epoch: Epoch


class Joining(ReplicaLetterBase, frozen=True, kw_only=True, tag="joining"):
    """A replica describes its log to its primary, and asks which part both have and what to add."""

    last: Bounded
    terms: tuple[Term, ...]


class Match(ReplicaLetterBase, frozen=True, tag="match"):
    """The primary's answer: the two logs are the same up to `shared`, a place of the term `common`;
    the replica cuts off the rest. The answer holds only for a log that ends at `last` with
    `last_term`, as the replica described it.
    """

    term: Bounded
    last: Bounded
    last_term: Bounded
    common: Bounded
    shared: Bounded
    first: Bounded
    """What lies below is trimmed: a shorter log goes on at this place."""
    terms: tuple[Term, ...]
    """The primary's terms after `common`."""


class Copy(ReplicaLetterBase, frozen=True, tag="copy"):
    """The primary's items from `first` on. Without items, it only asks for an answer."""

    term: Bounded
    first: Bounded
    durable: Bounded
    items: list[Item]


class Stored(ReplicaLetterBase, frozen=True, tag="stored"):
    """A replica to its primary: my log is a part of yours, and my journal holds it up to `upto`."""

    term: Bounded
    upto: Bounded
    adopted: Bounded
    """The last term in the replica's journal. The replica counts towards the quorum only if that
    is the primary's own.
    """


ReplicaLetter = Joining | Match | Copy | Stored
