"""What the metadata state machine is told and asked, and what it answers.

A *command* changes the state and goes through the journal; a *query* is answered from the state.
Every command travels in an `Entry` with the leader's time and a request id: applying it twice
gives the first reply (spec D4). Structs are arrays on the wire and in the journal: fields are
only ever added at the end.
"""

import msgspec

from anabranch.core.errors import AnabranchError, Fact, restore
from anabranch.core.types import Kind, LogId, Milliseconds, ObjectId, OnParentDelete, Position


class Compact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a command or reply."""


class Refused(Compact, frozen=True, tag="refused"):
    """An error as a value: what a command answers when it changed nothing."""

    code: str
    message: str
    facts: dict[str, Fact]

    @staticmethod
    def of(error: AnabranchError) -> "Refused":
        return Refused(error.code, error.message, error.facts)

    def error(self) -> AnabranchError:
        return restore(self.code, self.message, self.facts)


class Batch(Compact, frozen=True):
    """One record batch inside an extent, as far as ordering it needs to know."""

    length: int
    count: int
    producer: int = -1
    epoch: int = 0
    sequence: int = 0


class Row(Compact, frozen=True):
    """One log's bytes in an object: consecutive batches, to be sequenced in this order."""

    log: LogId
    offset: int
    batches: list[Batch]


class CreateLog(msgspec.Struct, frozen=True, array_like=True, tag="create"):
    name: str
    by: str = ""
    why: str = ""


class DeleteLog(msgspec.Struct, frozen=True, array_like=True, tag="delete"):
    log: LogId
    force: bool = False


class CommitObject(msgspec.Struct, frozen=True, array_like=True, tag="commit"):
    """The object is durable; give its records their places (AgileLog, 5.2). Idempotent on the
    object.
    """

    broker: str
    object: ObjectId
    rows: list[Row]
    number: int = -1
    """Counts the commits of one broker life from 0; sent again, a commit keeps its number."""


class ForkLog(msgspec.Struct, frozen=True, array_like=True, tag="fork"):
    """cFork or sFork (AgileLog, 4.1). `past` or `at` only for a severed one; neither means its
    tail now.

    `past` is the last inherited position; `at` a time in ms: everything committed by then, that
    millisecond included, is inherited, so that "now" holds all that was acknowledged.
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


class Promote(msgspec.Struct, frozen=True, array_like=True, tag="promote"):
    log: LogId


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
    """Place nothing more on this broker, and what is on it elsewhere: it is about to end."""

    broker: str


class LoseBroker(msgspec.Struct, frozen=True, array_like=True, tag="lose"):
    """The leader has heard nothing of this life of a broker for too long."""

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


Command = (
    CreateLog
    | DeleteLog
    | CommitObject
    | ForkLog
    | Promote
    | Squash
    | Trim
    | CommitCursor
    | DeleteCursor
    | RegisterBroker
    | DrainBroker
    | LoseBroker
    | RaiseFormat
    | Expire
    | ForgetObjects
    | Configure
)


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What the journal holds: a command, when the leader took it, and the id that makes it
    once-only.
    """

    at: Milliseconds
    request: bytes
    command: Command


class Receipt(msgspec.Struct, frozen=True, array_like=True, tag="receipt"):
    """The promise of a position: where the record would be if no promotion came between
    (AgileLog, 4.1).
    """

    log: LogId
    generation: int
    provisional: Position


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


class Sequenced(msgspec.Struct, frozen=True, array_like=True, tag="sequenced"):
    """Results of one row, batch by batch: a position, a receipt, or a refusal."""

    batches: list[int | Receipt | Refused]


class Committed(msgspec.Struct, frozen=True, array_like=True, tag="committed"):
    """One result a row. A number: the whole row was sequenced, its batches one after the other
    from there.
    """

    rows: list[int | Receipt | Sequenced | Refused]


class Done(msgspec.Struct, frozen=True, array_like=True, tag="done"):
    """A command that has nothing more to say."""


class Epoch(msgspec.Struct, frozen=True, array_like=True, tag="epoch"):
    epoch: int


class Promotion(msgspec.Struct, frozen=True, array_like=True, tag="promotion"):
    """What a promotion did: the parent that now has the records, and the siblings it squashed."""

    into: str
    fork_point: Position
    records: int
    squashed: list[str]


Outcome = Description | Committed | Done | Epoch | Promotion | Refused


SLICES_MAX = 256
"""Extents that one answer names: bounds the work, and the GETs, that one read can set off."""


class Resolve(msgspec.Struct, frozen=True, array_like=True, tag="resolve"):
    """Which bytes hold the records of `log` from `start` on? `SLICES_MAX` extents of them at most.

    Speculative: also past the settled position.
    """

    log: LogId
    start: Position
    records_max: int
    bytes_max: int
    speculative: bool = False


class Slice(Compact, frozen=True):
    """A run of records inside one extent, as positions of the log that was asked about."""

    first: Position
    count: int
    object: ObjectId
    offset: int
    length: int
    skip: int
    """Records of the extent that lie before `first`."""
    origin: LogId
    origin_first: Position


class Resolved(msgspec.Struct, frozen=True, array_like=True, tag="resolved"):
    slices: list[Slice]
    start: Position
    tail: Position
    settled: Position
    generation: int
    undecided: str | None


class Describe(msgspec.Struct, frozen=True, array_like=True, tag="describe"):
    """By full name (`orders`, `orders--fork`, `orders@fork`) or by id."""

    log: str | LogId


class ListLogs(msgspec.Struct, frozen=True, array_like=True, tag="list"):
    """In order of name. `tree` confines it to one root and its forks."""

    prefix: str = ""
    tree: str | None = None
    after: str = ""
    count_max: int = 1_000


class Listing(msgspec.Struct, frozen=True, array_like=True, tag="listing"):
    logs: list[Description]
    more: bool


class ResolveReceipt(msgspec.Struct, frozen=True, array_like=True, tag="redeem"):
    receipt: Receipt


class Settled(msgspec.Struct, frozen=True, array_like=True, tag="settled"):
    """Where a receipt's record is for good."""

    log: str
    position: Position


class PositionAt(msgspec.Struct, frozen=True, array_like=True, tag="position-at"):
    """The first position committed at or after a time."""

    log: LogId
    at: Milliseconds


class At(msgspec.Struct, frozen=True, array_like=True, tag="at"):
    position: Position


class ReadCursors(msgspec.Struct, frozen=True, array_like=True, tag="cursors"):
    log: LogId


class Cursors(msgspec.Struct, frozen=True, array_like=True, tag="cursor-positions"):
    positions: dict[str, Position]


class Compare(msgspec.Struct, frozen=True, array_like=True, tag="compare"):
    a: LogId
    b: LogId


class Comparison(msgspec.Struct, frozen=True, array_like=True, tag="comparison"):
    """Where two logs part, and the ranges (from, to) of each that the other doesn't have."""

    shared: Position
    only_a: list[tuple[Position, Position]]
    only_b: list[tuple[Position, Position]]
    complete: bool
    """False if there were more ranges than an answer may hold."""


class Survey(msgspec.Struct, frozen=True, array_like=True, tag="survey"):
    """Counts of the whole cluster."""


class Census(msgspec.Struct, frozen=True, array_like=True, tag="census"):
    cluster: str
    logs: int
    forks: int
    extents: int
    garbage_objects: int
    producers: int
    applied: int


class ListBrokers(msgspec.Struct, frozen=True, array_like=True, tag="list-brokers"):
    """The pool, in order of name."""


class BrokerSeat(Compact, frozen=True):
    """One broker of the pool, and how much is placed on it."""

    name: str
    address: str
    epoch: int
    state: str
    """`ready`, `draining` or `lost`."""
    roots: int
    trees: int
    """Trees whose forks it serves."""
    exclusive: int
    """Forks that it serves alone: at most one."""


class Pool(msgspec.Struct, frozen=True, array_like=True, tag="pool"):
    brokers: list[BrokerSeat]


Query = (
    Resolve
    | Describe
    | ListLogs
    | ResolveReceipt
    | PositionAt
    | ReadCursors
    | Compare
    | Survey
    | ListBrokers
)
Answer = (
    Resolved
    | Description
    | Listing
    | Settled
    | At
    | Cursors
    | Comparison
    | Census
    | Pool
    | Refused
)


class Propose(msgspec.Struct, frozen=True, array_like=True, tag="propose"):
    """Broker to metadata: please do this once."""

    token: int
    request: bytes
    command: Command


class Applied(msgspec.Struct, frozen=True, array_like=True, tag="applied"):
    token: int
    outcome: Outcome


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    token: int
    query: Query


class Told(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    token: int
    answer: Answer


class Watch(msgspec.Struct, frozen=True, array_like=True, tag="watch"):
    """Tell me of these logs' tails, settled positions and generations, now and whenever they
    change.

    Repeated every `watch_ms`, with the version last heard, so that a lost message or a new leader
    costs one interval; a watch that is not repeated lapses.
    """

    logs: list[tuple[LogId, int]]


class Unwatch(msgspec.Struct, frozen=True, array_like=True, tag="unwatch"):
    logs: list[LogId]


class Moved(msgspec.Struct, frozen=True, array_like=True, tag="moved"):
    """To a watcher. `version` is the journal's index and only grows; an older one that comes late
    is dropped.

    When `generation` is new, a promotion moved records: those below `diverges` are as they were,
    those from there on must be forgotten by whoever saw them as speculative. Below the settled
    position that a watcher knew before, nothing ever moves, whatever `diverges` says.
    """

    log: LogId
    version: int
    tail: Position
    settled: Position
    generation: int
    diverges: Position
    append_blocked: str | None = None
    undecided: str | None = None
    ended: Refused | None = None
    """The log is no more: promoted, squashed or deleted."""
    after: int = -1
    """The version told before this one, which `diverges` counts from."""


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="alive"):
    """A broker to every member of the metadata group, each `alive_ms`: I am here, who leads?"""

    epoch: int


class Leading(msgspec.Struct, frozen=True, array_like=True, tag="leading"):
    """A member to a broker: write to me. The leader of a higher term is the later one."""

    term: int


ToMetadata = Propose | Ask | Watch | Unwatch | Alive
FromMetadata = Applied | Told | Moved | Leading
