"""The words of a history: what was asked, when, and what came back; structs, made to be stored.

Times are any integers that only grow, the same for all clients. A call that never had an answer is
`unknown` and `returned` stays NEVER: it may have happened, once, at any time since. `refused` means
that it did not happen; a client that was refused the second time it asked must say `unknown`.
"""

from enum import StrEnum

import msgspec

from anabranch.core.types import NEVER, Kind, LogId, Position

RecordId = int
"""Carried in the record itself; no two records of a history share one."""

Origin = tuple[LogId, Position]

UNTOLD = LogId(-1)
"""The log that a call would have made, had its answer arrived."""


class Verdict(StrEnum):
    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Call(msgspec.Struct, kw_only=True):
    """One call of one client. `code` is the error's, if it was refused."""

    client: int
    log: LogId
    invoked: int
    returned: int = NEVER
    verdict: Verdict = Verdict.UNKNOWN
    code: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict is Verdict.OK

    @property
    def possible(self) -> bool:
        """Whether it happened, or may have."""
        return self.verdict is not Verdict.REFUSED


class Create(Call, tag="create"):
    """`log` is what was made."""

    name: str


class Fork(Call, tag="fork"):
    """`log` is what was made, `fork_point` as the answer told it."""

    name: str
    parent: LogId
    kind: Kind
    fork_point: Position = 0
    past: Position | None = None
    """Asked for: the last inherited position of a severed fork."""
    timed: bool = False
    """Severed at a time; where that is only the service knows."""
    promotable: bool = False
    lives: int = NEVER
    """Time to live, in the units of this history's times."""
    cascades: bool = False


class Append(Call, tag="append"):
    """One batch: all of it or nothing, side by side. Answered with a position or with a receipt."""

    records: list[RecordId]
    position: Position | None = None


class Read(Call, tag="read"):
    """Settled records, from `first` on without a hole. `origins` may be left out."""

    first: Position
    records: list[RecordId]
    origins: list[tuple[LogId, Position]] = msgspec.field(
        default_factory=list[tuple[LogId, Position]]
    )
    start: Position = 0
    tail: Position = 0
    settled: Position = 0


class Scan(Call, tag="scan"):
    """What a plan named that was alive when its objects were read, from `first` on without a hole.
    `settled` is what the plan said: all of it was, when the call returned.
    """

    first: Position
    records: list[RecordId]
    origins: list[tuple[LogId, Position]] = msgspec.field(
        default_factory=list[tuple[LogId, Position]]
    )
    settled: Position = 0


class Look(Call, tag="look"):
    """What a description said."""

    start: Position = 0
    tail: Position = 0
    settled: Position = 0


class Promote(Call, tag="promote"):
    squashed: list[str] = msgspec.field(default_factory=list[str])


class Squash(Call, tag="squash"):
    pass


class Delete(Call, tag="delete"):
    pass


class Trim(Call, tag="trim"):
    before: Position


class Redeem(Call, tag="redeem"):
    """A receipt's record found: `into` and `position` are where."""

    records: list[RecordId]
    into: LogId = UNTOLD
    position: Position = 0


class MarkCursor(Call, tag="mark-cursor"):
    name: str
    position: Position


class ReadCursor(Call, tag="read-cursor"):
    name: str
    position: Position | None = None


class Delivery(msgspec.Struct, tag="delivery"):
    """Records pushed to a subscriber, from `first` on without a hole."""

    at: int
    first: Position
    records: list[RecordId]
    speculative: bool = False


class Confirmation(msgspec.Struct, tag="confirmation"):
    at: int
    up_to: Position


class Failure(msgspec.Struct, tag="failure"):
    at: int
    since: Position


Push = Delivery | Confirmation | Failure


class Stream(Call, tag="stream"):
    """One subscription as its application saw it, reconnections included."""

    start: Position
    pushes: list[Push] = msgspec.field(default_factory=list[Push])


AnyCall = (
    Create
    | Fork
    | Append
    | Read
    | Scan
    | Look
    | Promote
    | Squash
    | Delete
    | Trim
    | Redeem
    | MarkCursor
    | ReadCursor
    | Stream
)


class Fate(StrEnum):
    ALIVE = "alive"
    PROMOTED = "promoted"
    SQUASHED = "squashed"
    DELETED = "deleted"


class Final(msgspec.Struct, kw_only=True):
    """What the service says of a log when all is over; `records` are those from `start` on."""

    log: LogId
    name: str
    fate: Fate = Fate.ALIVE
    kind: Kind = Kind.ROOT
    parent: LogId | None = None
    fork_point: Position = 0
    start: Position = 0
    tail: Position = 0
    settled: Position = 0
    promotable: bool = False
    records: list[RecordId] = msgspec.field(default_factory=list[RecordId])
    origins: list[tuple[LogId, Position]] = msgspec.field(
        default_factory=list[tuple[LogId, Position]]
    )
    cursors: dict[str, Position] = msgspec.field(default_factory=dict[str, Position])
    expired: bool = False
    """Squashed because its time to live had passed."""


class History(msgspec.Struct):
    calls: list[AnyCall] = msgspec.field(default_factory=list[AnyCall])
    finals: list[Final] = msgspec.field(default_factory=list[Final])
    ended: int = NEVER
    """When the last final was read; nothing was called after it."""
