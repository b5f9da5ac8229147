"""The letters between the members of a group. A letter may be lost, repeated or late.

Each letter names its writer's term; a member that reads of a later term than its own enters it. The
structs are arrays on the wire: a release may only add fields at the end, with a default.
"""

import msgspec


class Letter(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base."""

    term: int


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of the group's log, proposed by the leader of this term."""

    term: int
    content: bytes


class AskVote(Letter, frozen=True, tag="ask-vote"):
    """A candidate for this term, and where its log ends. A member with a longer log refuses."""

    last_term: int
    last: int
    probing: bool
    """The term has not begun: a candidate that cannot win disturbs nobody."""
    bidden: bool
    """The leader itself wants this: members that hear from it may vote too."""


class Vote(Letter, frozen=True, tag="vote"):
    granted: bool
    probing: bool
    fresh: bool
    """The voter's disk was empty: what it promised before may be lost."""


class Offer(Letter, frozen=True, tag="offer-entries"):
    """The leader's entries behind `previous`. Without entries it is a heartbeat."""

    previous: int
    previous_term: int
    entries: list[Entry]
    committed: int
    joined: bool
    """The reader holds everything that counts, and is not fresh any more."""


class Accepted(Letter, frozen=True, tag="accepted-entries"):
    """A follower acknowledges that its log equals the leader's up to `matched`."""

    durable: int
    """The end of what is on its disk, of that."""
    matched: int
    fresh: bool


class Missed(Letter, frozen=True, tag="missed-entries"):
    """A follower lacks the entry before an offer, or knows of a later term."""

    previous: int
    """As in the offer."""
    hint: int
    """No entry after this one is worth an attempt."""
    fresh: bool


class Install(Letter, frozen=True, tag="install-image"):
    """The owner's state after this entry, for a follower that needs forgotten entries."""

    index: int
    index_term: int
    image: bytes


class TakeOver(Letter, frozen=True, kw_only=True, tag="take-over"):
    """The leader wants this follower to lead in its place, and appends nothing more."""

    last: int
    """The follower has to have this entry first."""


ConsensusLetter = AskVote | Vote | Offer | Accepted | Missed | Install | TakeOver
