"""What an undecided promotable fork withholds from its parent and others (AgileLog, 4.1, 5.6)."""

from bisect import bisect_right

from anabranch.core.history.calls import (
    Append,
    Call,
    Confirmation,
    Delivery,
    Fate,
    Fork,
    Look,
    Read,
    RecordId,
    Redeem,
    Scan,
    Stream,
)
from anabranch.core.history.family import Family, Member, Violation
from anabranch.core.types import NEVER, Kind, LogId, Position


def settlement_violations(family: Family) -> list[Violation]:
    holds = Holds(family)
    for call in family.history.calls:
        if isinstance(call, Append) and call.ok:
            holds.appended(call)
        elif isinstance(call, Read | Scan) and call.ok:
            holds.seen(call.log, call.first, call.records, call.returned, "a read")
            holds.bounded(call.log, call.settled, call.returned, "a read's settled position")
        elif isinstance(call, Look) and call.ok:
            holds.bounded(call.log, call.settled, call.returned, "a description's settled position")
        elif isinstance(call, Redeem) and call.ok:
            holds.seen(call.into, call.position, call.records, call.returned, "a redeemed receipt")
        elif isinstance(call, Stream):
            for push in call.pushes:
                if isinstance(push, Delivery) and not push.speculative:
                    holds.seen(call.log, push.first, push.records, push.at, "a subscription")
                elif isinstance(push, Confirmation):
                    holds.bounded(call.log, push.up_to, push.at, "a confirmation")
        elif isinstance(call, Fork) and call.ok:
            holds.forked(call)
    return holds.found


def decided_from(family: Family, member: Member) -> int:
    """The earliest time at which this promotable fork may have been promoted or squashed."""
    if member.alive:
        return NEVER
    if member.fate is Fate.PROMOTED:
        return min((call.invoked for call in member.promotes), default=member.birth.invoked)
    return killed_from(family, member)


def killed_from(family: Family, member: Member) -> int:
    """The earliest time at which a call, its age, a rival or an elder may have squashed it."""
    earliest, at = NEVER, member
    while True:
        birth = at.birth
        earliest = min(earliest, *(call.invoked for call in at.squashes), NEVER)
        if isinstance(birth, Fork) and birth.lives < NEVER:
            earliest = min(earliest, birth.invoked + birth.lives)
        parent = family.members.get(at.parent) if at.parent is not None else None
        if parent is None:
            return earliest
        if at.promotable:
            earliest = min(earliest, _rivals(family, at))
        at = parent


def _rivals(family: Family, member: Member) -> int:
    """The earliest promotion that may have squashed this one; those before its birth can't have."""
    assert member.parent is not None, "it is a fork"
    beside = [member.parent, family.survivor(member.parent)]
    earliest = NEVER
    for log in beside:
        for elder in _absorbed(family, log):
            for rival in elder.children:
                if rival is member or rival.fate is not Fate.PROMOTED:
                    continue
                for call in rival.promotes:
                    if call.returned > member.birth.invoked or not call.ok:
                        earliest = min(earliest, call.invoked)
    return earliest


def _absorbed(family: Family, log: LogId) -> list[Member]:
    """The log and what was promoted into it, whose forks became its own."""
    first = family.members.get(log)
    found = [first] if first is not None else []
    for member in found:
        found.extend(child for child in member.children if child.fate is Fate.PROMOTED)
    return found


class Hold:
    """One promotable fork: certainly undecided after `since` and before `until`."""

    __slots__ = ("fork", "fork_point", "since", "until")

    def __init__(self, family: Family, member: Member) -> None:
        self.fork = member.name
        self.fork_point = member.fork_point if member.measured else NEVER
        self.since = member.birth.returned
        self.until = decided_from(family, member)


class Holds:
    """Every hold of every parent, and what each answer must not have shown."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.found: list[Violation] = []
        self._of: dict[LogId, list[Hold]] = {}
        self._limits: dict[LogId, _Limits] = {}
        for member in family.members.values():
            if not member.promotable or member.parent is None:
                continue
            hold, log = Hold(family, member), member.parent
            while True:
                self._of.setdefault(log, []).append(hold)
                elder = family.members.get(log)
                if elder is None or elder.fate is not Fate.PROMOTED or elder.parent is None:
                    break
                log = elder.parent
        for log, holds in self._of.items():
            self._limits[log] = _Limits(holds)

    def _fail(self, rule: str, says: str) -> None:
        self.found.append(Violation(rule, says))

    def bounded(self, log: LogId, end: Position, at: int, what: str) -> None:
        """Nothing past a fork point shows before the decision; before the fork none was there."""
        limits = self._limits.get(log)
        if limits is not None and end > (limit := limits.at(at)):
            self._fail(
                "B9 hold",
                f"{what} of {self.family.name(log)} reached {end} while a promotable fork at "
                f"{limit} was undecided",
            )

    def seen(
        self, log: LogId, first: Position, records: list[RecordId], at: int, what: str
    ) -> None:
        if not records:
            return
        self.bounded(log, first + len(records), at, what)
        member = self.family.members.get(log)
        while member is not None and member.kind is Kind.CONTINUOUS and not member.promotable:
            assert member.parent is not None, "it is a fork"
            parent = self.family.members.get(member.parent)
            if parent is None or not parent.alive:
                return
            limits = self._limits.get(parent.log)
            if limits is not None and (limit := limits.at(at)) < NEVER:
                where = self.family.where(parent.log)
                shown = max((where.get(record, -1) for record in records), default=-1)
                if shown >= limit:
                    self._fail(
                        "B9 hold",
                        f"{what} of {self.family.name(log)} showed {parent.name}'s position "
                        f"{shown} while a promotable fork at {limit} was undecided",
                    )
            member = parent

    def appended(self, call: Append) -> None:
        if call.position is not None:
            end = call.position + len(call.records)
            self.bounded(call.log, end, call.returned, "an append's position")
        elif not self._of.get(call.log) and not self._untold() and not self._promoted(call.log):
            says = f"{self.family.name(call.log)} never had a promotable fork, but gave a receipt"
            self._fail("10 receipt", says)
        hold = self._blocking(call.log, call)
        if hold is not None:
            self._fail(
                "6.2 blocked",
                f"{self.family.name(call.log)} took {call.records} while promotable fork "
                f"{hold.fork} beside it was undecided",
            )

    def _promoted(self, log: LogId) -> bool:
        """An append that is asked for again after a promotion is answered with a receipt."""
        member = self.family.members.get(log)
        return member is not None and member.fate is Fate.PROMOTED

    def _untold(self) -> bool:
        """Whether a fork may have been made of which no answer came."""
        return any(
            isinstance(call, Fork) and call.promotable and call.possible and not call.ok
            for call in self.family.history.calls
        )

    def _blocking(self, log: LogId, call: Call) -> Hold | None:
        """A hold of an ancestor that covered the whole call, above a fork that isn't promotable."""
        member = self.family.members.get(log)
        while member is not None and member.kind is Kind.CONTINUOUS and member.parent is not None:
            if not member.promotable:
                for hold in self._own(member.parent):
                    if hold.since < call.invoked and call.returned < hold.until:
                        return hold
            member = self.family.members.get(member.parent)
        return None

    def _own(self, log: LogId) -> list[Hold]:
        """Holds of forks made of this very log, not of what it was promoted into."""
        member = self.family.members.get(log)
        names = {child.name for child in member.children} if member is not None else set[str]()
        return [hold for hold in self._of.get(log, ()) if hold.fork in names]

    def forked(self, call: Fork) -> None:
        """A fork that would show unsettled positions is refused (spec, D3)."""
        if not call.promotable:
            self.bounded(call.parent, call.fork_point, call.returned, "a fork's fork point")


class _Limits:
    """The least fork point of all holds of one log that were still undecided at a time."""

    def __init__(self, holds: list[Hold]) -> None:
        ordered = sorted(holds, key=lambda hold: hold.until)
        self._until = [hold.until for hold in ordered]
        self._least: list[Position] = [NEVER] * (len(ordered) + 1)
        for index in range(len(ordered) - 1, -1, -1):
            self._least[index] = min(self._least[index + 1], ordered[index].fork_point)

    def at(self, time: int) -> Position:
        return self._least[bisect_right(self._until, time)]
