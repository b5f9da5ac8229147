"""What members of the sequencing group write to each other. Letters may be lost, repeated or late.

Each names the writer's term; who reads of a later one than its own goes over to it.
"""

import msgspec


class Letter(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base."""

    term: int


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Of the group's log, under the leader of this term."""

    term: int
    content: bytes


class AskVote(Letter, frozen=True, tag="ask-vote"):
    """I would lead in this term, and my log ends so. Who has more refuses."""

    last_term: int
    last: int
    probing: bool
    """Asked before the term is begun, so that a hopeless candidate disturbs nobody."""
    bidden: bool
    """The leader itself has asked for this: also who hears from it may vote."""


class Vote(Letter, frozen=True, tag="vote"):
    granted: bool
    probing: bool
    fresh: bool
    """The voter's disk was empty: what it has promised before may be lost."""


class Offer(Letter, frozen=True, tag="offer-entries"):
    """The leader's entries behind this one; without any, it is a sign of life."""

    previous: int
    previous_term: int
    entries: list[Entry]
    committed: int
    joined: bool
    """The reader holds all that counts: it isn't fresh any more."""


class Accepted(Letter, frozen=True, tag="accepted-entries"):
    """A follower's log equals the leader's."""

    durable: int
    """Up to here, and on disk."""
    matched: int
    """Up to here."""
    fresh: bool


class Missed(Letter, frozen=True, tag="missed-entries"):
    """A follower doesn't have what comes before an offer, or knows of a later term."""

    previous: int
    """As offered."""
    hint: int
    """Nothing after this entry is worth trying."""
    fresh: bool


class Install(Letter, frozen=True, tag="install-image"):
    """The owner's state after this entry, where the entries before it are kept no more."""

    index: int
    index_term: int
    image: bytes


class TakeOver(Letter, frozen=True, tag="take-over"):
    """The leader wants this follower to lead in its place, and appends nothing any more."""

    last: int
    """The follower has to have this entry."""


ConsensusLetter = AskVote | Vote | Offer | Accepted | Missed | Install | TakeOver
