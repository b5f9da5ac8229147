"""What a client and a server say to each other; how they become frames is in codec.py."""

import msgspec

from anabranch.core.bolt.protocol.commands import (
    Description,
    Done,
    EngineSettings,
    Promotion,
    Receipt,
)
from anabranch.core.bolt.protocol.compactors import (
    AdoptCopy,
    CompactorAnswer,
    CompactorCommand,
    CompactorRequest,
)
from anabranch.core.bolt.protocol.fronts import FindReceipt, FrontAnswer, FrontRequest
from anabranch.core.bolt.protocol.marks import (
    AlreadyAppended,
    AppendMarked,
    MarkCommand,
    ReadWriters,
    Writers,
)
from anabranch.core.bolt.protocol.queries import (
    At,
    Census,
    Comparison,
    Cursors,
    Listing,
    Mark,
    PlanPage,
    Pool,
    Settled,
)
from anabranch.core.bolt.protocol.scans import (
    EndPlan,
    EraseGarbage,
    PlanScan,
    RenewPlan,
    ScanAnswer,
    ScanRequest,
)
from anabranch.core.bolt.protocol.set_sums import ReadSetSum, SetSum
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer
from anabranch.core.quota import Quota
from anabranch.core.records.batch import peek
from anabranch.core.records.origins import Run
from anabranch.core.types import Kind, LogId, Milliseconds, OnParentDelete, OnPromote, Position
from anabranch.core.wire.session import Cancel, Credit

PROTOCOL_VERSION = 1


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base: only so that the union below reads well."""


class Hello(Message, frozen=True, array_like=True, tag="hello"):
    """The first frame of a connection."""

    version: int
    client: str
    token: str | None = None
    traceparent: str = ""
    """W3C's: the span that all of this connection's requests are part of, if they are traced."""


class Welcome(Message, frozen=True, array_like=True, tag="welcome"):
    version: int
    cluster: str
    server: str
    record_bytes_max: int
    batch_bytes_max: int
    batch_records_max: int
    engines: tuple[str, ...] = ()
    """Besides Bolt, whose logs this server's catalogue keeps. Empty: it is of a version that would
    make a Bolt log whatever engine was asked for.
    """


class Append(Message, frozen=True, array_like=True, tag="append", gc=False):
    """One record batch; its header carries producer, epoch and sequence, which make a retry
    harmless.
    """

    log: LogId
    batch: Buffer
    wait_ms: int = -1
    """How long to wait if the log is blocked; negative: as the server is set."""


class Appended(Message, frozen=True, array_like=True, tag="appended"):
    """Exactly one of the two: the position of the batch's first record, or the promise of it."""

    position: Position | None
    receipt: Receipt | None = None


class Read(Message, frozen=True, array_like=True, tag="read"):
    """Records from `start` on, up to the settled position; an empty answer only after `wait_ms`."""

    log: LogId
    start: Position
    records_max: int
    bytes_max: int
    wait_ms: int = 0


class Records(Message, frozen=True, array_like=True, tag="records"):
    """Whole batches, and runs that say which of their records are meant and where they come
    from.
    """

    runs: list[Run]
    batches: list[Buffer]
    next: Position
    start: Position
    tail: Position
    settled: Position


class Subscribe(Message, frozen=True, array_like=True, tag="subscribe"):
    """Push me everything from `start` on. `speculative`: also past an undecided promotable fork."""

    log: LogId
    start: Position
    speculative: bool = True
    credit_bytes: int = 1 << 20


class Delivered(Message, frozen=True, array_like=True, tag="delivered"):
    runs: list[Run]
    batches: list[Buffer]
    speculative: bool


class Confirmed(Message, frozen=True, array_like=True, tag="confirmed"):
    """Everything delivered below this position is final."""

    up_to: Position


class Failed(Message, frozen=True, array_like=True, tag="failed"):
    """Forget what was delivered from this position on; it is delivered anew."""

    since: Position


class CreateLog(Message, frozen=True, array_like=True, tag="create-log"):
    """With an owner that has a log already it answers that one's description."""

    name: str
    request: bytes
    by: str = ""
    why: str = ""
    owner: str = ""
    """Who declares this log, if somebody does; an owner has one log."""
    engine: str = ""
    """The engine that serves the log; empty: Bolt."""
    settings: EngineSettings | None = None
    """For another engine. Without addresses the service runs the log itself, if it can."""
    front: EngineSettings | None = None
    """A lazy front takes the log's appends (Bolt only); the service runs the front itself."""


class DeleteLog(Message, frozen=True, array_like=True, tag="delete-log"):
    log: LogId
    request: bytes
    force: bool = False


class Fork(Message, frozen=True, array_like=True, tag="fork"):
    parent: LogId
    kind: Kind
    request: bytes
    name: str | None = None
    past: Position | None = None
    at: Milliseconds | None = None
    promotable: bool = False
    ttl_ms: int | None = None
    on_parent_delete: OnParentDelete = OnParentDelete.ORPHAN
    by: str = ""
    why: str = ""
    exclusive: bool = False
    quota: Quota | None = None
    """None: as its parent's."""
    owner: str = ""
    """As of a new log."""


class Promote(Message, frozen=True, array_like=True, tag="promote"):
    log: LogId
    request: bytes


class PromoteIf(Promote, frozen=True, array_like=True, tag="promote-if"):
    """Only if the fork has exactly so many records of its own. A message of its own, so that a
    server of an earlier version refuses it instead of promoting without the condition.
    """

    expect_own: int


class Squash(Message, frozen=True, array_like=True, tag="squash"):
    log: LogId
    request: bytes
    by: str = ""


class Trim(Message, frozen=True, array_like=True, tag="trim"):
    log: LogId
    before: Position
    request: bytes


class CommitCursor(Message, frozen=True, array_like=True, tag="commit-cursor"):
    log: LogId
    name: str
    position: Position
    request: bytes
    on_promote: OnPromote | None = None
    """None: as it was chosen before, if it was."""


class DeleteCursor(Message, frozen=True, array_like=True, tag="delete-cursor"):
    log: LogId
    name: str
    request: bytes


class ReadCursors(Message, frozen=True, array_like=True, tag="read-cursors"):
    log: LogId


class Describe(Message, frozen=True, array_like=True, tag="describe"):
    log: str | LogId


class ListLogs(Message, frozen=True, array_like=True, tag="list-logs"):
    prefix: str = ""
    tree: str | None = None
    after: str = ""
    count_max: int = 1_000
    owner: str = ""
    """What the owner's name begins with; empty: whether it has one or not."""
    engine: str = ""
    """The engine that serves them; empty: any."""


class Compare(Message, frozen=True, array_like=True, tag="compare"):
    a: LogId
    b: LogId
    after: Mark | None = None
    """The `next` of the page before, to go on there."""


class PositionAt(Message, frozen=True, array_like=True, tag="position-at"):
    log: LogId
    at: Milliseconds


class Redeem(Message, frozen=True, array_like=True, tag="redeem"):
    """The position behind a receipt, once it is settled."""

    receipt: Receipt
    wait_ms: int = 0


class Survey(Message, frozen=True, array_like=True, tag="survey"):
    pass


class ListBrokers(Message, frozen=True, array_like=True, tag="list-brokers"):
    pass


class Ping(Message, frozen=True, array_like=True, tag="ping"):
    """Are you there? The broker answers by itself, whatever else doesn't work."""


class SetQuota(Message, frozen=True, array_like=True, tag="set-quota"):
    """It replaces the one before; one that limits nothing takes it away. The answer describes."""

    log: LogId
    quota: Quota
    request: bytes


class Adopt(Message, frozen=True, array_like=True, tag="adopt"):
    """From now on this owner declares the log; an empty one releases it. The answer describes."""

    log: LogId
    owner: str
    request: bytes


class SetAppends(Message, frozen=True, array_like=True, tag="set-appends"):
    """From here on a log's appends go to a lazy front with these settings, which the service runs
    itself unless they have addresses. None: its front is to end. The answer describes: the log has
    a front until that has ended.
    """

    log: LogId
    front: EngineSettings | None
    request: bytes
    """The id under which it is done once."""


class SetSettings(Message, frozen=True, array_like=True, tag="set-settings"):
    """Replace the settings of a log that another engine serves elsewhere. The answer describes."""

    log: LogId
    """A log of another engine, not an embedded one."""
    settings: EngineSettings
    """All of them: none is kept from before."""
    request: bytes
    """The id under which it is done once."""


class DrainBroker(Message, frozen=True, array_like=True, tag="drain-broker"):
    """Place nothing more on this broker, and what is on it elsewhere; it goes on serving who asks
    it.
    """

    broker: str
    epoch: int
    request: bytes


class ForgetBroker(Message, frozen=True, array_like=True, tag="forget-broker"):
    """The broker is gone for good, or about to end: take it out of the pool."""

    broker: str
    epoch: int
    request: bytes


Once = (
    CreateLog
    | DeleteLog
    | Fork
    | Promote
    | PromoteIf
    | Squash
    | Trim
    | CommitCursor
    | DeleteCursor
    | SetQuota
    | Adopt
    | DrainBroker
    | ForgetBroker
    | SetSettings
    | SetAppends
    | MarkCommand
)
"""What changes something; its request id has it done once, however often it is sent."""


class Guarded(Message, frozen=True, array_like=True, tag="guarded"):
    """Do it only if nobody of a higher epoch has been heard of in this scope: of several that take
    turns, one whose turn is over changes nothing more.
    """

    scope: str
    epoch: int
    message: Once


class Order(Message, frozen=True, array_like=True, tag="order"):
    """A process of a log's lazy front asks this of the log: whoever may can fence the front, and
    commit past what it has acknowledged (decision 67). Where the front's machines share a process
    with the broker, no connection carries what they ask, and this is refused.
    """

    message: FrontRequest

    @property
    def log(self) -> LogId:
        return self.message.log


Control = (
    Hello
    | Read
    | Subscribe
    | Credit
    | Cancel
    | CreateLog
    | DeleteLog
    | Fork
    | Promote
    | PromoteIf
    | Squash
    | Trim
    | CommitCursor
    | DeleteCursor
    | ReadCursors
    | Describe
    | ListLogs
    | Compare
    | PositionAt
    | Redeem
    | Survey
    | ListBrokers
    | SetQuota
    | Ping
    | Adopt
    | DrainBroker
    | ForgetBroker
    | Guarded
    | SetSettings
    | SetAppends
    | FindReceipt
    | Order
    | AppendMarked
    | MarkCommand
    | ReadWriters
    | ReadSetSum
    | ScanRequest
    | CompactorRequest
)
"""Requests whose every byte is msgpack; `Append` has a frame of its own."""

ClientMessage = Append | Control


_CHANGING = (
    Append
    | AppendMarked
    | Once
    | Guarded
    | Order
    | PlanScan
    | RenewPlan
    | EndPlan
    | EraseGarbage
    | CompactorCommand
    | AdoptCopy
)


def changes(message: ClientMessage) -> bool:
    """Does it do anything but read?"""
    return isinstance(message, _CHANGING)


def doubles(message: ClientMessage) -> bool:
    """Is it done twice if the same call is made again, with nothing that tells it is the same?"""
    match message:
        case Append(batch=batch):
            return peek(batch).producer_id < 0
        case Fork(name=None, owner=""):
            return True
        case Guarded(message=guarded):
            return doubles(guarded)
        case _:
            return False


Plain = (
    Welcome
    | Description
    | Listing
    | Promotion
    | Done
    | Settled
    | At
    | Cursors
    | Comparison
    | Census
    | Pool
    | Confirmed
    | Failed
    | Receipt
    | Refused
    | FrontAnswer
    | AlreadyAppended
    | Writers
    | SetSum
    | PlanPage
    | ScanAnswer
    | CompactorAnswer
)
"""Replies whose every byte is msgpack; `Appended`, `Records` and `Delivered` have frames of their
own.
"""

ServerMessage = Appended | Records | Delivered | Plain
