"""Consumers' cursors: kept by a log, and what a promotion does to them.

A cursor lies at or below the settled position, and below that nothing ever moves. So a promotion
leaves every cursor of a log that outlives it before the same record as ever: the parent's, its
other forks', the promoted fork's own forks'. What is to be chosen is only what becomes of the
cursors of the fork that is promoted: to `follow` is to become the parent's, at the same position,
for the parent's records are now the fork's; to `stay` is to end with the fork.

If the parent has a cursor of that name, it is the parent's consumer who chose: to `stay` where it
is and read what the promotion brought, or to `follow` the fork's, never backwards.
"""

from anabranch.core.bolt.logs.forest import Log, check_name
from anabranch.core.bolt.protocol.commands import CommitCursor, DeleteCursor, Done
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import OutOfRange, TooMany
from anabranch.core.types import OnPromote


def commit(replica: Replica, command: CommitCursor) -> Done:
    """Keep a position that is settled; what a subscriber got as speculative it can't commit."""
    log = replica.forest.find_own(command.log, "cursor")
    check_name(command.name, replica.limits.name_chars_max)
    if command.name not in log.cursors:
        _check_room(replica, log, len(log.cursors) + 1)
    settled, _ = replica.forest.settled(log)
    if not 0 <= command.position <= settled:
        raise OutOfRange(log.name, command.position, 0, settled, OutOfRange.CURSOR)
    log.cursors[command.name] = command.position
    if command.on_promote is not None:
        log.on_promote[command.name] = command.on_promote
    return Done()


def delete(replica: Replica, command: DeleteCursor) -> Done:
    log = replica.forest.find_own(command.log, "cursor")
    log.cursors.pop(command.name, None)
    log.on_promote.pop(command.name, None)
    return Done()


def choice(log: Log, name: str) -> OnPromote:
    """Unless it was chosen: those of a fork that may be promoted follow, any others stay."""
    usual = OnPromote.FOLLOW if log.promotable else OnPromote.STAY
    return log.on_promote.get(name, usual)


def check_promotion(replica: Replica, parent: Log, fork: Log) -> None:
    """The parent has room for the cursors that would come to it."""
    assert fork.parent is parent
    coming = [name for name in _followers(fork) if name not in parent.cursors]
    if coming:
        _check_room(replica, parent, len(parent.cursors) + len(coming))


def promote(parent: Log, fork: Log) -> list[str]:
    """Take over what follows the fork; the names of the cursors that came or went on."""
    assert fork.promotable, "it can't have been promoted"
    moved: list[str] = []
    for name in _followers(fork):
        position, own = fork.cursors[name], parent.cursors.get(name)
        if own is not None and (choice(parent, name) is OnPromote.STAY or own >= position):
            continue
        parent.cursors[name] = position
        if own is None and name in fork.on_promote:
            parent.on_promote[name] = fork.on_promote[name]
        moved.append(name)
    return moved


def _followers(fork: Log) -> list[str]:
    return [name for name in fork.cursors if choice(fork, name) is OnPromote.FOLLOW]


def _check_room(replica: Replica, log: Log, wanted: int) -> None:
    assert wanted > 0, "nothing is to be added"
    limit = replica.limits.cursors_per_log_max
    if wanted > limit:
        raise TooMany(f"cursors of {log.name}", limit, "cursors_per_log_max")
