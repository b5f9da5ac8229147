"""Compactors: their epochs, and when these are over (decision 83).

A compactor's record lies among those of the brokers, so that whatever asks which epochs are alive
knows it: what it writes is no orphan. It has no seat, so nothing is placed on it, and commits under
its epoch are refused. After its end the record stays until no URL can be used any more that was
signed for it: an object that came after the orphans of its epoch were looked for would stay.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch.core.bolt.protocol.commands import Done, check_format
from anabranch.core.bolt.protocol.compactors import (
    COMPACTORS_FORMAT,
    RUNNING,
    Compactor,
    CompactorId,
    Compactors,
    EndCompactor,
    FindCompactor,
    LapseCompactors,
    ListCompactors,
    RegisterCompactor,
    RenewCompactor,
)
from anabranch.core.bolt.state.replica import BrokerRecord, Replica
from anabranch.core.errors import BadRequest, CompactorEnded, TooMany
from anabranch.core.types import Milliseconds

NOT_KNOWN = "it isn't known: it ended some time ago, or there never was such a compactor"
ENDED = "it was ended by request, or its lease was over before it was renewed"


def register(replica: Replica, command: RegisterCompactor) -> Compactor:
    check_format(replica.format, COMPACTORS_FORMAT, "a compactor")
    limits, what = replica.limits, "a compactor"
    if not 0 < len(command.name) <= limits.note_chars_max:
        reason = f"its name has 1 to {limits.note_chars_max} characters (note_chars_max)"
        raise BadRequest(what, reason)
    _check_lease(replica, command.lease_ms)
    if len(replica.compactors) >= limits.compactors_max:
        raise TooMany("compactors", limits.compactors_max, "compactors_max")
    replica.broker_epochs += 1
    id = CompactorId(replica.broker_epochs)
    expires = replica.at + command.lease_ms
    compactor = replica.compactors[id] = Compactor(id, command.name, replica.at, expires)
    assert compactor.key not in replica.brokers, "an epoch is given once"
    replica.brokers[compactor.key] = BrokerRecord(id)
    return compactor


def renew(replica: Replica, command: RenewCompactor) -> Compactor:
    compactor = alive(replica, command.compactor)
    _check_lease(replica, command.lease_ms)
    assert compactor.key in replica.brokers, "its epoch is alive"
    expires = max(compactor.expires, replica.at + command.lease_ms)
    renewed = replica.compactors[compactor.id] = replace(compactor, expires=expires)
    return renewed


def end(replica: Replica, command: EndCompactor) -> Done:
    _end(replica, command.compactor)
    return Done()


def lapse(replica: Replica, command: LapseCompactors) -> Done:
    """One that was renewed since the leader looked goes on."""
    for id in command.ended:
        found = replica.compactors.get(id)
        if found is not None and found.expires <= replica.at:
            _end(replica, id)
    for id in command.forgotten:
        found = replica.compactors.get(id)
        if found is not None and found.ended != RUNNING:
            assert not replica.brokers[found.key].committed, "a compactor commits nothing"
            del replica.compactors[id]
            del replica.brokers[found.key]
    return Done()


def find(replica: Replica, query: FindCompactor) -> Compactor:
    return alive(replica, query.compactor)


def listed(replica: Replica, query: ListCompactors) -> Compactors:
    return Compactors([*replica.compactors.values()])


def alive(replica: Replica, id: CompactorId) -> Compactor:
    """The compactor, if it may still do something; raises CompactorEnded."""
    found = replica.compactors.get(id)
    if found is None:
        raise CompactorEnded(id, NOT_KNOWN)
    if found.ended != RUNNING or found.expires <= replica.at:
        raise CompactorEnded(id, ENDED)
    return found


def overdue(replica: Replica, now: Milliseconds) -> list[CompactorId]:
    """Those whose leases are over."""
    assert now >= 0, "leases are told by a clock"
    return [
        each.id
        for each in replica.compactors.values()
        if each.ended == RUNNING and each.expires <= now
    ]


def unusable(replica: Replica, before: Milliseconds) -> list[CompactorId]:
    """Those that ended before a time, and whose URLs were all to be used before it."""
    assert RUNNING < 0, "no time is taken for one that hasn't ended"
    return [
        each.id
        for each in replica.compactors.values()
        if each.ended != RUNNING and max(each.ended, each.expires) <= before
    ]


def breaches(replica: Replica) -> Iterator[tuple[str, str]]:
    """A compactor has an epoch of its own that counts as alive, no seat and no commits."""
    for id, compactor in replica.compactors.items():
        record = replica.brokers.get(compactor.key)
        if record is None or record.epoch != id or compactor.id != id:
            yield "", f"compactor {id} has no epoch that is alive"
        elif record.committed or record.highest >= 0:
            yield "", f"compactor {id} has committed something"
        if compactor.key in replica.placement.seats:
            yield "", f"compactor {id} has a seat among the brokers"
    epochs = [record.epoch for record in replica.brokers.values()]
    if len({*epochs}) != len(epochs):
        yield "", "two of the lives of brokers and compactors have one epoch"


def _end(replica: Replica, id: CompactorId) -> None:
    found = replica.compactors.get(id)
    if found is not None and found.ended == RUNNING:
        assert found.began <= replica.at, "it has begun before it ends"
        replica.compactors[id] = replace(found, ended=replica.at)


def _check_lease(replica: Replica, lease_ms: Milliseconds) -> None:
    limit = replica.limits.compactor_lease_ms_max
    if not 0 < lease_ms <= limit:
        reason = f"it lies between 1 and {limit} ms (compactor_lease_ms_max)"
        raise BadRequest(f"a lease of {lease_ms} ms for a compactor", reason)
