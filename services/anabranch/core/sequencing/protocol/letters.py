"""Letters between sequencing replicas and their controller. A letter may be lost, repeated or late.

The structs are arrays on the wire: a release may only add fields at the end, with a default.
"""

import msgspec

from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.sequencing.view import Ballot, View, ViewNumber
from anabranch.core.wire.numbers import Bounded


class SequencingLetterBase(msgspec.Struct, frozen=True, array_like=True):
    """Base."""


class Present(SequencingLetterBase, frozen=True, kw_only=True, tag="present"):
    """A sequencing replica to the controllers, again and again: this node lives."""

    node: str
    life: Bounded
    view: ViewNumber
    """The view that the replica takes appends of, or was sealed in; 0: none."""
    started: bool
    """It takes appends of that view."""
    ordered: Bounded
    version: Bounded = 0
    """Of the configuration that the node knows."""
    tail: Bounded = 0
    """`ordered`, and the records in its ring."""
    sealed: bool = False
    """The view is over. A member that isn't started is sealed, or has yet to journal its start."""
    at: Bounded = 0
    """By the sender's clock: a letter that the network held up says nothing new."""
    leaving: bool = False
    """The node's process is about to end: the log goes on without it."""
    fsync: bool | None = None
    """It acknowledges from its disk; None: it is of a version that doesn't say."""
    waiting: Bounded = 0
    """Records that wait for room in its ring, and come behind `tail`."""


class Seal(SequencingLetterBase, frozen=True, tag="seal"):
    """A controller to the members of a view: take nothing of it any more."""

    ballot: Ballot
    """The attempt that this is part of; its view is the next one."""
    view: ViewNumber
    """The view that ends."""


class Sealed(SequencingLetterBase, frozen=True, kw_only=True, tag="sealed"):
    """The answer, when the seal is journaled."""

    ballot: Ballot
    view: ViewNumber
    node: str
    life: Bounded
    ordered: Bounded
    records: Bounded
    """In its ring."""


class Prepare(SequencingLetterBase, frozen=True, kw_only=True, tag="prepare"):
    """A controller to every node that may be a member of the next view: copy this replica's state,
    and keep it as that of the next view.
    """

    ballot: Ballot
    source: str
    """Empty: begin with an empty ring, because no member of the view before is left."""
    base: Bounded = 0
    """What is ordered by then, if that is more than the source knows."""
    settled: tuple[tuple[AppendId, Bounded], ...] = ()
    """Ids that the log holds already: they are known, and belong into no ring."""


class AskState(SequencingLetterBase, frozen=True, tag="ask-state"):
    """A node to the source of its next state."""

    ballot: Ballot
    part: Bounded


class State(SequencingLetterBase, frozen=True, kw_only=True, tag="state"):
    """One part of a sealed replica's state, encoded; parts are small enough for a letter."""

    ballot: Ballot
    part: Bounded
    parts: Bounded
    content: bytes
    digest: Bounded
    """CRC32C of all parts together: a source that was restarted may cut others."""


class Prepared(SequencingLetterBase, frozen=True, kw_only=True, tag="prepared"):
    """The answer to `Prepare`, when the next view's state is journaled."""

    ballot: Ballot
    node: str
    life: Bounded
    base: Bounded


class Start(SequencingLetterBase, frozen=True, tag="start"):
    """A controller to the members of a configured view: take its appends."""

    view: View


class Drop(SequencingLetterBase, frozen=True, kw_only=True, tag="drop", gc=False):
    """The leader to the other members: these appends are ordered, and leave the rings."""

    view: ViewNumber
    first: Bounded
    """What is ordered before them."""
    upto: Bounded
    """What is ordered after them."""
    ids: list[AppendId]
    """In their order."""
    positions: list[Bounded]
    """The first of each."""
    forgotten: list[AppendId] = []
    """Requests, and the last epochs of producers, that needn't be known any more."""
    shards: list[str] = []
    """Of each id, if it is a request whose data a shard has, that shard. Empty if none is."""


class Dropped(SequencingLetterBase, frozen=True, tag="dropped", gc=False):
    """A member to the leader: what is ordered here is in the journal."""

    view: ViewNumber
    upto: Bounded


class Strays(SequencingLetterBase, frozen=True, kw_only=True, tag="strays", gc=False):
    """A member to the leader: these have been in my ring for long. Perhaps their client left before
    it had sent them to you.
    """

    view: ViewNumber
    ordered: Bounded
    """What the member had ordered when it said so."""
    entries: list[Entry]


class Void(SequencingLetterBase, frozen=True, tag="void", gc=False):
    """The leader to a member: these strays are never ordered. They leave its ring."""

    view: ViewNumber
    ids: list[AppendId]


class Uncounted(SequencingLetterBase, frozen=True, tag="uncounted", gc=False):
    """The leader to a member: so much is ordered that you haven't counted against the quota."""

    view: ViewNumber
    bytes: Bounded
    records: Bounded


SequencingLetter = (
    Present
    | Seal
    | Sealed
    | Prepare
    | AskState
    | State
    | Prepared
    | Start
    | Drop
    | Dropped
    | Strays
    | Void
    | Uncounted
)
