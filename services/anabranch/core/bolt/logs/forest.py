"""Logs and how they descend from one another: names, fork points, what is settled and what blocks
(AgileLog, 4.1).
"""

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from anabranch.core.bolt.logs.front import Front
from anabranch.core.bolt.logs.index import Index
from anabranch.core.bolt.logs.marks import Marks
from anabranch.core.bolt.logs.tails import LazyTailTree, Tail
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.errors import BadName, ReceiptExpired, UnknownLog, WrongEngine
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.producers import Producer
from anabranch.core.quota import Quota
from anabranch.core.types import (
    NEVER,
    Kind,
    LogId,
    Milliseconds,
    OnParentDelete,
    OnPromote,
    Position,
)

SEPARATOR = "--"
_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?")


class Family:
    """One root and all that descends from it, severed or not: shares a count of changes of
    shape.
    """

    __slots__ = ("id", "reshaped", "root")

    def __init__(self, id: LogId, root: str) -> None:
        self.id = id
        """The root's, also when that is no more."""
        self.root = root
        self.reshaped = 0
        """Grows with every promote and re-parenting: what was cached of a lineage before is
        void.
        """


class Shift:
    """What one promotion did to the positions of its parent, kept so that receipts can be
    redeemed.

    A record that was at `thresholds[i]` or later moved up by `counts[i]`. It leads from the
    parent's generation `since` to `generation`.
    """

    __slots__ = ("counts", "generation", "since", "thresholds")

    def __init__(
        self, since: int, generation: int, thresholds: list[Position], counts: list[int]
    ) -> None:
        assert since < generation, "a promotion raises the generation"
        assert len(thresholds) == len(counts), "each threshold has its count"
        self.since = since
        self.generation = generation
        self.thresholds = thresholds
        self.counts = counts


def replay(shifts: list[Shift], since: int, until: int, name: str, position: Position) -> Position:
    """Move a position through every promotion between two generations of a log."""
    if since == until:
        return position
    missed = [shift for shift in shifts if shift.generation > since]
    if not missed or missed[0].since > since:
        raise ReceiptExpired(name)
    assert position >= 0, "positions begin at 0"
    for shift in missed:
        before = bisect_right(shift.thresholds, position)
        position += shift.counts[before - 1] if before else 0
    return position


class Log:
    """A root or a fork, alive."""

    __slots__ = (
        "by",
        "children",
        "created_at",
        "cursors",
        "depth",
        "engine",
        "expires_at",
        "family",
        "fork_point",
        "front",
        "generation",
        "id",
        "index",
        "kind",
        "lineage",
        "marks",
        "name",
        "on_parent_delete",
        "on_promote",
        "own_from",
        "owner",
        "parent",
        "place",
        "producers",
        "promotable",
        "promotable_forks",
        "settings",
        "shifts",
        "start",
        "why",
    )

    def __init__(self, id: LogId, name: str, kind: Kind, family: Family, place: Tail) -> None:
        assert id > 0, "ids begin at 1"
        self.id = id
        self.name = name
        self.kind = kind
        self.family = family
        self.place = place
        self.parent: Log | None = None
        self.children: dict[LogId, Log] = {}
        self.depth = 0
        self.fork_point: Position = 0
        self.own_from: Position = 0
        """Positions below are the parent's, at the same numbers: the fork point, unless a parent
        was lost.
        """
        self.start: Position = 0
        """The first position that can be read here; trim raises it."""
        self.promotable = False
        self.promotable_forks: list[tuple[Position, LogId]] = []
        """Undecided promotable forks of this log, earliest fork point first."""
        self.index = Index()
        self.lineage: object = None
        self.producers: dict[int, Producer] = {}
        self.marks: Marks | None = None
        """Of writers whose appends are remembered until they are released."""
        self.cursors: dict[str, Position] = {}
        self.on_promote: dict[str, OnPromote] = {}
        """Of the cursors for which somebody chose."""
        self.generation = 0
        """Grows with every promotion into this log."""
        self.shifts: list[Shift] = []
        self.created_at: Milliseconds = 0
        self.expires_at: Milliseconds | None = None
        self.on_parent_delete = OnParentDelete.ORPHAN
        self.by = ""
        self.why = ""
        self.owner = ""
        self.engine = ""
        """The engine that serves it; empty: this one, Bolt."""
        self.settings: EngineSettings | None = None
        """Of a log that another engine serves."""
        self.front: Front | None = None
        """The lazy front that its appends come through, if it has one."""

    @property
    def earliest_fork_point(self) -> Position:
        """Positions from here on may still move: the paper's earliest-fp (AgileLog, 5.6)."""
        return self.promotable_forks[0][0] if self.promotable_forks else NEVER

    def continuous_forks(self) -> Iterator["Log"]:
        return (child for child in self.children.values() if child.kind is Kind.CONTINUOUS)


class Tombstone:
    """What became of a promoted or squashed fork, for those who still hold its handle (spec D5)."""

    __slots__ = (
        "at",
        "generation",
        "id",
        "name",
        "owner",
        "parent_generation",
        "producers",
        "promoted_into",
        "refusal",
        "shifts",
    )

    def __init__(
        self, id: LogId, name: str, refusal: Refused, at: Milliseconds, owner: str = ""
    ) -> None:
        assert id > 0, "ids begin at 1"
        self.id = id
        self.name = name
        self.refusal = refusal
        self.at = at
        self.owner = owner
        self.promoted_into: LogId | None = None
        self.producers: dict[int, Producer] = {}
        """Of a promoted fork: a batch that was committed there and is sent again has a position."""
        self.generation = 0
        self.shifts: list[Shift] = []
        self.parent_generation = 0
        """The generation of the parent in whose numbering the fork's positions continue."""


class Forest:
    """Every live log by id and by name, their tails, and the graves of those that are gone."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.logs: dict[LogId, Log] = {}
        self.names: dict[str, Log] = {}
        self.tails = LazyTailTree()
        self.graves: OrderedDict[LogId, Tombstone] = OrderedDict()
        self.graves_by_name: dict[str, LogId] = {}
        self.owned: dict[str, Log] = {}
        """By owner; who has a log has no grave."""
        self.graves_by_owner: dict[str, LogId] = {}
        self.quotas: dict[LogId, Quota] = {}
        """Of the logs that have one: few, if any."""
        self.undecided = 0
        """Live promotable forks; while there are none, nothing can be blocked."""
        self.foreign: dict[LogId, Log] = {}
        """Logs that other engines serve: few, if any."""
        self.fronts: dict[LogId, Log] = {}
        """Logs with a lazy front: few, if any."""

    def tail(self, log: Log) -> Position:
        return self.tails.tail(log.place)

    def find(self, asked: str | LogId) -> Log:
        """The live log of this id or name; else an error that says what became of it."""
        if isinstance(asked, str):
            name = asked.replace("@", SEPARATOR, 1)
            log, id = self.names.get(name), self.graves_by_name.get(name, LogId(-1))
        else:
            log, id = self.logs.get(asked), asked
        if log is not None:
            return log
        grave = self.graves.get(id)
        raise UnknownLog(str(asked)) if grave is None else grave.refusal.error()

    def find_own(self, asked: str | LogId, what: str) -> Log:
        """As `find`, for what only Bolt's own logs can do; raises WrongEngine for any other."""
        # Reads and forks come with an id: those are found here, with no second call.
        log = None if isinstance(asked, str) else self.logs.get(asked)
        log = log or self.find(asked)
        if log.engine:
            raise WrongEngine(log.name, log.engine, what)
        return log

    def name_root(self, name: str) -> str:
        check_name(name, self.limits.name_chars_max)
        return name

    def name_fork(self, parent: Log, own: str | None, id: LogId) -> str:
        """`ROOT--FORK`, unique in its root's tree whatever its depth."""
        assert id > 0, "ids begin at 1"
        if own is not None:
            check_name(own, self.limits.name_chars_max)
            return f"{parent.family.root}{SEPARATOR}{own}"
        name = given = f"{parent.family.root}{SEPARATOR}fork-{id}"
        turn = 0
        while name in self.names:
            turn += 1
            name = f"{given}-{turn}"
        return name

    def add(self, log: Log) -> None:
        assert log.id not in self.logs
        assert log.name not in self.names
        assert log.parent is not log, "a log descends from another"
        self.logs[log.id] = log
        self.names[log.name] = log
        self.undecided += log.promotable
        if log.engine:
            self.foreign[log.id] = log
        if log.front is not None and not log.front.ended:
            self.fronts[log.id] = log
        self.graves_by_name.pop(log.name, None)
        if log.parent is not None:
            log.parent.children[log.id] = log

    def remove(self, log: Log) -> None:
        assert self.logs[log.id] is log, "another log has this id"
        del self.logs[log.id], self.names[log.name]
        self.quotas.pop(log.id, None)
        self.foreign.pop(log.id, None)
        self.fronts.pop(log.id, None)
        self.owned.pop(log.owner, None)
        self.undecided -= log.promotable
        assert self.undecided >= 0, "more promotable forks went than came"
        if log.parent is not None:
            log.parent.children.pop(log.id, None)

    def bury(self, grave: Tombstone) -> None:
        assert grave.id not in self.logs, "it is still alive"
        self.graves[grave.id] = grave
        self.graves_by_name[grave.name] = grave.id
        if grave.owner:
            self.graves_by_owner[grave.owner] = grave.id

    def forget_oldest_grave(self) -> None:
        assert self.graves, "there is no grave"
        id, grave = self.graves.popitem(last=False)
        self.graves_by_owner.pop(grave.owner, None)
        if self.graves_by_name.get(grave.name) == id:
            del self.graves_by_name[grave.name]

    def give(self, log: Log, owner: str) -> None:
        """The log is this owner's from now on, or nobody's."""
        assert self.logs[log.id] is log, "only what is alive has an owner"
        self.owned.pop(log.owner, None)
        log.owner = owner
        if not owner:
            return
        assert owner not in self.owned, "an owner has one log"
        self.owned[owner] = log
        self.forget_former_log(owner)

    def forget_former_log(self, owner: str) -> None:
        """The owner is no longer led to the grave of a log that it had."""
        former = self.graves_by_owner.pop(owner, None)
        if former is not None:
            self.graves[former].owner = ""

    def inherited_limit(self, log: Log) -> tuple[Position, Log | None]:
        """Where this log's inheritance stops being settled, and which promotable fork is in the
        way.

        A non-promotable fork is held by its parent's promotable forks; a promotable one only by
        what holds its parent from above. Appends below a held log wait, so from there on it holds
        inherited records only, and a parent's position is found by counting back from the tails
        (spec 6.2).
        """
        if not self.tails.block(log.place):
            return NEVER, None
        path: list[Log] = []
        while log.kind is Kind.CONTINUOUS and log.parent is not None:
            path.append(log)
            log = log.parent
        limit: Position = NEVER
        fork: Log | None = None
        for heir in reversed(path):
            parent = heir.parent
            assert parent is not None
            if not heir.promotable and parent.earliest_fork_point < limit:
                limit = parent.earliest_fork_point
                fork = self.logs[parent.promotable_forks[0][1]]
            if limit != NEVER:
                limit += self.tail(heir) - self.tail(parent)
        return limit, fork

    def settled(self, log: Log) -> tuple[Position, Log | None]:
        """Below this position nothing of the log will ever change; and the fork in the way if it
        isn't the tail.
        """
        limit, fork = self.inherited_limit(log)
        if log.earliest_fork_point < limit:
            limit = log.earliest_fork_point
            fork = self.logs[log.promotable_forks[0][1]]
        tail = self.tail(log)
        return (limit, fork) if limit < tail or fork is not None else (tail, None)

    def blocked_by(self, log: Log) -> Log | None:
        """The undecided promotable fork that keeps this log from being appended to, if any (spec
        6.2).
        """
        return self.inherited_limit(log)[1]

    def lineage_generation(self, log: Log) -> int:
        """Grows whenever a promotion above moves positions of this log."""
        total = log.generation
        while log.kind is Kind.CONTINUOUS and log.parent is not None:
            log = log.parent
            total += log.generation
        return total


def check_name(name: str, chars_max: int) -> None:
    assert chars_max > 0, "no name would do"
    if len(name) > chars_max:
        raise BadName(
            name[:40], f"it has {len(name)} characters, the limit is {chars_max} (name_chars_max)"
        )
    if not _NAME.fullmatch(name):
        raise BadName(
            name, "letters, digits, '.', '_' and '-' are allowed, first and last a letter or digit"
        )
    if SEPARATOR in name:
        raise BadName(name, f"{SEPARATOR!r} separates a root's name from a fork's")


def hand_over(log: Log, parent: Log | None) -> None:
    """Give a log another parent, or none; all below it are less deep then."""
    assert parent is not log, "a log descends from another"
    if log.parent is not None:
        log.parent.children.pop(log.id, None)
    log.parent = parent
    if parent is not None:
        parent.children[log.id] = log
    moved = [log]
    for each in moved:
        each.depth = each.parent.depth + 1 if each.parent else 0
        moved.extend(each.children.values())


def subtree(log: Log) -> list[Log]:
    """The log and all that continuously inherits from it, parents before children."""
    found = [log]
    for each in found:
        found.extend(each.continuous_forks())
    return found
