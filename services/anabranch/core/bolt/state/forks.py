"""Roots and forks made, promoted, squashed (AgileLog, 4.1, 5.3 to 5.6; spec 6 to 8)."""

from itertools import accumulate

from anabranch.core.bolt.logs import fronts, writers
from anabranch.core.bolt.logs.forest import Family, Log, Shift, Tombstone, hand_over
from anabranch.core.bolt.logs.index import Index, interleave
from anabranch.core.bolt.logs.lineage import locate, position_at, slices
from anabranch.core.bolt.logs.origins import HERE
from anabranch.core.bolt.protocol.commands import (
    STEADY_FORMAT,
    CreateLog,
    DeleteLog,
    Description,
    Done,
    Expire,
    ForkLog,
    Promote,
    PromoteIf,
    Promotion,
    Squash,
    check_format,
)
from anabranch.core.bolt.protocol.promotions import EXPECT_FORMAT
from anabranch.core.bolt.state import answers, catalogue, cursors, quotas
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.retention import needed_from, release
from anabranch.core.errors import (
    BadRequest,
    ForkBlocked,
    ForkMoved,
    IsRoot,
    LogExists,
    LogHasForks,
    NotPromotable,
    NotRoot,
    OutOfRange,
    Promoted,
    Squashed,
    TooMany,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.records.set_sum import UNKNOWN
from anabranch.core.types import NEVER, Kind, LogId, OnParentDelete, Position


def create(replica: Replica, command: CreateLog) -> Description:
    known = catalogue.known(replica, command.owner)
    if known is not None:
        return catalogue.declared_again(replica, known, command)
    forest = replica.forest
    name = forest.name_root(command.name)
    _check_room(replica, command, name)
    engine, settings = catalogue.chosen(replica, command, name)
    front = fronts.chosen(replica, command, name)
    catalogue.check_front(replica, front, name)
    id = replica.give_id()
    log = Log(id, name, Kind.ROOT, Family(id, name), forest.tails.root(0))
    log.created_at, log.by, log.why = replica.at, command.by, command.why
    log.engine, log.settings, log.front = engine, settings, front
    forest.add(log)
    forest.give(log, command.owner)
    replica.place(log)
    return answers.describe(replica, log)


def fork(replica: Replica, command: ForkLog) -> Description:
    """O(log n) in the number of logs, whatever their length: no entry is copied (AgileLog, 5.4)."""
    known = catalogue.known(replica, command.owner)
    if known is not None:
        return known
    forest = replica.forest
    parent = forest.find_own(command.parent, "fork")
    name = forest.name_fork(parent, command.name, LogId(replica.next_id))
    _check_fork(replica, command, parent, name)
    severed = command.kind is Kind.SEVERED
    fork_point = _severed_point(replica, parent, command) if severed else forest.tail(parent)
    assert parent.start <= fork_point, "what a fork inherits can be read"
    place = forest.tails.root(fork_point) if severed else forest.tails.fork(parent.place)
    child = Log(replica.give_id(), name, command.kind, parent.family, place)
    child.parent = parent
    child.depth = parent.depth + 1
    child.fork_point = child.own_from = fork_point
    child.start = parent.start
    child.promotable = command.promotable
    child.on_parent_delete = command.on_parent_delete
    child.created_at, child.by, child.why = replica.at, command.by, command.why
    forest.add(child)
    forest.give(child, command.owner)
    if child.promotable:
        if not parent.promotable_forks:
            forest.tails.block_below(parent.place, +1, [child.place])
        parent.promotable_forks.append((fork_point, child.id))
    quotas.inherit(forest, child, parent, command.quota)
    if command.ttl_ms is not None:
        replica.expire_at(child, replica.at + command.ttl_ms)
    replica.place(child, exclusive=command.exclusive)
    return answers.describe(replica, child)


def promote(replica: Replica, command: Promote) -> Promotion:
    """The fork becomes its parent, by metadata alone: entries after the fork point are merged
    (AgileLog, 5.6).
    """
    forest = replica.forest
    child = forest.find(command.log)
    if not child.promotable:
        raise NotPromotable(child.name, f"it is a {_kind_of(child)}")
    if isinstance(command, PromoteIf):
        _check_own(replica, child, command.expect_own)
    parent = child.parent
    assert parent is not None
    cursors.check_promotion(replica, parent, child)
    writers.check_promotion(replica, parent, child)
    assert (child.fork_point, child.id) in parent.promotable_forks, "it is undecided"
    why = f"{child.name} was promoted"
    squashed = [forest.logs[id] for _, id in parent.promotable_forks if id != child.id]
    for sibling in squashed:
        _squash(replica, sibling, why)
    records = child.index.records
    if not child.promotable_forks:
        forest.tails.block_below(parent.place, -1, [child.place])
    parent.promotable_forks = child.promotable_forks
    _remember_shift(replica, parent, child)
    if records:
        since = parent.index.at_or_before(child.index.first[0] - 1) + 1
        after = parent.index.copy_from(since)
        traced = child.id if replica.format >= STEADY_FORMAT else None
        parent.index.replace_from(since, interleave(after, child.index, traced))
    forest.tails.absorb(parent.place, child.place)
    writers.promote(replica, parent, child)
    _bury_promoted(replica, parent, child)
    for heir in list(child.children.values()):
        hand_over(heir, parent)
    parent.family.reshaped += 1
    release(replica, parent)
    return Promotion(
        parent.name,
        child.fork_point,
        records,
        [log.name for log in squashed],
        cursors.promote(parent, child),
    )


def squash(replica: Replica, command: Squash) -> Done:
    log = replica.forest.find(command.log)
    if log.kind is Kind.ROOT:
        raise IsRoot(log.name)
    _check_notes(replica, log.name, command.by)
    _squash(replica, log, f"by {command.by}" if command.by else "on request")
    return Done()


def delete(replica: Replica, command: DeleteLog) -> Done:
    log = replica.forest.find(command.log)
    if log.kind is not Kind.ROOT:
        raise NotRoot(log.name)
    if log.children and not command.force:
        raise LogHasForks(log.name, len(log.children))
    _squash(replica, log, "its root was deleted")
    return Done()


def expire(replica: Replica, command: Expire) -> Done:
    """Squash forks whose time to live has passed at the leader's time (spec D7)."""
    for id in command.logs:
        log = replica.forest.logs.get(id)
        if log is not None and log.expires_at is not None and log.expires_at <= replica.at:
            _squash(replica, log, "its time to live passed")
    return Done()


def _check_own(replica: Replica, fork: Log, expected: int) -> None:
    """A promotable fork keeps all that it gets, so its count names one state of it and no other.

    Appends that are still on their way come after this command, and are refused as promoted.
    """
    check_format(replica.format, EXPECT_FORMAT, f"a promotion of {fork.name} with a condition")
    if fork.index.records != expected:
        raise ForkMoved(fork.name, expected, fork.index.records)


def _kind_of(log: Log) -> str:
    return {
        Kind.ROOT: "root",
        Kind.SEVERED: "severed fork",
        Kind.CONTINUOUS: "continuous fork that was not created promotable",
    }[log.kind]


def _check_room(replica: Replica, command: CreateLog | ForkLog, name: str) -> None:
    limits = replica.limits
    if name in replica.forest.names:
        raise LogExists(name)
    if len(replica.forest.logs) >= limits.logs_max:
        raise TooMany("logs and forks", limits.logs_max, "logs_max")
    _check_notes(replica, name, command.by, command.why)
    catalogue.check_owner(replica, name, command.owner)


def _check_notes(replica: Replica, name: str, by: str, why: str = "") -> None:
    chars_max = replica.limits.note_chars_max
    assert chars_max > 0, "no note would do"
    if len(by) > chars_max or len(why) > chars_max:
        reason = f"'by' and 'why' may have {chars_max} characters each (note_chars_max)"
        raise BadRequest(name, reason)


def _check_fork(replica: Replica, command: ForkLog, parent: Log, name: str) -> None:
    limits = replica.limits
    _check_room(replica, command, name)
    if command.kind is Kind.ROOT:
        raise BadRequest(name, "a fork is continuous or severed")
    if len(parent.children) >= limits.forks_per_log_max:
        raise TooMany(f"forks of {parent.name}", limits.forks_per_log_max, "forks_per_log_max")
    if parent.depth >= limits.depth_max:
        raise TooMany(f"forks of forks below {parent.name}", limits.depth_max, "depth_max")
    if command.ttl_ms is not None and not 0 < command.ttl_ms <= limits.ttl_ms_max:
        raise BadRequest(name, f"a time to live lies between 1 and {limits.ttl_ms_max} ms")
    if command.quota is not None:
        command.quota.check(name)
    if command.exclusive:
        replica.placement.check_spare(name)
    if command.kind is Kind.SEVERED:
        if command.promotable:
            raise BadRequest(name, "a severed fork can't be promotable: make it continuous")
        if command.past is not None and command.at is not None:
            raise BadRequest(name, "give a position or a time to fork at, not both")
        return
    if command.past is not None or command.at is not None:
        raise BadRequest(
            name, "a continuous fork begins at the tail: only a severed one in the past"
        )
    forest = replica.forest
    if forest.undecided:
        settled, undecided = forest.settled(parent)
        held = forest.tails.block(parent.place)
        if undecided is not None and (held or (parent.promotable_forks and not command.promotable)):
            raise ForkBlocked(parent.name, undecided.name, settled)


def _severed_point(replica: Replica, parent: Log, command: ForkLog) -> Position:
    """Where a severed fork's own records begin. Nothing unsettled may be inherited for good (spec
    D3).
    """
    forest = replica.forest
    settled, undecided = forest.settled(parent)
    tail = forest.tail(parent)
    if command.past is not None:
        point = command.past + 1
        if not parent.start < point <= tail:
            last = tail - 1
            raise OutOfRange(parent.name, command.past, parent.start, last, OutOfRange.PAST)
    elif command.at is not None and replica.format >= STEADY_FORMAT:
        # In order of commit also past the settled position: refused only if what lies there counts.
        point = position_at(forest, parent, command.at, tail)
    elif command.at is not None:
        point = position_at(forest, parent, command.at + 1, settled)
        if point == settled < tail:
            point = tail
    else:
        point = tail
    if point > settled:
        assert undecided is not None
        raise ForkBlocked(parent.name, undecided.name, settled)
    assert 0 <= point <= tail, "a fork begins where its parent has been"
    return point


def _remember_shift(replica: Replica, parent: Log, child: Log) -> None:
    """A promotion is noted in the generation, and how far it moved which of the parent's
    positions.
    """
    assert not child.index.forgotten, "a promotable fork keeps all that it adds"
    since = parent.generation
    parent.generation += child.generation + 1
    counts = list(accumulate(child.index.counts()))
    parent.shifts.append(Shift(since, parent.generation, child.index.thresholds(), counts))
    del parent.shifts[: -replica.limits.promotions_remembered_max]


def _bury_promoted(replica: Replica, parent: Log, child: Log) -> None:
    assert child.promotable, "it can't have been promoted"
    forest = replica.forest
    replica.remove(child)
    refusal = Refused.of(Promoted(child.name, parent.name))
    grave = Tombstone(child.id, child.name, refusal, replica.at, child.owner)
    grave.promoted_into = parent.id
    grave.producers = child.producers
    grave.generation = child.generation
    grave.shifts = child.shifts
    grave.parent_generation = parent.generation
    forest.bury(grave)


def _squash(replica: Replica, top: Log, reason: str) -> None:
    """Remove a log and what inherits from it for good; severed forks keep what they need, or go
    too (spec 8).
    """
    assert replica.forest.logs[top.id] is top, "it is gone already"
    forest = replica.forest
    parent = top.parent
    settled = forest.settled(parent)[0] if parent else 0
    doomed = [(top, min(top.own_from, settled))]
    orphans: list[tuple[Log, Position]] = []
    for log, shared in doomed:
        for heir in log.children.values():
            below = min(shared, heir.own_from)
            keeps = heir.kind is Kind.SEVERED and heir.on_parent_delete is OnParentDelete.ORPHAN
            (orphans if keeps else doomed).append((heir, below))
    for orphan, shared in orphans:
        _adopt(replica, orphan, shared, parent)
    for log, _ in doomed:
        if log is top or log.kind is Kind.SEVERED:
            forest.tails.cut(log.place)
    for log, _ in doomed:
        replica.remove(log)
        replica.references.dropped(log.index.object, replica.at, log.index.length)
        refusal = Refused.of(Squashed(log.name, reason, parent.name if parent else "no log"))
        if log is top and parent is None:
            message = f"{log.name} was deleted, and its records are gone"
            refusal = Refused(refusal.code, message, refusal.facts)
        forest.bury(Tombstone(log.id, log.name, refusal, replica.at, log.owner))
    if parent is None:
        return
    if top.promotable:
        parent.promotable_forks.remove((top.fork_point, top.id))
        if not parent.promotable_forks:
            forest.tails.block_below(parent.place, -1, [])
    release(replica, parent)


def _adopt(replica: Replica, orphan: Log, shared: Position, parent: Log | None) -> None:
    """Give a severed fork the entries it inherited from logs that are about to go (spec D9).

    Positions below `shared` are settled in the surviving parent and stay there. Of an extent the
    fork may use a part: its beginning, its end, or what lies between two records of a log that
    goes.
    """
    assert orphan.kind is Kind.SEVERED, "a continuous fork goes with its parent"
    start = max(shared, needed_from(orphan))
    taken, steady = Index(), replica.format >= STEADY_FORMAT
    if start < orphan.own_from:
        for piece in slices(replica.forest, orphan, start, orphan.own_from, NEVER):
            holder, there = locate(replica.forest, orphan, piece.first)
            index, extent = holder.index, holder.index.at_or_before(there)
            place = piece.object, piece.offset, piece.length
            total = index.sum[extent] if piece.count == index.count(extent) else UNKNOWN
            taken.append(piece.first, piece.count, *place, index.at[extent], total, piece.skip)
            replica.references.added(piece.object)
            if steady:
                taken.origins.note(piece.first, piece.origin, piece.first - piece.origin_first)
        if steady:
            taken.origins.note(orphan.own_from, HERE, 0)
        taken.replace_from(len(taken), orphan.index)
        orphan.index = taken
        orphan.own_from = taken.first[0]
    elif orphan.own_from > shared:
        orphan.own_from = shared
    hand_over(orphan, parent)
    orphan.family.reshaped += 1
