"""What a machine is, and the numbered duties of whoever drives one.

A machine decides and does nothing else: `step(now, event)` returns effects, which are data. There
is one driver per world (simulation, one process, pods) and the machine can't tell which it is in.

Duties of a driver:
1. Perform effects in the order given. What must be durable is durable before anything is said
   about it: a machine never emits a reply before it was told that what the reply promises is
   stored.
2. Answer every `Persist` with one `Persisted` or `PersistFailed`, every `PutObject` with one
   `ObjectPut` or `PutFailed`, every `GetObject` with one `ObjectRead` or `GetFailed`, and so on,
   in any order.
3. Never call `step` from within `step`; give events one at a time, each whole. Requests that came
   one after the other, with nothing between them, may be given as one `Requests`.
4. `now` never goes back. It is nanoseconds since 1970, kept monotonic by the driver.
5. A timer fires once, at or after its time; setting it again under the same key moves it.
6. Messages between machines may be lost, repeated or late; a machine must stand that. Replies to
   a client that has gone are dropped.
7. To a member of a metadata group, `Elected` comes after a `Followed` for every entry that any
   leader before it has journaled. From then on its groups are journaled right behind those, or
   fail as fenced; and no other's entry is, before the time that `Elected` and `LeaseHeld` tell is
   over or `Resign` was performed. A group in flight then is answered as ever.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from anabranch.core.errors import AnabranchError
from anabranch.core.types import Milliseconds, Nanoseconds, ObjectId

Buffer = bytes | bytearray | memoryview
Token = int
"""Names one outstanding question; whoever asks makes it up and gets it back with the answer."""


class Value(msgspec.Struct, frozen=True, gc=False):
    """Base of small events and effects. Frozen structs cost a tenth of a frozen dataclass to
    make.
    """


class Send(Value, frozen=True):
    """A message to another machine, by the name of its node."""

    to: str
    message: Any


class Reply(Value, frozen=True):
    """An answer to the client request that carried this token; a subscription gets many."""

    to: Token
    message: Any


class Replies(Value, frozen=True):
    """What as many `Reply` would say, in this order, at the price of one."""

    to: Sequence[Token]
    messages: Sequence[Any]


class SetTimer(Value, frozen=True):
    key: str
    at: Nanoseconds


class CancelTimer(Value, frozen=True):
    key: str


class Persist(Value, frozen=True):
    """Append these entries to the journal as one group; the machine has at most one group in
    flight.
    """

    entries: Sequence[bytes]


class SaveSnapshot(Value, frozen=True):
    """State as of `index`; the journal may forget what lies before it once this is stored."""

    index: int
    image: bytes


class PutObject(Value, frozen=True):
    """Create-only. The parts are written one after the other."""

    object: ObjectId
    parts: Sequence[Buffer]


class GetObject(Value, frozen=True):
    token: Token
    object: ObjectId
    start: int
    length: int


class SignRanges(Value, frozen=True):
    """Say where whoever has no keys of the store can get each of these ranges for a while: object,
    offset, length. Answered with one `RangesSigned` or `SignFailed`.
    """

    token: Token
    ranges: Sequence[tuple[ObjectId, int, int]]
    valid_ms: Milliseconds


class SignPuts(Value, frozen=True):
    """Say where and how whoever has no keys of the store can create each of these objects for a
    while: object, bytes, SHA-256 of them. Answered with one `PutsSigned` or `SignFailed`.
    """

    token: Token
    contents: Sequence[tuple[ObjectId, int, bytes]]
    valid_ms: Milliseconds


class DeleteObjects(Value, frozen=True):
    objects: Sequence[ObjectId]


class QuarantineObjects(Value, frozen=True):
    """Move these orphans out of the way, where they stay for `Limits.quarantine_ms`."""

    objects: Sequence[ObjectId]


class ReturnObjects(Value, frozen=True):
    """Move these objects from quarantine back to where they were."""

    objects: Sequence[ObjectId]


class PurgeQuarantine(Value, frozen=True):
    """Delete these objects from quarantine."""

    objects: Sequence[ObjectId]


class ListQuarantine(Value, frozen=True):
    """Which objects are in quarantine, and since when?"""


class ListObjects(Value, frozen=True):
    """Which objects does the store hold?"""


class ReadEntries(Value, frozen=True):
    """Give me these entries of the journal, from `first` up to and without `upto`; answered with
    one `EntriesRead` or `ReadFailed`. What a snapshot let it forget can't be read any more.
    """

    token: Token
    first: int
    upto: int


class Follow(Value, frozen=True):
    """Give me every entry that the group's journal has after this index, and all that come."""

    after: int


class Campaign(Value, frozen=True):
    """Stand for election, from now on and again after every defeat."""


class Resign(Value, frozen=True):
    """Give up the lead, if it is held, and stand for none."""


class Rest(Value, frozen=True):
    """Nothing is in hand any more: the process may end."""


Effect = (
    Send
    | Reply
    | Replies
    | SetTimer
    | CancelTimer
    | Persist
    | SaveSnapshot
    | PutObject
    | GetObject
    | SignRanges
    | SignPuts
    | DeleteObjects
    | QuarantineObjects
    | ReturnObjects
    | PurgeQuarantine
    | ListQuarantine
    | ListObjects
    | ReadEntries
    | Follow
    | Campaign
    | Resign
    | Rest
)


class Received(Value, frozen=True):
    """A message from another machine."""

    sender: str
    message: Any


class Request(Value, frozen=True):
    """A client's request, already decoded and within the limits of a frame."""

    token: Token
    message: Any


class Requests(Value, frozen=True):
    """Requests of one kind that came together, in order; what as many `Request` would say."""

    tokens: Sequence[Token]
    messages: Sequence[Any]


class Gone(Value, frozen=True):
    """The client behind these requests has left; nothing more need be said to it."""

    tokens: Sequence[Token]


class TimerFired(Value, frozen=True):
    key: str


class Persisted(Value, frozen=True):
    """The group asked for is durable; its last entry has this index."""

    last: int


class PersistFailed(Value, frozen=True):
    error: AnabranchError


class SnapshotSaved(Value, frozen=True):
    index: int


class ObjectPut(Value, frozen=True):
    object: ObjectId


class PutFailed(Value, frozen=True):
    object: ObjectId
    error: AnabranchError


class ObjectRead(Value, frozen=True):
    token: Token
    content: Buffer


class GetFailed(Value, frozen=True):
    token: Token
    error: AnabranchError


class RangesSigned(Value, frozen=True):
    """A URL for each range, in their order."""

    token: Token
    urls: Sequence[str]


class PutTarget(Value, frozen=True):
    """The URL of one PUT, and the headers that must go with it."""

    url: str
    """Of a folder, file:// and the object's path."""
    headers: dict[str, str] = {}


class PutsSigned(Value, frozen=True):
    """A target for each object, in their order."""

    token: Token
    targets: Sequence[PutTarget]


class SignFailed(Value, frozen=True):
    token: Token
    error: AnabranchError


class ObjectsDeleted(Value, frozen=True):
    objects: Sequence[ObjectId]


class ObjectsQuarantined(Value, frozen=True):
    """These orphans are in quarantine."""

    objects: Sequence[ObjectId]


class ObjectsReturned(Value, frozen=True):
    """These objects are no longer in quarantine."""

    objects: Sequence[ObjectId]


class QuarantinePurged(Value, frozen=True):
    """What had been in quarantine for too long is deleted."""


class QuarantineListed(Value, frozen=True):
    """Each with when it was moved there, by the store's clock."""

    objects: Sequence[tuple[ObjectId, Milliseconds]]


class ObjectsListed(Value, frozen=True):
    objects: Sequence[ObjectId]


class EntriesRead(Value, frozen=True):
    """In their order; `token` says whose."""

    token: Token
    entries: Sequence[bytes]


class ReadFailed(Value, frozen=True):
    token: Token
    error: AnabranchError


class Linked(Value, frozen=True):
    """A connection to this node is there again: what was sent on the one before may be lost."""

    node: str


class Followed(Value, frozen=True):
    """Entries of the journal from index `first` on; none is left out, some may come again."""

    first: int
    entries: Sequence[bytes]


class Restored(Value, frozen=True):
    """The journal has forgotten what was asked for; this is the state after entry `index`."""

    index: int
    image: bytes


class Elected(Value, frozen=True):
    """You lead, and have been given every entry journaled before; terms only grow.

    Until `until` no other member can have been elected.
    """

    term: int
    until: Nanoseconds


class LeaseHeld(Value, frozen=True):
    """The lead is held for so much longer."""

    until: Nanoseconds


class Deposed(Value, frozen=True):
    """You lead no more: nothing that you want journaled will be."""


class Drain(Value, frozen=True):
    """The process is to end: finish what is in hand, let others take over, then `Rest`."""


Event = (
    Received
    | Request
    | Requests
    | Gone
    | TimerFired
    | Persisted
    | PersistFailed
    | SnapshotSaved
    | ObjectPut
    | PutFailed
    | ObjectRead
    | GetFailed
    | RangesSigned
    | PutsSigned
    | SignFailed
    | ObjectsDeleted
    | ObjectsQuarantined
    | ObjectsReturned
    | QuarantinePurged
    | QuarantineListed
    | ObjectsListed
    | EntriesRead
    | ReadFailed
    | Linked
    | Followed
    | Restored
    | Elected
    | LeaseHeld
    | Deposed
    | Drain
)

Effects = tuple[Effect, ...]


class Machine(Protocol):
    def start(self, now: Nanoseconds) -> Effects:
        """The first effects of a life: registrations and timers."""
        ...

    def step(self, now: Nanoseconds, event: Event) -> Effects: ...
