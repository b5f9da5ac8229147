"""Queries: what the metadata answer without changing anything."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from anabranch.core.bolt.logs import fronts, writers
from anabranch.core.bolt.logs.comparison import compare
from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.logs.lineage import lineage_of, position_at, slices
from anabranch.core.bolt.logs.set_sums import range_sum
from anabranch.core.bolt.protocol.commands import BOLT, FRONT, Description, EngineSettings, LogQuota
from anabranch.core.bolt.protocol.compactors import FindCompactor, ListCompactors
from anabranch.core.bolt.protocol.fronts import FindReceipt, ReadFront
from anabranch.core.bolt.protocol.marks import ReadWriters
from anabranch.core.bolt.protocol.queries import (
    SLICES_MAX,
    Answer,
    At,
    Census,
    Compare,
    Cursors,
    Describe,
    ListBrokers,
    Listing,
    ListLogs,
    Mark,
    Pool,
    PositionAt,
    Query,
    ReadCursors,
    Resolve,
    Resolved,
    ResolveReceipt,
    Settled,
    Slice,
    Survey,
)
from anabranch.core.bolt.protocol.scans import FindPlan, ListPlans, ReadPlan
from anabranch.core.bolt.protocol.set_sums import ReadSetSum, SetSum
from anabranch.core.bolt.state.cursors import choice
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.scans import compactors, plans
from anabranch.core.errors import BadRequest, OutOfRange, ReceiptPending
from anabranch.core.limits import MIB
from anabranch.core.types import Kind, LogId, Position

LISTED_MAX = 10_000
LISTED_BYTES_MAX = 4 * MIB
"""One listing's; who made a log and why takes most, where it is told at length."""
_DESCRIBED_BYTES = 256
_CHAR_BYTES_MAX = 4


def answer(replica: Replica, query: Query) -> Answer:
    return _ANSWER[type(query)](replica, query)


def describe(replica: Replica, log: Log) -> Description:
    forest = replica.forest
    tail = settled = forest.tail(log)
    undecided = blocked = None
    if forest.undecided:
        settled, undecided = forest.settled(log)
        blocked = forest.blocked_by(log)
    assert log.start <= settled <= tail, "what is settled lies between start and tail"
    is_root = log.kind is Kind.ROOT
    seat = replica.placement.serving(log.id, log.family.id, is_root=is_root)
    description = Description(
        id=log.id,
        name=log.name,
        kind=log.kind,
        root=log.family.root,
        parent=log.parent.name if log.parent else None,
        fork_point=log.fork_point,
        start=log.start,
        tail=tail,
        settled=settled,
        own_records=_own_records(log, tail),
        promotable=log.promotable,
        depth=log.depth,
        forks=len(log.children),
        generation=log.generation,
        created_at=log.created_at,
        by=log.by,
        why=log.why,
        on_parent_delete=log.on_parent_delete,
        expires_at=log.expires_at,
        undecided=undecided.name if undecided else None,
        append_blocked_by=blocked.name if blocked else None,
        quota=forest.quotas.get(log.id),
        owner=log.owner,
        broker=seat.name if seat else "",
        address=seat.address if seat else "",
    )
    # Every fork is answered with one: what few logs have costs the others a look.
    if log.front is not None and not log.front.ended:
        front, ends = _located(replica, log, log.front.settings), log.front.configuration.ending
        return replace(description, front=front, front_ends=ends)
    if not log.engine:
        return description
    assert log.settings is not None, "a log of another engine has settings"
    return replace(description, engine=log.engine, settings=_located(replica, log, log.settings))


def embedded_sequencers(log: LogId, settings: EngineSettings) -> tuple[str, ...]:
    """The nodes of an embedded log that its clients ask first."""
    return tuple(f"/{log}/sequencer-{n}" for n in range(settings.sequencers))


def _located(replica: Replica, log: Log, settings: EngineSettings) -> EngineSettings:
    """The settings of another engine's log, or of a front, with the addresses at which clients
    find it.

    An embedded log's are relative: names of nodes behind whichever address its service has.
    """
    addresses = settings.addresses
    if settings.embedded:
        addresses = embedded_sequencers(log.id, settings)
    return replace(settings, addresses=addresses, cluster=settings.cluster or replica.cluster)


def _own_records(log: Log, tail: Position) -> int:
    """Records appended to this very log, or promoted into it, and not what it inherited."""
    if log.kind is Kind.CONTINUOUS:
        return log.index.records
    assert log.fork_point <= tail, "a log has what it began with"
    return tail - log.fork_point


def _describe(replica: Replica, query: Describe) -> Description:
    return describe(replica, replica.forest.find(query.log))


def _resolve(replica: Replica, query: Resolve) -> Resolved:
    """The paper's read: blocked past the earliest fork point, unless asked for as speculation
    (AgileLog, 5.6).
    """
    forest = replica.forest
    log = forest.find_own(query.log, "read")
    tail = settled = forest.tail(log)
    undecided = None
    if forest.undecided:
        settled, undecided = forest.settled(log)
    if not log.start <= query.start <= tail:
        raise OutOfRange(log.name, query.start, log.start, tail)
    assert settled <= tail, "nothing is settled beyond the tail"
    end = tail if query.speculative else settled
    found = (
        slices(forest, log, query.start, end, SLICES_MAX, query.records_max, query.bytes_max)
        if query.start < end and query.records_max > 0
        else []
    )
    ahead: list[Slice] = []
    if found and query.ahead_bytes > 0:
        following = found[-1].first + found[-1].count
        if following < end:
            ahead = slices(forest, log, following, end, SLICES_MAX, bytes_max=query.ahead_bytes)
    return Resolved(
        slices=found,
        start=log.start,
        tail=tail,
        settled=settled,
        generation=lineage_of(forest, log, 0).generation,
        undecided=undecided.name if undecided else None,
        quotas=[LogQuota(log.id, log.name, quota)] if (quota := forest.quotas.get(log.id)) else [],
        ahead=ahead,
    )


def _list(replica: Replica, query: ListLogs) -> Listing:
    forest = replica.forest
    logs = forest.logs.values() if not query.owner else _owned(forest, query.owner)
    if query.engine not in ("", BOLT) and not query.owner:
        logs = forest.fronts.values() if query.engine == FRONT else forest.foreign.values()
    names = [
        log.name
        for log in logs
        if log.name.startswith(query.prefix)
        and log.name > query.after
        and (query.tree is None or log.family.root == query.tree)
        and _serves(query.engine, log)
    ]
    names.sort()
    found: list[Description] = []
    size = 0
    for name in names[: max(1, min(query.count_max, LISTED_MAX))]:
        log = forest.names[name]
        found.append(describe(replica, log))
        size += _DESCRIBED_BYTES + _CHAR_BYTES_MAX * (len(log.by) + len(log.why) + len(log.owner))
        if size >= LISTED_BYTES_MAX:
            break
    return Listing(found, len(found) < len(names))


def _serves(engine: str, log: Log) -> bool:
    """Is the log of this engine? In its place, `lazy` stands for the lazy fronts of Bolt's logs."""
    if engine == FRONT:
        return log.front is not None and not log.front.ended
    return engine in ("", log.engine or BOLT)


def _owned(forest: Forest, prefix: str) -> Iterator[Log]:
    return (log for owner, log in forest.owned.items() if owner.startswith(prefix))


def _redeem(replica: Replica, query: ResolveReceipt) -> Settled:
    log, position = replica.redeem(query.receipt)
    settled, undecided = replica.forest.settled(log)
    if not 0 <= position < settled:
        if undecided is None or position < 0:
            raise BadRequest("receipt", f"{log.name} never gave one for position {position}")
        raise ReceiptPending(log.name, undecided.name)
    return Settled(log.name, position)


def _position_at(replica: Replica, query: PositionAt) -> At:
    log = replica.forest.find_own(query.log, "look-up by time")
    settled, _ = replica.forest.settled(log)
    return At(position_at(replica.forest, log, query.at, settled))


def _set_sum(replica: Replica, query: ReadSetSum) -> SetSum:
    log = replica.forest.find_own(query.log, "set sum")
    return range_sum(replica.forest, log, query.start, query.end)


def _cursors(replica: Replica, query: ReadCursors) -> Cursors:
    log = replica.forest.find_own(query.log, "cursor")
    return Cursors(dict(log.cursors), {name: choice(log, name) for name in log.cursors})


def _pool(replica: Replica, query: ListBrokers) -> Pool:
    return Pool(replica.placement.pool(), replica.format)


def _survey(replica: Replica, query: Survey) -> Census:
    forest = replica.forest
    logs = forest.logs.values()
    roots = sum(log.kind is Kind.ROOT for log in logs)
    return Census(
        cluster=replica.cluster,
        logs=roots,
        forks=len(forest.logs) - roots,
        extents=sum(len(log.index) for log in logs),
        garbage_objects=len(replica.references.garbage),
        producers=sum(len(log.producers) for log in logs),
        applied=replica.applied,
    )


def _compare(replica: Replica, query: Compare) -> Answer:
    forest = replica.forest
    a, b = (forest.find_own(each, "comparison") for each in (query.a, query.b))
    if query.after is not None:
        _check_mark(forest, query.after, a, b)
    return compare(forest, a, b, query.after)


def _check_mark(forest: Forest, mark: Mark, a: Log, b: Log) -> None:
    """Pages end where no position ever moves, so that each goes on where the one before ended."""
    for log, at, end in ((a, mark.a, mark.end_a), (b, mark.b, mark.end_b)):
        settled, _ = forest.settled(log)
        if not 0 <= at <= end <= settled:
            raise BadRequest("a comparison", f"its mark isn't one of {log.name}'s: begin anew")


_ANSWER: dict[type, Callable[..., Answer]] = {
    Resolve: _resolve,
    Describe: _describe,
    ListLogs: _list,
    ResolveReceipt: _redeem,
    FindReceipt: fronts.find_receipt,
    ReadFront: fronts.read_front,
    PositionAt: _position_at,
    ReadCursors: _cursors,
    Survey: _survey,
    ListBrokers: _pool,
    Compare: _compare,
    ReadWriters: writers.read,
    ReadSetSum: _set_sum,
    ReadPlan: plans.read,
    FindPlan: plans.find,
    ListPlans: plans.listed,
    FindCompactor: compactors.find,
    ListCompactors: compactors.listed,
}
