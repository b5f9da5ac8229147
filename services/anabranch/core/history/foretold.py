"""What clients of a log with a predetermined order saw, and whether it kept its word (Belfast, 3).

Records are all different. `final` is what the log turned out to hold; positions that aren't in it
are no-ops. The same checker judges simulated and real runs.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from anabranch.core.history.calls import RecordId, Verdict
from anabranch.core.history.family import Violation
from anabranch.core.types import NEVER, Nanoseconds, Position


@dataclass(slots=True)
class Placing:
    """One batch, appended once or tried again and again until it was."""

    client: int
    shard: str
    invoked: Nanoseconds
    records: list[RecordId]
    returned: Nanoseconds = NEVER
    positions: list[Position] = field(default_factory=list[Position])
    verdict: Verdict = Verdict.UNKNOWN


@dataclass(frozen=True, slots=True)
class Shown:
    """Delivered: these records, and no others below `upto`. What isn't speculative is final."""

    upto: Position
    positions: list[Position]
    records: list[RecordId]
    speculative: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """Confirmed: all below is final."""

    upto: Position


@dataclass(frozen=True, slots=True)
class Voided:
    """Failed: what was delivered from `since` on isn't so. `kept`: it is, this shard is well."""

    since: Position
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """The client has asked again, from here on, and forgets what it has beyond."""

    since: Position


@dataclass(frozen=True, slots=True)
class Resumable:
    """At this moment another subscription would go on from here."""

    at: Position


Sight = Shown | Settled | Voided | Resumed | Resumable


@dataclass(slots=True)
class Watching:
    """A subscription to some shards' records, or to those of them that a filter lets through."""

    name: str
    start: Position
    shards: tuple[str, ...]
    """Empty: all."""
    wanted: Callable[[RecordId], bool] | None = None
    speculative: bool = True
    """False: it asked for nothing that isn't confirmed."""
    sights: list[Sight] = field(default_factory=list[Sight])


@dataclass(slots=True)
class Account:
    """All of a run."""

    placings: list[Placing] = field(default_factory=list[Placing])
    watchings: list[Watching] = field(default_factory=list[Watching])
    shard_of: dict[RecordId, str] = field(default_factory=dict[RecordId, str])
    final: dict[Position, RecordId] = field(default_factory=dict[Position, RecordId])
    start: Position = 0
    """`final` begins here: what lies below was trimmed."""
    end: Position = 0


def judge(account: Account) -> list[Violation]:
    """Every rule that was broken; none means that a correct service could have shown all this."""
    found = list(_placed(account))
    found += _in_real_time(account)
    found += _in_turn(account)
    for watching in account.watchings:
        found += _watched(account, watching)
        found += _resumable(account, watching)
    return found


def _placed(account: Account) -> Iterator[Violation]:
    """What was acknowledged is where it was said to be, and everything is there at most once."""
    places: dict[RecordId, Position] = {}
    for position, record in account.final.items():
        if record in places:
            says = f"record {record} is at {places[record]} and again at {position}"
            yield Violation("1 once", says)
        places[record] = position
        if record not in account.shard_of:
            yield Violation("1 nothing invented", f"{position} holds {record}, which nobody sent")
    for placing in account.placings:
        there = [places[record] for record in placing.records if record in places]
        if there and there != sorted(there):
            yield Violation("1 order", f"records {placing.records} are at {there}")
        if placing.verdict is Verdict.REFUSED and there:
            yield Violation("1 refused", f"records {placing.records} are at {there}")
        if placing.verdict is not Verdict.OK:
            continue
        for position, record in zip(placing.positions, placing.records, strict=True):
            if account.start <= position < account.end and account.final.get(position) != record:
                held = account.final.get(position, "a no-op")
                yield Violation("1 acknowledged", f"{record} went to {position}, which is {held}")


def _in_real_time(account: Account) -> Iterator[Violation]:
    """Who was acknowledged before another began comes before it (G1)."""
    sure = [each for each in account.placings if each.verdict is Verdict.OK]
    returns = sorted((each.returned, max(each.positions)) for each in sure)
    highest, highest_by = -1, list[Position]()
    for _, last in returns:
        highest = max(highest, last)
        highest_by.append(highest)
    times = [returned for returned, _ in returns]
    assert len(times) == len(highest_by)
    for placing in sure:
        before = bisect_left(times, placing.invoked)
        if before and highest_by[before - 1] > min(placing.positions):
            says = f"{placing.positions} was given after {highest_by[before - 1]} was acknowledged"
            yield Violation("2 linearizable", says)


def _in_turn(account: Account) -> Iterator[Violation]:
    """One client's batches at one shard come in the order in which it sent them."""
    last: dict[tuple[int, str], Position] = {}
    for placing in account.placings:
        if placing.verdict is Verdict.OK:
            key = placing.client, placing.shard
            if last.get(key, -1) > placing.positions[0]:
                says = f"{placing.positions} at {placing.shard}, after {last[key]}"
                yield Violation("3 one client's order", says)
            last[key] = placing.positions[-1]


@dataclass(slots=True)
class Follower:
    """What a subscriber knows while it listens."""

    upto: Position
    confirmed: Position
    pending: dict[Position, RecordId] = field(default_factory=dict[Position, RecordId])
    settled: dict[Position, RecordId] = field(default_factory=dict[Position, RecordId])
    broken: str = ""

    @staticmethod
    def of(watching: Watching) -> "Follower":
        """What it knew in the end, or when it was first shown what can't be."""
        follower = Follower(watching.start, watching.start)
        for sight in watching.sights:
            follower.take(sight)
            if follower.broken:
                break
        return follower

    @property
    def final(self) -> dict[Position, RecordId]:
        confirmed = {p: each for p, each in self.pending.items() if p < self.confirmed}
        return self.settled | confirmed

    def take(self, sight: Sight) -> None:
        match sight:
            case Shown():
                self._show(sight)
            case Settled(upto):
                self._settle(upto)
            case Voided(since, kept):
                if since < self.confirmed:
                    self.broken = f"failed {since}, confirmed was {self.confirmed}"
                if not kept:
                    self._forget(since)
            case Resumed(since):
                self._forget(since)
            case Resumable():
                pass

    def _show(self, shown: Shown) -> None:
        due = self.upto
        for position, record in zip(shown.positions, shown.records, strict=True):
            if position < due:
                self.broken = f"{position} was delivered, after all below {due} had been"
            due = position + 1
            (self.pending if shown.speculative else self.settled)[position] = record
        if shown.upto < due:
            self.broken = f"{due - 1} was delivered with others up to {shown.upto}"
        assert len(shown.positions) == len(shown.records)
        self.upto = shown.upto

    def _settle(self, upto: Position) -> None:
        # What it confirms and hasn't shown yet may still come: as final as if it had been there.
        if upto > self.confirmed:
            for position in [each for each in self.pending if each < upto]:
                self.settled[position] = self.pending.pop(position)
            self.confirmed = upto

    def _forget(self, since: Position) -> None:
        self.pending = {place: each for place, each in self.pending.items() if place < since}
        self.upto = min(self.upto, max(since, 0))


def _watched(account: Account, watching: Watching) -> Iterator[Violation]:
    """In order and without gaps; what was confirmed is what is there, whoever looks (G2-G5)."""
    for sight in watching.sights if not watching.speculative else ():
        if isinstance(sight, Shown) and sight.speculative and sight.positions:
            says = f"{watching.name} was shown {sight.positions} as a prediction"
            yield Violation("8 confirmed alone", says)
            return
    follower = Follower.of(watching)
    if follower.broken:
        yield Violation("4 stream", f"{watching.name}: {follower.broken}")
        return
    known = min(follower.upto, follower.confirmed)
    settled = follower.final
    for position, record in sorted(settled.items()):
        if account.start <= position < account.end and account.final.get(position) != record:
            held = account.final.get(position, "a no-op")
            says = f"{watching.name} was confirmed {record} at {position}, which is {held}"
            yield Violation("5 confirmed", says)
            return
    for position, record in account.final.items():
        due = max(watching.start, account.start) <= position < known
        if due and _wants(account, watching, record) and position not in settled:
            says = f"{watching.name} knows all below {known}, and never saw {record} at {position}"
            yield Violation("6 complete", says)
            return


def _resumable(account: Account, watching: Watching) -> Iterator[Violation]:
    """A program that acts on confirmed records alone, stopped at any moment and begun again where
    its subscription said, acts on each exactly once.
    """
    start = max(watching.start, account.start)
    due = sorted(
        position
        for position, record in account.final.items()
        if start <= position < account.end and _wants(account, watching, record)
    )
    assert account.start <= account.end
    follower, seen = Follower(watching.start, watching.start), 0
    acted_on: list[Position] = []
    for sight in watching.sights:
        follower.take(sight)
        for position in islice(follower.settled, seen, None):
            seen += 1
            if start <= position < account.end:
                insort(acted_on, position)
        if isinstance(sight, Resumable):
            expected = due[: bisect_left(due, sight.at)]
            if acted_on != expected:
                says = f"{watching.name} would resume at {sight.at}"
                lost = sorted({*expected} - {*acted_on})
                twice = sorted({*acted_on} - {*expected})
                yield Violation("7 resumption", f"{says}, with {lost} lost and {twice} twice")
                return


def _wants(account: Account, watching: Watching, record: RecordId) -> bool:
    if watching.shards and account.shard_of.get(record) not in watching.shards:
        return False
    return watching.wanted is None or watching.wanted(record)
