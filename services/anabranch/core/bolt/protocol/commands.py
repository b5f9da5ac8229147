"""What the metadata state machine is told and asked, and what it answers.

A *command* changes the state and goes through the journal; a *query* is answered from the state.
Every command travels in an `Entry` with the leader's time and a request id: applying it twice
gives the first reply (spec D4). Structs are arrays on the wire and in the journal: fields are
only ever added at the end.
"""

import msgspec

from anabranch.core.bolt.protocol.compaction import SwapExtents, Swapped
from anabranch.core.bolt.protocol.compactors import Compactor, CompactorCommand
from anabranch.core.bolt.protocol.engine_settings import EngineSettings
from anabranch.core.bolt.protocol.fronts import FrontAnswer, FrontCommand, FrontMark
from anabranch.core.bolt.protocol.marks import (
    AlreadyAppended,
    CompleteVersion,
    ReleaseWriter,
    WriterMark,
)
from anabranch.core.bolt.protocol.promotions import Promote, PromoteIf, Promotion
from anabranch.core.bolt.protocol.receipts import Receipt
from anabranch.core.bolt.protocol.scans import ScanCommand, ScanOutcome
from anabranch.core.errors import Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.quota import Quota
from anabranch.core.types import (
    Kind,
    LogId,
    Milliseconds,
    ObjectId,
    OnParentDelete,
    OnPromote,
    Position,
)


class Compact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a command or reply."""


class Batch(Compact, frozen=True):
    """One record batch inside an extent, as far as ordering it needs to know."""

    length: int
    count: int
    producer: int = -1
    epoch: int = 0
    sequence: int = 0
    digest: int = 0
    """Of the records, if the batch is a request of its own (`core/records/digest.py`) or has a
    mark.
    """
    mark: WriterMark | None = None


class Row(Compact, frozen=True):
    """One log's bytes in an object: consecutive batches, to be sequenced in this order."""

    log: LogId
    offset: int
    batches: list[Batch]
    front: FrontMark | None = None
    """Which batch of the log's lazy front it is, if the log has one."""
    sum: int = 0
    """The set sum of the batches (`core/records/set_sum.py`); 0: the broker didn't say."""


FORMAT = 11
"""Of these commands; a member of a group that knows an earlier one mustn't lead.

2 has owners, guards, and brokers that are forgotten or get their share when they come. 3 keeps
every record's first origin, and a fork at a time ends before that time. 4 remembers appends that
are requests of their own beside the other requests, and forgets refusals that may pass (see
`requests`). 5 keeps the names of Belfast's logs, 6 those of Erwin's (see `catalogue`, also for 6).
7 has lazy fronts, 8 fronts that come to a log later, or end. 9 knows request ids at one log only.
10 has promotions with a condition, writer marks, set sums of extents (see `index`), and scan plans.
11 has compactors.
"""
STEADY_FORMAT = 3
"""From this one on, origins are kept when records move, and `ForkLog.at` isn't inherited itself."""

BOLT = "bolt"
"""What clients call this engine. In commands and in the state it is the empty name."""
FRONT = "lazy"
"""In the place of an engine's name: the lazy fronts of Bolt's own logs."""


def check_format(known: int, needed: int, what: str) -> None:
    """Raises Unavailable while some member that may lead doesn't know commands of this format."""
    assert 0 <= needed <= FORMAT, "this version knows it"
    if known < needed:
        raise leader_is_earlier(what)


def leader_is_earlier(what: str) -> Unavailable:
    """Why something that came with a later format isn't to be had yet."""
    reason = "a metadata member of an earlier version still leads: finish the upgrade first"
    return Unavailable(what, reason)


class CreateLog(msgspec.Struct, frozen=True, array_like=True, tag="create"):
    """With an owner that has a log already it answers that one's description."""

    name: str
    by: str = ""
    why: str = ""
    owner: str = ""
    """Who declares this log, if somebody does; an owner has one log."""
    engine: str = ""
    """The engine that serves the log; empty: this one, Bolt."""
    settings: EngineSettings | None = None
    """For another engine; an owner that declares its log again replaces them."""
    front: EngineSettings | None = None
    """Appends go to a lazy front of the log, which has these settings (Bolt only)."""


class DeleteLog(msgspec.Struct, frozen=True, array_like=True, tag="delete"):
    log: LogId
    force: bool = False


class CommitObject(msgspec.Struct, frozen=True, array_like=True, tag="commit"):
    """The object is durable; place its records (AgileLog, 5.2). Idempotent on the object."""

    broker: str
    object: ObjectId
    rows: list[Row]
    number: int = -1
    """Counts the commits of one broker life from 0; sent again, a commit keeps its number."""
    values: bytes = b""
    """What each batch of each row adds to a set sum, where a row has several: some of them may
    turn out to be committed already.
    """


class ForkLog(msgspec.Struct, frozen=True, array_like=True, tag="fork"):
    """cFork or sFork (AgileLog, 4.1). `past` or `at` only for a severed one; neither means its
    tail now.

    `past` is the last inherited position; `at` a time in ms: everything committed before it is
    inherited, as `PositionAt` says. (Before format 3, what was committed in that millisecond too.)
    """

    parent: LogId
    kind: Kind
    name: str | None = None
    past: Position | None = None
    at: Milliseconds | None = None
    promotable: bool = False
    ttl_ms: int | None = None
    on_parent_delete: OnParentDelete = OnParentDelete.ORPHAN
    by: str = ""
    why: str = ""
    exclusive: bool = False
    """Served by a broker of its own, and refused if there is none to spare."""
    quota: Quota | None = None
    """None: the parent's, as it is then."""
    owner: str = ""
    """As of `CreateLog`."""


class Squash(msgspec.Struct, frozen=True, array_like=True, tag="squash"):
    log: LogId
    by: str = ""


class Trim(msgspec.Struct, frozen=True, array_like=True, tag="trim"):
    """Positions below `before` can no longer be read in this log; its forks keep what they
    inherited.
    """

    log: LogId
    before: Position


class CommitCursor(msgspec.Struct, frozen=True, array_like=True, tag="cursor"):
    log: LogId
    name: str
    position: Position
    on_promote: OnPromote | None = None
    """None: as it was chosen before, if it was (see `cursors`)."""


class DeleteCursor(msgspec.Struct, frozen=True, array_like=True, tag="uncursor"):
    log: LogId
    name: str


class RegisterBroker(msgspec.Struct, frozen=True, array_like=True, tag="broker"):
    """A broker's life begins: it gets a new epoch, and its earlier lives can commit nothing
    more.
    """

    broker: str
    address: str = ""
    """Where clients reach it; empty if it is reached through the process it lives in."""


class DrainBroker(msgspec.Struct, frozen=True, array_like=True, tag="drain"):
    """Place nothing more on this broker, and what is on it elsewhere: this life of it is about to
    end.
    """

    broker: str
    epoch: int


class ForgetBroker(msgspec.Struct, frozen=True, array_like=True, tag="forget-broker"):
    """A life of a broker is over and nothing is placed on it: it is no longer of the pool, and can
    commit nothing more.
    """

    broker: str
    epoch: int


class LoseBroker(msgspec.Struct, frozen=True, array_like=True, tag="lose"):
    """The leader has heard nothing of this life of a broker for too long."""

    broker: str
    epoch: int


class FindBroker(msgspec.Struct, frozen=True, array_like=True, tag="find"):
    """The leader hears again of this life of a broker that it had given up."""

    broker: str
    epoch: int


class RaiseFormat(msgspec.Struct, frozen=True, array_like=True, tag="format"):
    """From here on the journal may hold what a member of an earlier format can't read."""

    format: int


class Expire(msgspec.Struct, frozen=True, array_like=True, tag="expire"):
    """The leader noticed that these forks' time to live has passed at the entry's time."""

    logs: list[LogId]


class ForgetObjects(msgspec.Struct, frozen=True, array_like=True, tag="forget"):
    """These unreferenced objects have been deleted from the store."""

    objects: list[ObjectId]


class Configure(msgspec.Struct, frozen=True, array_like=True, tag="configure"):
    """From here on commands are judged by these limits (`limits.REPLICATED`)."""

    limits: dict[str, int]


class SetQuota(msgspec.Struct, frozen=True, array_like=True, tag="quota"):
    """How much may be appended to a log and read from it in a second; it replaces the one before.

    One that limits nothing takes the log's away.
    """

    log: LogId
    quota: Quota


class Adopt(msgspec.Struct, frozen=True, array_like=True, tag="adopt"):
    """From here on this owner declares the log, which nobody else did; an empty one releases it."""

    log: LogId
    owner: str


class SetSettings(msgspec.Struct, frozen=True, array_like=True, tag="settings"):
    """Replace the settings of a log that another engine serves elsewhere."""

    log: LogId
    """A log of another engine, not an embedded one."""
    settings: EngineSettings
    """All of them: none is kept from before."""


class SetAppends(msgspec.Struct, frozen=True, array_like=True, tag="set-appends"):
    """From here on a log's appends go to a lazy front with these settings; direct ones are refused.
    What was committed directly before, and is repeated, gets its first answer. None: the front that
    the log has is to end, and appends are direct when it has emptied its rings.
    """

    log: LogId
    front: EngineSettings | None


Guardable = (
    CreateLog
    | DeleteLog
    | ForkLog
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
    | CompleteVersion
    | ReleaseWriter
)
"""What clients ask for."""


class Guarded(msgspec.Struct, frozen=True, array_like=True, tag="guarded"):
    """A command by one of several that take turns: refused if a later one's has been seen.

    The epoch counts their turns within the scope, which is what they are elected for. It is kept
    whatever becomes of the command, so that whoever had the turn before is too late from here on.
    """

    scope: str
    epoch: int
    command: Guardable


Bare = (
    Guardable
    | CommitObject
    | RegisterBroker
    | LoseBroker
    | FindBroker
    | RaiseFormat
    | Expire
    | ForgetObjects
    | Configure
    | SwapExtents
    | FrontCommand
    | ScanCommand
    | CompactorCommand
)
Command = Bare | Guarded


def bare(command: Command) -> Bare:
    """What it does, guarded or not."""
    return command.command if isinstance(command, Guarded) else command


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What the journal holds: a command, when the leader took it, and its once-only id."""

    at: Milliseconds
    request: bytes
    command: Command
    digest: int = 0
    """Of what the request asked, if its sender says so (`core/records/digest.py`)."""


decode_group = msgspec.msgpack.Decoder(list[Entry]).decode
"""One entry of the journal holds one group."""


class Description(msgspec.Struct, frozen=True, array_like=True, tag="description"):
    """One log as people and clients see it."""

    id: LogId
    name: str
    kind: Kind
    root: str
    parent: str | None
    fork_point: Position
    start: Position
    tail: Position
    settled: Position
    own_records: int
    promotable: bool
    depth: int
    forks: int
    generation: int
    created_at: Milliseconds
    by: str
    why: str
    on_parent_delete: OnParentDelete
    expires_at: Milliseconds | None = None
    undecided: str | None = None
    """The promotable fork that keeps `settled` below `tail`."""
    append_blocked_by: str | None = None
    broker: str = ""
    """Who serves it best: any broker can, but this one has its records at hand."""
    address: str = ""
    quota: Quota | None = None
    owner: str = ""
    """Who declares it, if somebody does."""
    engine: str = BOLT
    """The engine that serves the log."""
    settings: EngineSettings | None = None
    """How another engine than Bolt serves it; where clients find it is filled in."""
    front: EngineSettings | None = None
    """The lazy front that takes its appends, if it has one; where clients find it is filled in."""
    front_ends: bool = False
    """The front takes nothing more: appends are direct when the log has all that it holds."""


class LogQuota(Compact, frozen=True):
    """A broker is told so of a log that has a quota."""

    log: LogId
    name: str
    quota: Quota


class Sequenced(msgspec.Struct, frozen=True, array_like=True, tag="sequenced"):
    """Results of one row, batch by batch."""

    batches: list[int | Receipt | AlreadyAppended | Refused]


class Committed(msgspec.Struct, frozen=True, array_like=True, tag="committed"):
    """One result a row. A number: the whole row was sequenced, its batches one after the other
    from there.
    """

    rows: list[int | Receipt | Sequenced | Refused]
    quotas: list[LogQuota] = []
    """Of those of the logs that have one."""


class Done(msgspec.Struct, frozen=True, array_like=True, tag="done"):
    """A command that has nothing more to say."""


class Epoch(msgspec.Struct, frozen=True, array_like=True, tag="epoch"):
    epoch: int


_OfOtherFiles = FrontAnswer | ScanOutcome | Compactor
Outcome = Description | Committed | Done | Epoch | Promotion | Refused | Swapped | _OfOtherFiles
