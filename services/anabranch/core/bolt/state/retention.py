"""What may be forgotten: trimmed entries nobody inherits, graves, remembered requests, deleted
objects (spec D4, D8).
"""

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.protocol.commands import Done, ForgetObjects, Trim
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import BadRequest, OutOfRange
from anabranch.core.types import NEVER, Kind, LogId, Position


def trim(replica: Replica, command: Trim) -> Done:
    """Raise the first readable position of one log; what its forks inherited is kept for them."""
    log = replica.forest.find_own(command.log, "trim")
    settled, _ = replica.forest.settled(log)
    if not 0 <= command.before <= settled:
        raise OutOfRange(log.name, command.before, log.start, settled, OutOfRange.TRIM)
    if log.promotable and command.before > log.fork_point:
        raise BadRequest(
            f"trim {log.name} before {command.before}",
            f"what a promotable fork adds is what a promotion keeps: trim up to {log.fork_point}",
        )
    if command.before > log.start:
        log.start = command.before
        release(replica, log)
    return Done()


def release(replica: Replica, log: Log) -> None:
    """Drop entries that neither this log nor a fork of it needs; then see whether its ancestors
    can.
    """
    each: Log | None = log
    while each is not None and each.start:
        index = each.index
        if len(index) and index.first[0] < each.start:
            objects, lengths = index.drop_below(needed_from(each))
            replica.references.dropped(objects, replica.at, lengths)
        each = each.parent


def needed_from(log: Log) -> Position:
    """The lowest position of this log that it or any fork of it may still read."""
    if not log.start:
        return 0
    descent = [log]
    for each in descent:
        if each.start:
            descent.extend(each.children.values())
    needed: dict[LogId, Position] = {}
    for each in reversed(descent):
        low = each.start
        for heir in each.children.values():
            if low:
                low = min(low, _in_parent(heir, needed[heir.id]))
        needed[each.id] = low
    assert 0 <= needed[log.id] <= log.start, "the log itself needs what it can read"
    return needed[log.id]


def _in_parent(heir: Log, low: Position) -> Position:
    """Where a fork's lowest needed position lies in its parent; nowhere if it is the fork's own."""
    assert low >= 0, "positions begin at 0"
    if low < heir.own_from:
        return low
    if heir.kind is Kind.SEVERED:
        return NEVER
    return low - heir.index.count_before(low)


def forget(replica: Replica, command: ForgetObjects) -> Done:
    replica.references.forget(command.objects)
    return Done()


def referenced(replica: Replica) -> set[int]:
    """Every object that some extent of some log is in."""
    found: set[int] = set()
    for log in replica.forest.logs.values():
        found.update(log.index.object)
    return found


def prune(replica: Replica) -> None:
    """Forget replies and graves that are too old to be asked for; both are in order of age."""
    limits, forest = replica.limits, replica.forest
    replica.requests.prune(replica.at, limits)
    oldest = replica.at - limits.tombstone_ms
    while forest.graves:
        grave = next(iter(forest.graves.values()))
        if grave.at >= oldest and len(forest.graves) <= limits.tombstones_max:
            break
        forest.forget_oldest_grave()
