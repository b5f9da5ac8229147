"""The forest as a history tells it: what logs there were, how they ended, where positions live."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from anabranch.core.history.calls import (
    UNTOLD,
    Append,
    Call,
    Create,
    Delete,
    Fate,
    Final,
    Fork,
    History,
    Promote,
    RecordId,
    Squash,
)
from anabranch.core.types import NEVER, Kind, LogId, Position


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, and by what."""

    rule: str
    says: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.says}"


@dataclass(slots=True)
class Member:
    """One log that was certainly made."""

    log: LogId
    name: str
    birth: Create | Fork
    final: Final | None = None
    children: list["Member"] = field(default_factory=list["Member"])
    promotes: list[Call] = field(default_factory=list[Call])
    squashes: list[Call] = field(default_factory=list[Call])
    stable: Position = 0
    """Below it the positions are the parent's, for good."""

    @property
    def kind(self) -> Kind:
        return self.birth.kind if isinstance(self.birth, Fork) else Kind.ROOT

    @property
    def parent(self) -> LogId | None:
        """The log it was forked from, which may have been promoted since."""
        return self.birth.parent if isinstance(self.birth, Fork) else None

    @property
    def fork_point(self) -> Position:
        if self.final is not None and self.final.fate is Fate.ALIVE:
            return self.final.fork_point
        return self.birth.fork_point if isinstance(self.birth, Fork) else 0

    @property
    def measured(self) -> bool:
        """Whether its fork point is known: it isn't if nobody was told of it before it ended."""
        return self.birth.ok or self.alive

    @property
    def promotable(self) -> bool:
        return isinstance(self.birth, Fork) and self.birth.promotable

    @property
    def fate(self) -> Fate:
        return self.final.fate if self.final is not None else Fate.SQUASHED

    @property
    def alive(self) -> bool:
        return self.fate is Fate.ALIVE


class Family:
    """All members: from the calls that made them, and from the finals if the answer was lost."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.violations: list[Violation] = []
        self.members: dict[LogId, Member] = {}
        self.sender: dict[RecordId, Append] = {}
        self._survivors: dict[LogId, LogId] = {}
        self._where: dict[LogId, dict[RecordId, int]] = {}
        self._born()
        self._ended()
        self._sent()
        self._stabilised()

    def _born(self) -> None:
        untold: dict[str, Create | Fork] = {}
        for call in self.history.calls:
            if not isinstance(call, Create | Fork):
                continue
            if call.ok:
                self.members[call.log] = Member(call.log, call.name, call)
            elif call.possible:
                untold[call.name] = call
        for final in self.history.finals:
            if final.log not in self.members:
                birth = untold.get(final.name)
                if birth is None:
                    self._found("2 nothing unasked", f"nobody made log {final.log} {final.name}")
                    continue
                if isinstance(birth, Fork):
                    birth.fork_point = final.fork_point
                self.members[final.log] = Member(final.log, final.name, birth)
            self.members[final.log].final = final

    def _ended(self) -> None:
        for member in self.members.values():
            parent = self.members.get(member.parent) if member.parent is not None else None
            if parent is not None:
                parent.children.append(member)
        for call in self.history.calls:
            member = self.members.get(call.log)
            if member is None or not call.possible:
                continue
            if isinstance(call, Promote):
                member.promotes.append(call)
            elif isinstance(call, Squash | Delete):
                member.squashes.append(call)

    def _sent(self) -> None:
        for call in self.history.calls:
            if isinstance(call, Append):
                for record in call.records:
                    assert record not in self.sender, f"record {record} was sent twice"
                    self.sender[record] = call

    def _stabilised(self) -> None:
        """A squashed rival has seen positions of its parent that the winner may have moved."""
        winners: dict[LogId, list[Member]] = {}
        for member in self.members.values():
            if member.fate is Fate.PROMOTED and member.parent is not None:
                winners.setdefault(self.survivor(member.parent), []).append(member)
        for member in self.members.values():
            member.stable = member.fork_point
            if member.parent is None or not member.promotable or member.alive:
                continue
            for winner in winners.get(self.survivor(member.parent), ()):
                over = max((call.returned for call in winner.promotes if call.ok), default=NEVER)
                if winner is not member and over > member.birth.invoked:
                    member.stable = min(member.stable, winner.fork_point)

    def _found(self, rule: str, says: str) -> None:
        self.violations.append(Violation(rule, says))

    def name(self, log: LogId) -> str:
        member = self.members.get(log)
        return f"{member.name}({log})" if member is not None else f"log {log}"

    def survivor(self, log: LogId) -> LogId:
        """The log that has this one's records now: itself, or whatever it was promoted into."""
        at, path = log, list[LogId]()
        while at not in self._survivors:
            member = self.members.get(at)
            if member is None or member.fate is not Fate.PROMOTED or member.parent is None:
                self._survivors[at] = at
                break
            path.append(at)
            at = member.parent
        for log_of_path in path:
            self._survivors[log_of_path] = self._survivors[at]
        return self._survivors[at]

    def parent(self, log: LogId) -> Member | None:
        """Of a survivor: the survivor of the log it was forked from."""
        member = self.members.get(log)
        if member is None or member.parent is None:
            return None
        return self.members.get(self.survivor(member.parent))

    def lineage(self, log: LogId) -> Iterator[Member]:
        """The survivor of this log and those of its ancestors, up to the root."""
        member = self.members.get(self.survivor(log))
        while member is not None:
            yield member
            member = self.parent(member.log)

    def place(self, log: LogId, position: Position) -> tuple[LogId, Position]:
        """The one log whose own content this position of `log` is for good (spec, B1)."""
        while True:
            member = self.members.get(self.survivor(log))
            if member is None or member.parent is None or position >= member.stable:
                return self.survivor(log), position
            log = member.parent

    def where(self, log: LogId) -> dict[RecordId, int]:
        """Of a log that is alive: the position of every record."""
        found = self._where.get(log)
        if found is None:
            final = self.members[log].final
            assert final is not None, "only what is alive has content"
            found = {record: final.start + i for i, record in enumerate(final.records)}
            self._where[log] = found
        return found

    def told(self, log: LogId) -> bool:
        return log != UNTOLD and log in self.members


class Latest:
    """Of values that were known from a time on: the greatest one known before another time."""

    def __init__(self, known: list[tuple[int, int]]) -> None:
        known.sort()
        self._times = [time for time, _ in known]
        self._greatest: list[int] = []
        greatest = -NEVER
        for _, value in known:
            greatest = max(greatest, value)
            self._greatest.append(greatest)

    def before(self, time: int) -> int | None:
        index = bisect_left(self._times, time)
        return self._greatest[index - 1] if index else None
