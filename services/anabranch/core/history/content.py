"""What every log holds: acknowledged once, never invented, whole, inherited, the same for all."""

from anabranch.core.history.calls import (
    Append,
    Delivery,
    Fate,
    Final,
    Origin,
    Read,
    RecordId,
    Redeem,
    Scan,
    Stream,
    Verdict,
)
from anabranch.core.history.family import Family, Member, Violation
from anabranch.core.types import Kind, LogId, Position


def content_violations(family: Family) -> list[Violation]:
    contents = Contents(family)
    for member in family.members.values():
        if member.alive:
            contents.whole(member)
            contents.inherited(member)
    for call in family.history.calls:
        if isinstance(call, Append):
            contents.appended(call)
        elif isinstance(call, Read | Scan) and call.ok:
            contents.claim(call.log, call.first, call.records, "a read")
            contents.traced(call.log, call.records, call.origins)
        elif isinstance(call, Redeem) and call.ok:
            contents.claim(call.into, call.position, call.records, "a redeemed receipt")
        elif isinstance(call, Stream):
            for push in call.pushes:
                if isinstance(push, Delivery) and not push.speculative:
                    contents.claim(call.log, push.first, push.records, "a subscription")
    return contents.found


class Contents:
    """Compares all that was said of positions; of what nobody can read any more, among itself."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.found: list[Violation] = []
        self._said: dict[tuple[LogId, Position], RecordId] = {}
        self._relatives: dict[tuple[LogId, LogId], bool] = {}
        self._origins: dict[RecordId, Origin] = {}
        self._born: dict[Origin, RecordId] = {}

    def _fail(self, rule: str, says: str) -> None:
        self.found.append(Violation(rule, says))

    def whole(self, member: Member) -> None:
        """Density; no record twice, none unsent, none of a log that it doesn't descend from."""
        final, name = _final(member), self.family.name(member.log)
        if final.start + len(final.records) != final.settled or final.settled > final.tail:
            self._fail(
                "B3 density",
                f"{name} says {final.start}..{final.settled}..{final.tail} but gives "
                f"{len(final.records)} records",
            )
        if len(self.family.where(member.log)) != len(final.records):
            self._fail("1 exactly once", f"{name} holds {_doubles(final.records)} more than once")
        for index, record in enumerate(final.records):
            call = self.family.sender.get(record)
            if call is None:
                self._fail("2 nothing unsent", f"{name} holds {record}, which nobody sent")
            elif call.verdict is Verdict.REFUSED:
                self._fail(
                    "2 nothing refused",
                    f"{name} holds {record}, whose append to {self.family.name(call.log)} was "
                    f"refused with {call.code}",
                )
            elif not self._descends(member.log, call.log):
                self._fail(
                    "B7 isolation",
                    f"{name} holds {record} at {final.start + index}, which was appended to "
                    f"{self.family.name(call.log)}",
                )
        self.traced(member.log, final.records, final.origins)

    def _descends(self, heir: LogId, log: LogId) -> bool:
        key = (heir, log)
        known = self._relatives.get(key)
        if known is None:
            home = self.family.survivor(log)
            known = any(elder.log == home for elder in self.family.lineage(heir))
            self._relatives[key] = known
        return known

    def inherited(self, member: Member) -> None:
        """The parent's prefix below the fork point; on a continuous fork, all that came since."""
        parent = self.family.parent(member.log)
        if parent is None or not parent.alive:
            return
        mine, theirs = _final(member), _final(parent)
        name = self.family.name(member.log)
        low, high = max(mine.start, theirs.start), min(member.fork_point, theirs.settled)
        if low < high and _slice(mine, low, high) != _slice(theirs, low, high):
            self._fail("B1 prefix", f"{name} differs from its parent below {high}")
        after = _slice(mine, max(member.fork_point, mine.start), mine.settled)
        from_above = [
            record
            for record in after
            if record in self.family.sender
            and self.family.survivor(self.family.sender[record].log) != member.log
        ]
        if member.kind is Kind.SEVERED:
            if from_above:
                self._fail("B4 severed", f"{name} inherited {from_above[:3]} after its fork point")
            return
        since = _slice(theirs, max(member.fork_point, theirs.start), theirs.settled)
        settled = mine.settled == mine.tail and theirs.settled == theirs.tail
        count = min(len(from_above), len(since))
        if settled:
            trimmed = max(mine.start, theirs.start) > member.fork_point
            same = from_above[len(from_above) - count :] == since[len(since) - count :]
            same = same and (trimmed or len(from_above) == len(since))
        else:
            same = max(mine.start, theirs.start) > member.fork_point
            same = same or from_above[:count] == since[:count]
        if not same:
            self._fail(
                "B4 inheritance",
                f"{name} inherited {len(from_above)} records since its fork point, but not the "
                f"{len(since)} of its parent in their order",
            )

    def appended(self, call: Append) -> None:
        home = self.family.members.get(self.family.survivor(call.log))
        if call.ok and call.position is not None:
            self.claim(call.log, call.position, call.records, "an append")
        if home is None or not home.alive:
            return
        final, where = _final(home), self.family.where(home.log)
        places = [where.get(record) for record in call.records]
        name = self.family.name(home.log)
        if all(place is None for place in places):
            gone = final.start > 0 or final.settled < final.tail
            if call.ok and call.position is None and not gone:
                self._fail("1 acknowledged", f"{name} has lost {call.records}, promised a receipt")
            return
        kept = [place for place in places if place is not None]
        trimmed = kept[0] == final.start > 0
        expected = list(range(kept[0], kept[0] + len(kept)))
        if kept != expected or (len(kept) < len(places) and not trimmed):
            self._fail("B3 whole", f"{name} holds the batch {call.records} at {places}")

    def claim(self, log: LogId, first: Position, records: list[RecordId], by: str) -> None:
        """Somebody was told that these positions hold these records, for good (spec, B2)."""
        home = self.family.members.get(self.family.survivor(log))
        if home is not None and home.alive:
            final = _final(home)
            if first >= final.start:
                here = _slice(final, first, first + len(records))
                if here != records:
                    self._fail(
                        "B2 immutability",
                        f"{by} of {self.family.name(log)} gave {_few(records)} at {first}, but in "
                        f"the end {self.family.name(home.log)} holds {_few(here)} there",
                    )
                return
        for position, record in enumerate(records, first):
            self._remember(log, position, record, by)

    def _remember(self, log: LogId, position: Position, record: RecordId, by: str) -> None:
        place = self.family.place(log, position)
        home = self.family.members.get(place[0])
        before = None
        if home is not None and home.alive:
            final = _final(home)
            if final.start <= place[1] < final.settled:
                before = final.records[place[1] - final.start]
        if before is None:
            before = self._said.setdefault(place, record)
        if before != record:
            self._fail(
                "B2 immutability",
                f"{by} of {self.family.name(log)} gave {record} at {position}, another {before}",
            )

    def traced(self, log: LogId, records: list[RecordId], origins: list[Origin]) -> None:
        """A record has one origin, in the log that it was appended to, wherever it is read."""
        for record, origin in zip(records, origins, strict=False):
            known = self._origins.setdefault(record, origin)
            other = self._born.setdefault(origin, record)
            call = self.family.sender.get(record)
            if known != origin or other != record:
                name = self.family.name(log)
                self._fail(
                    "7 origin",
                    f"{name} says that {record} was first at {origin}; "
                    f"that was said of {other}, and of it {known}",
                )
            elif call is not None and call.log != origin[0]:
                name = self.family.name(origin[0])
                self._fail("7 origin", f"{record} wasn't appended to {name}")


def _final(member: Member) -> Final:
    assert member.final is not None, "only what is alive has content"
    assert member.final.fate is Fate.ALIVE
    return member.final


def _slice(final: Final, low: Position, high: Position) -> list[RecordId]:
    return final.records[max(0, low - final.start) : max(0, high - final.start)]


def _doubles(records: list[RecordId]) -> list[RecordId]:
    seen: set[RecordId] = set()
    return [record for record in records if record in seen or seen.add(record)][:3]


def _few(records: list[RecordId]) -> str:
    return str(records) if len(records) <= 4 else f"{records[:4]} and {len(records) - 4} more"
