"""Real time: what returned before another call began comes before it in every log."""

from anabranch.core.history.calls import UNTOLD, Append, Fork, Look, Read, RecordId, Scan
from anabranch.core.history.family import Family, Latest, Violation
from anabranch.core.types import NEVER, Kind, LogId, Position


def order_violations(family: Family) -> list[Violation]:
    found: list[Violation] = []
    for member in family.members.values():
        if member.alive and member.final is not None:
            found.extend(_sweep(family, member.log, member.final.records, NEVER))
            found.extend(_sessions(family, member.log, member.final.records))
            if isinstance(member.birth, Fork):
                found.extend(_around_fork(family, member.birth, member.log))
    for call in family.history.calls:
        if isinstance(call, Read | Scan) and call.ok:
            found.extend(_sweep(family, call.log, call.records, call.returned))
    found.extend(_tails(family))
    return found


def _sweep(family: Family, log: LogId, records: list[RecordId], known: int) -> list[Violation]:
    """From the end to the start: nothing may stand before what had returned when it was invoked."""
    earliest, first = NEVER, -1
    for record in reversed(records):
        call = family.sender.get(record)
        if call is None:
            continue
        assert call.invoked <= call.returned
        if earliest < call.invoked:
            says = f"{family.name(log)} holds {record} before {first}, which was acknowledged first"
            return [Violation("3 real time", says)]
        if call.invoked > known:
            says = f"{family.name(log)} gave {record} before it was sent"
            return [Violation("5 future", says)]
        if call.ok and call.returned < earliest:
            earliest, first = call.returned, record
    return []


def _sessions(family: Family, log: LogId, records: list[RecordId]) -> list[Violation]:
    """What one client sent to one log without waiting stands in the order in which it was sent."""
    latest: dict[tuple[int, LogId], int] = {}
    for record in records:
        call = family.sender.get(record)
        if call is None or not call.ok:
            continue
        session = (call.client, call.log)
        if call.invoked < latest.get(session, 0):
            says = f"{family.name(log)} holds {record} after what its client appended later"
            return [Violation("3 session", says)]
        latest[session] = call.invoked
    return []


def _around_fork(family: Family, fork: Fork, log: LogId) -> list[Violation]:
    """Below the fork point is what came before the fork, above it what came after."""
    member = family.members[log]
    final = member.final
    assert member.log == log
    assert final is not None, "it is alive"
    at_tail = fork.past is None and not fork.timed
    for position, record in enumerate(final.records, final.start):
        call = family.sender.get(record)
        if call is None:
            continue
        if position < member.fork_point and call.invoked > fork.returned:
            says = f"{member.name} inherited {record} below its fork point, sent after the fork"
            return [Violation("7 fork point", says)]
        if at_tail and position >= member.fork_point and call.returned < fork.invoked and call.ok:
            says = f"{member.name} has {record} past its fork point, acknowledged before the fork"
            return [Violation("7 fork point", says)]
    if fork.past is not None and fork.ok and fork.fork_point != fork.past + 1:
        says = f"{member.name} was cut at {fork.fork_point}, not after {fork.past}"
        return [Violation("7 fork point", says)]
    return []


class _Sighting:
    """Somebody was told a tail and a settled position."""

    __slots__ = ("invoked", "returned", "settled", "tail", "what")

    def __init__(
        self, invoked: int, returned: int, tail: Position, settled: Position | None, what: str
    ) -> None:
        assert invoked <= returned, "an answer comes after its question"
        self.invoked, self.returned = invoked, returned
        self.tail, self.settled, self.what = tail, settled, what


def _tails(family: Family) -> list[Violation]:
    """A tail covers every append acknowledged before it was asked for; tails never go back."""
    sightings: dict[LogId, list[_Sighting]] = {}
    ends: dict[LogId, list[tuple[int, int]]] = {}
    for call in family.history.calls:
        if not call.ok:
            continue
        if isinstance(call, Look | Read):
            seen = _Sighting(call.invoked, call.returned, call.tail, call.settled, "a tail")
            sightings.setdefault(call.log, []).append(seen)
        elif isinstance(call, Fork) and call.kind is Kind.CONTINUOUS and call.log != UNTOLD:
            seen = _Sighting(call.invoked, call.returned, call.fork_point, None, "a fork point")
            sightings.setdefault(call.parent, []).append(seen)
        elif isinstance(call, Append) and call.position is not None:
            end = call.position + len(call.records)
            ends.setdefault(call.log, []).append((call.returned, end))
    found: list[Violation] = []
    for log, seen in sightings.items():
        found.extend(_growing(family, log, seen, Latest(ends.get(log, []))))
        found.extend(_not_from_the_future(family, log, seen))
    return found


def _growing(
    family: Family, log: LogId, sightings: list[_Sighting], ends: Latest
) -> list[Violation]:
    assert sightings, "somebody has seen it"
    tails = Latest([(seen.returned, seen.tail) for seen in sightings])
    settled = Latest([(s.returned, s.settled) for s in sightings if s.settled is not None])
    for seen in sightings:
        low = max(ends.before(seen.invoked) or 0, tails.before(seen.invoked) or 0)
        if seen.tail < low:
            says = f"{family.name(log)} gave {seen.what} of {seen.tail} when {low} was known"
            return [Violation("5 tail", says)]
        if seen.settled is not None and seen.settled < (settled.before(seen.invoked) or 0):
            says = f"{family.name(log)} gave settled position {seen.settled}, lower than before"
            return [Violation("5 settled", says)]
    return []


def _not_from_the_future(family: Family, log: LogId, sightings: list[_Sighting]) -> list[Violation]:
    home = family.members.get(family.survivor(log))
    final = home.final if home is not None and home.alive else None
    if final is None:
        return []
    for seen in sightings:
        if seen.tail > final.tail or (seen.settled or 0) > final.settled:
            says = f"{family.name(log)} gave tail {seen.tail}, in the end it is {final.tail}"
            return [Violation("5 future", says)]
        last = (seen.settled or 0) - 1
        if last >= final.start:
            call = family.sender.get(final.records[last - final.start])
            if call is not None and call.invoked > seen.returned:
                says = f"{family.name(log)} gave settled {last + 1}, whose last record came later"
                return [Violation("5 future", says)]
    return []
