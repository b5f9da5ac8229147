"""What the metadata state machine is asked and what it answers, from the state as it is."""

import msgspec

from anabranch.core.bolt.protocol.commands import Compact, Description, LogQuota, Receipt
from anabranch.core.bolt.protocol.compactors import (
    Compactor,
    CompactorQuery,
    Compactors,
    TakenCopies,
)
from anabranch.core.bolt.protocol.fronts import FindReceipt, FrontConfiguration, ReadFront
from anabranch.core.bolt.protocol.marks import ReadWriters, Writers
from anabranch.core.bolt.protocol.scans import Plan, Plans, ScanQuery
from anabranch.core.bolt.protocol.set_sums import ReadSetSum, SetSum
from anabranch.core.errors import BadRequest
from anabranch.core.errors.refused import Refused
from anabranch.core.types import LogId, Milliseconds, ObjectId, OnPromote, Position

_POSITION_CHARS = 16
SLICES_MAX = 256
"""Extents that one answer names: bounds the work, and the GETs, that one read can set off."""


ELSEWHERE = ("start", "tail", "settled", "own_records")
"""Fields of a description that are 0 for a log of another engine, whatever it holds: its own nodes
know them, and the catalogue doesn't."""


class Resolve(msgspec.Struct, frozen=True, array_like=True, tag="resolve"):
    """Which bytes hold the records of `log` from `start` on? `SLICES_MAX` extents of them at most.

    Speculative: also past the settled position.
    """

    log: LogId
    start: Position
    records_max: int
    bytes_max: int
    speculative: bool = False
    ahead_bytes: int = 0
    """Tell also where so much of what follows lies, which will be asked for next."""


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
    """The log that the first of them was appended to, whatever became of it."""
    origin_first: Position
    """Its position there when it was appended; the others' follow."""


class Resolved(msgspec.Struct, frozen=True, array_like=True, tag="resolved"):
    slices: list[Slice]
    start: Position
    tail: Position
    settled: Position
    generation: int
    undecided: str | None
    quotas: list[LogQuota] = []
    """The log's, if it has one."""
    ahead: list[Slice] = []
    """What follows the slices, as far as it was asked for and may be read."""


class PlanPage(msgspec.Struct, frozen=True, array_like=True, tag="plan-page"):
    """Some slices of a scan plan, in order of position."""

    slices: list[Slice]
    next: Position
    """Where the next page begins; the plan's end if this was the last."""
    seals: bytes = b""
    """Eight for each slice (see `scans`); the broker adds them for the client."""
    secret: bytes = b""
    """From the metadata to the broker alone: what it seals with."""


class FoundPlan(msgspec.Struct, frozen=True, array_like=True, tag="found-plan"):
    """From the metadata to the broker alone."""

    plan: Plan
    secret: bytes
    quotas: list[LogQuota] = []
    """The log's, if it has one."""


class Describe(msgspec.Struct, frozen=True, array_like=True, tag="describe"):
    """By full name (`orders`, `orders--fork`, `orders@fork`) or by id."""

    log: str | LogId


class ListLogs(msgspec.Struct, frozen=True, array_like=True, tag="list"):
    """In order of name. `tree` confines it to one root and its forks, `owner` to those whose
    owner's name begins so, `engine` to those that this engine serves.
    """

    prefix: str = ""
    tree: str | None = None
    after: str = ""
    count_max: int = 1_000
    owner: str = ""
    engine: str = ""


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
    on_promote: dict[str, OnPromote] = {}
    """What each does if its log is promoted, or the fork that has one of its name."""


class Mark(Compact, frozen=True):
    """Up to where two logs were compared by a page, and what the pages before it found."""

    a: Position
    b: Position
    end_a: Position
    """Settled when the first page was asked for: all pages end there."""
    end_b: Position
    since: Position
    shared: Position
    met: bool
    """Both have a record before."""

    @property
    def text(self) -> str:
        """What HTTP gives and takes; `parse` reads it."""
        return ".".join(str(int(each)) for each in msgspec.structs.astuple(self))

    @staticmethod
    def parse(text: str) -> "Mark":
        """BadRequest if it is none."""
        parts = text.split(".")
        fields = len(Mark.__struct_fields__)
        if len(parts) != fields or not all(
            each.isascii() and each.isdecimal() and len(each) <= _POSITION_CHARS for each in parts
        ):
            raise BadRequest("a comparison", "`after` isn't the `next` of a page: begin anew")
        *positions, met = map(int, parts)
        return Mark(*positions, met=met > 0)


class Compare(msgspec.Struct, frozen=True, array_like=True, tag="compare"):
    a: LogId
    b: LogId
    after: Mark | None = None
    """The `next` of the page before, to go on there."""


class Comparison(msgspec.Struct, frozen=True, array_like=True, tag="comparison"):
    """Where two logs part, and the ranges (from, to) of each that the other doesn't have.

    Where a log was trimmed, nobody can always tell whether it had a record.
    """

    shared: Position
    """Both have the same records at the same positions from `since` up to here."""
    only_a: list[tuple[Position, Position]]
    """Positions of the first log whose records aren't among the settled ones of the second, and
    never were: an undecided promotable fork may withhold some of them for now.
    """
    only_b: list[tuple[Position, Position]]
    complete: bool
    """False if there is more than one answer looks at."""
    since: Position = 0
    """Where the log that was trimmed further begins: below it nothing is compared by position."""
    trimmed_a: list[tuple[Position, Position]] = []
    """Positions of the first log that can't be compared: the second may have had their records, and
    trimmed them.
    """
    trimmed_b: list[tuple[Position, Position]] = []
    next: Mark | None = None
    """Where the next page goes on. Without one, and not complete: records that a severed fork took
    over from its lost parent are compared with all others, and these are too many.
    """


def first_difference(
    shared: Position, end_a: Position, end_b: Position, *sides: list[tuple[Position, Position]]
) -> Position:
    """Up to where two logs are the same that are so below `shared`, by the ranges that only one of
    them has: what is common is in order, so that the first record that isn't begins a range.
    """
    return min([end_a, end_b, *(at for side in sides for at, _ in side if at >= shared)])


def together(pages: list[Comparison]) -> Comparison:
    """The pages of a comparison, in order, as one that had no limit."""
    assert pages, "a comparison has a page at least"

    def ranges(side: str) -> list[tuple[Position, Position]]:
        found: list[tuple[Position, Position]] = []
        for page in pages:
            for first, end in getattr(page, side):
                follows = found and found[-1][1] == first
                found.append((found.pop()[0] if follows else first, end))
        return found

    first = pages[0]
    sides = {side: ranges(side) for side in ("only_a", "only_b", "trimmed_a", "trimmed_b")}
    shared = first.shared
    if first.next is not None and shared > first.since:
        shared = first_difference(shared, first.next.end_a, first.next.end_b, *sides.values())
    return msgspec.structs.replace(
        first,
        shared=shared,
        **sides,
        complete=pages[-1].complete,
        next=pages[-1].next,
    )


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
    format: int = 0
    """Of the cluster's commands; 0 from a leader that doesn't say it."""


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
    | FindReceipt
    | ReadFront
    | ReadWriters
    | ReadSetSum
    | ScanQuery
    | CompactorQuery
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
    | Receipt
    | FrontConfiguration
    | Writers
    | SetSum
    | PlanPage
    | FoundPlan
    | Plans
    | Compactor
    | Compactors
    | TakenCopies
    | Refused
)
