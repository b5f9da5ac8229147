"""What a forkable log means, at any cost: each log is a list of all its records, copied by a fork.

The definition that the state machine is held against. Where the real one counts, shifts and caches,
this one copies lists and searches them for a record.
"""

from dataclasses import dataclass, field

from msgspec.structs import replace

from anabranch.core.bolt.protocol.commands import (
    Adopt,
    Batch,
    Command,
    CommitCursor,
    CommitObject,
    Configure,
    CreateLog,
    DeleteCursor,
    DeleteLog,
    DrainBroker,
    EngineSettings,
    Expire,
    FindBroker,
    ForgetBroker,
    ForgetObjects,
    ForkLog,
    Guarded,
    LoseBroker,
    Promote,
    PromoteIf,
    RaiseFormat,
    RegisterBroker,
    Row,
    SetAppends,
    SetQuota,
    SetSettings,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.compaction import SwapExtents
from anabranch.core.bolt.protocol.compactors import (
    EndCompactor,
    LapseCompactors,
    RegisterCompactor,
    RenewCompactor,
)
from anabranch.core.bolt.protocol.fronts import (
    ConfigureFront,
    EndFront,
    FrontCommand,
    FrontMark,
    LeadFront,
    OpenFront,
)
from anabranch.core.bolt.protocol.marks import CompleteVersion, ReleaseWriter
from anabranch.core.bolt.protocol.scans import (
    BeginPlan,
    EndPlan,
    EraseGarbage,
    LapsePlans,
    RenewPlan,
    ScanCommand,
)
from anabranch.core.types import Kind, LogId, Milliseconds, OnParentDelete, OnPromote
from anabranch_sim.bolt.naive_logs import Front, List, Record, Source, refusal_of
from anabranch_sim.bolt.scans.naive_plans import NaivePlans

BATCHES_REMEMBERED = 16


@dataclass(frozen=True)
class Promise:
    """The position of a record, to be told later."""

    log: LogId
    record: Record


@dataclass
class Gone:
    code: str
    owner: str
    into: LogId | None = None
    sources: dict[int, Source] = field(default_factory=dict[int, Source])


BatchFate = int | Promise | str
"""A position, one to be told later, or the code of a refusal."""


class Refusal(Exception):
    """The codes that an error may have: where two things are wrong, either may be said."""

    def __init__(self, *codes: str) -> None:
        super().__init__(*codes)
        self.codes = codes


class Naive:
    """All logs. `apply` does a command or raises a Refusal; a commit returns every batch's fate."""

    def __init__(self) -> None:
        self.logs: dict[LogId, List] = {}
        self.gone: dict[LogId, Gone] = {}
        self.epochs: dict[str, int] = {}
        self.guards: dict[str, int] = {}
        self.plans = NaivePlans()
        self.next_id = 1
        self.at: Milliseconds = 0

    def apply(self, at: Milliseconds, command: Command) -> list[list[BatchFate]] | None:
        self.at = max(self.at, at)
        match command:
            case CommitObject():
                return self._commit(command)
            case Guarded(scope, epoch, guarded):
                _refuse(epoch < self.guards.get(scope, epoch), "deposed")
                self.guards[scope] = epoch
                return self.apply(at, guarded)
            case CreateLog() | ForkLog() if command.owner and (
                known := self.declared(command.owner)
            ):
                if isinstance(command, CreateLog):
                    self._declare_again(known, command)
            case CreateLog():
                self._create(command)
            case LeadFront() | ConfigureFront() | OpenFront() | EndFront():
                self._order(command)
            case BeginPlan() | RenewPlan() | EndPlan() | LapsePlans() | EraseGarbage():
                self._plan(command)
            case SetAppends():
                self._set_appends(command)
            case SetSettings():
                self._set_settings(command)
            case ForkLog():
                self._fork(command)
            case Adopt(id, owner):
                self._adopt(self.find(id), owner)
            case Promote():
                self._promote(self.find(command.log), command)
            case Squash(id):
                log = self.find(id)
                _refuse(log.kind is Kind.ROOT, "is-root")
                self._squash(log)
            case DeleteLog(id, force):
                log = self.find(id)
                _refuse(log.kind is not Kind.ROOT, "not-root")
                _refuse(bool(log.children) and not force, "log-has-forks")
                self._squash(log)
            case Expire(ids):
                self._expire(ids)
            case RegisterCompactor() | RenewCompactor() | EndCompactor() | LapseCompactors():
                pass  # they change no log
            case DrainBroker() | LoseBroker() | FindBroker() | ForgetBroker() | RaiseFormat():
                return None
            case Trim(id, before):
                log = self.find_own(id)
                _refuse(not 0 <= before <= log.settled(), "out-of-range")
                _refuse(log.promotable and before > log.fork_point, "bad-request")
                log.start = max(log.start, before)
            case CommitCursor(id, name, position, on_promote):
                log = self.find_own(id)
                _refuse(not 0 <= position <= log.settled(), "out-of-range")
                log.cursors[name] = log.records[:position]
                if on_promote is not None:
                    log.chosen[name] = on_promote
            case DeleteCursor(id, name):
                self.find_own(id).forget_cursor(name)
            case SetQuota(id, quota):
                log = self.find(id)
                _refuse(quota.burst_ms < 1, "bad-request")
                _refuse(log.engine != "" and quota.read_bytes_per_s is not None, "bad-request")
                log.quota = None if quota.limits_nothing else quota
            case RegisterBroker(name):
                self.epochs[name] = len(self.epochs) + 1
            case ForgetObjects() | Configure() | SwapExtents() | CompleteVersion():
                pass
            case ReleaseWriter():  # histories of this model have no writer marks
                pass
        return None

    def _expire(self, ids: list[LogId]) -> None:
        for id in ids:
            log = self.logs.get(id)
            if log and log.expires_at is not None and log.expires_at <= self.at:
                self._squash(log)

    def find(self, id: LogId) -> List:
        if id not in self.logs:
            raise Refusal(self.gone[id].code if id in self.gone else "unknown-log")
        return self.logs[id]

    def find_own(self, id: LogId) -> List:
        log = self.find(id)
        _refuse(log.engine != "", "wrong-engine")
        return log

    def _create(self, command: CreateLog) -> None:
        name, engine, settings = command.name, command.engine, command.settings
        _refuse(any(log.name == name for log in self.logs.values()), "log-exists")
        _refuse(engine not in ("", "bolt", "belfast", "erwin"), "bad-request")
        if engine in ("belfast", "erwin"):
            settings = settings or EngineSettings()
            _refuse(settings.shards < 1, "bad-request")
            _refuse(settings.mode != "" and engine == "belfast", "bad-request")
            if engine == "erwin":
                settings = replace(settings, mode=settings.mode or "m", durability="fsync")
        else:
            _refuse(settings is not None, "bad-request")
            engine = ""
        log = List(self._id(), name, Kind.ROOT, owner=command.owner)
        log.engine, log.settings = engine, settings
        if command.front is not None:
            _refuse(engine != "", "bad-request")
            log.front = Front()
        self._add(log)

    def _order(self, command: FrontCommand) -> None:
        front = self.find_own(command.log).front
        refusal = "bad-request" if front is None else front.apply(command)
        _refuse(refusal != "", refusal)

    def _set_settings(self, command: SetSettings) -> None:
        log = self.find(command.log)
        _refuse(not _is_elsewhere(log) or command.settings.shards < 1, "bad-request")
        log.settings = _changed(log, command.settings)

    def _plan(self, command: ScanCommand) -> None:
        log = self.find_own(command.log) if isinstance(command, BeginPlan) else None
        refusal = self.plans.apply(self.at, command, log)
        _refuse(refusal != "", refusal)

    def _set_appends(self, command: SetAppends) -> None:
        assert command.front is not None, "histories of this model end no front"
        log = self.find_own(command.log)
        _refuse(log.promotable, "bad-request")
        log.front = log.front or Front()

    def _declare_again(self, log: List, command: CreateLog) -> None:
        settings = command.settings
        if command.engine != log.engine or not _is_elsewhere(log) or settings is None:
            return
        if not settings.embedded:
            _refuse(settings.shards < 1, "bad-request")
            log.settings = _changed(log, settings)

    def declared(self, owner: str) -> List | None:
        """The log that this owner has."""
        for grave in self.gone.values():
            _refuse(_same_owner(grave.owner, owner), grave.code)
        return next((log for log in self.logs.values() if _same_owner(log.owner, owner)), None)

    def _adopt(self, log: List, owner: str) -> None:
        if owner:
            _refuse(log.owner != "" and not _same_owner(log.owner, owner), "owned-by-another")
            others = [each for each in self.logs.values() if each is not log]
            _refuse(any(_same_owner(each.owner, owner) for each in others), "owns-another")
            for grave in self.gone.values():
                grave.owner = "" if _same_owner(grave.owner, owner) else grave.owner
        log.owner = owner

    def whereabouts(self, promise: Promise) -> tuple[List, int]:
        """The log that a promised record is in now, and its position there."""
        id = promise.log
        while id in self.gone and (into := self.gone[id].into) is not None:
            id = into
        log = self.find(id)
        return log, log.records.index(promise.record)

    def _id(self) -> LogId:
        self.next_id += 1
        return LogId(self.next_id - 1)

    def _add(self, log: List) -> None:
        self.logs[log.id] = log
        if log.parent:
            log.parent.children.append(log)

    def _commit(self, command: CommitObject) -> list[list[BatchFate]]:
        return [self._sequence(command.object, row) for row in command.rows]

    def _sequence(self, object: int, row: Row) -> list[BatchFate]:
        log = self.logs.get(row.log)
        if log is None:
            if row.front is not None:
                grave = self.gone.get(row.log)
                return [grave.code if grave else "unknown-log" for _ in row.batches]
            return [self._of_the_gone(row.log, batch) for batch in row.batches]
        if log.engine:
            return ["wrong-engine" for _ in row.batches]
        if row.front is not None:
            return self._append_front(log, object, row, row.front)
        if log.front is not None:
            fates = [self._known(log, batch) for batch in row.batches]
            return ["lazy-appends-only" if fate is None else fate for fate in fates]
        appended: list[BatchFate] = []
        offset = row.offset
        for batch in row.batches:
            appended.append(self._append(log, object, offset, batch))
            offset += batch.length
        return appended

    def _append_front(self, log: List, object: int, row: Row, mark: FrontMark) -> list[BatchFate]:
        refusal = refusal_of(log, mark)
        if refusal or log.front is None:
            return [refusal for _ in row.batches]
        return [self._told(log, first) for first in log.front.commit(log, object, row, self.at)]

    def _of_the_gone(self, id: LogId, batch: Batch) -> BatchFate:
        grave = self.gone.get(id)
        if grave is None:
            return "unknown-log"
        source = grave.sources.get(batch.producer)
        first = source.known(batch) if source else None
        return Promise(id, first) if first else grave.code

    def _known(self, log: List, batch: Batch) -> BatchFate | None:
        """Where the batch went that its producer repeats."""
        source = log.sources.get(batch.producer) if batch.producer >= 0 else None
        known = source.known(batch) if source else None
        return self._told(log, log.records.index(known)) if known else None

    def _append(self, log: List, object: int, offset: int, batch: Batch) -> BatchFate:
        position = len(log.records)
        records = [
            Record(object, offset, nth, self.at, log.id, position + nth)
            for nth in range(batch.count)
        ]
        known = self._known(log, batch)
        if known is not None:
            return known
        if log.held_from() is not None:
            return "append-blocked"
        if batch.producer >= 0:
            source = log.sources.get(batch.producer)
            if source is None or batch.epoch > source.epoch:
                if batch.sequence != 0:
                    return "sequence-gap"
                source = log.sources[batch.producer] = Source(batch.epoch)
            if batch.epoch < source.epoch or batch.sequence != source.next:
                return "sequence-gap"
            source.next = batch.sequence + batch.count
            source.sent = [*source.sent, (batch.sequence, records[0])][-BATCHES_REMEMBERED:]
        for heir in log.heirs():
            heir.records.extend(records)
        return self._told(log, position)

    def _told(self, log: List, position: int) -> BatchFate:
        return position if position < log.settled() else Promise(log.id, log.records[position])

    def _fork(self, command: ForkLog) -> None:
        parent = self.find_own(command.parent)
        point = self._point(parent, command)
        own = command.name or f"fork-{self.next_id}"
        name = f"{_root(parent)}--{own}"
        child = List(self._id(), name, command.kind, parent, owner=command.owner)
        child.records = parent.records[:point]
        child.fork_point = point
        child.start = parent.start
        child.promotable = command.promotable
        child.policy = command.on_parent_delete
        given = parent.quota if command.quota is None else command.quota
        child.quota = None if given is None or given.limits_nothing else given
        if command.ttl_ms is not None:
            child.expires_at = self.at + command.ttl_ms
        self._add(child)

    def _point(self, parent: List, command: ForkLog) -> int:
        """How much a fork gets; nothing that a promotion may still change (spec D3)."""
        tail, settled = len(parent.records), parent.settled()
        if command.kind is Kind.CONTINUOUS:
            _refuse(command.past is not None or command.at is not None, "bad-request")
            held = parent.held_from() is not None
            _refuse(held or bool(parent.undecided() and not command.promotable), "fork-blocked")
            return tail
        _refuse(command.promotable, "bad-request")
        _refuse(command.past is not None and command.at is not None, "bad-request")
        point = tail
        if command.past is not None:
            point = command.past + 1
            _refuse(not parent.start < point <= tail, "out-of-range")
        elif command.at is not None:
            late = (i for i in range(parent.start, tail) if parent.records[i].at >= command.at)
            point = next(late, tail)
        _refuse(point > settled, "fork-blocked")
        return point

    def _promote(self, child: List, command: Promote) -> None:
        """The parent becomes the fork. Logs beside it took nothing since: they get its new end."""
        _refuse(not child.promotable, "not-promotable")
        if isinstance(command, PromoteIf):
            _refuse(child.own_records != command.expect_own, "fork-moved")
        parent = child.parent
        assert parent is not None
        for rival in parent.undecided():
            if rival is not child:
                self._squash(rival)
        since = len(parent.records) - child.fork_point
        new = child.records[child.fork_point :]
        within = child.heirs()
        for heir in parent.heirs():
            if heir not in within:
                heir.records[len(heir.records) - since :] = new
        for name in child.cursors:
            _follow(parent, child, name)
        parent.children.remove(child)
        for heir in child.children:
            heir.parent = parent
        parent.children += child.children
        del self.logs[child.id]
        self.gone[child.id] = Gone("promoted", child.owner, parent.id, child.sources)

    def _squash(self, log: List) -> None:
        """It and all that inherits from it go; severed forks that may stay keep what they have."""
        doomed = [log]
        for each in doomed:
            for child in each.children:
                if child.kind is Kind.SEVERED and child.policy is OnParentDelete.ORPHAN:
                    child.parent = log.parent
                    if log.parent:
                        log.parent.children.append(child)
                else:
                    doomed.append(child)
            del self.logs[each.id]
            self.gone[each.id] = Gone("squashed", each.owner)
        if log.parent:
            log.parent.children.remove(log)


def _follow(parent: List, child: List, name: str) -> None:
    """The consumer of a fork goes on in the parent, unless it or the parent's own chose to stay."""
    if child.on_promote(name) is OnPromote.STAY:
        return
    if name not in parent.cursors:
        parent.cursors[name] = child.cursors[name]
        if name in child.chosen:
            parent.chosen[name] = child.chosen[name]
    elif parent.on_promote(name) is OnPromote.FOLLOW:
        parent.cursors[name] = max(parent.cursors[name], child.cursors[name], key=len)


def _refuse(wrong: bool, code: str) -> None:
    if wrong:
        raise Refusal(code)


def _same_owner(one: str, other: str) -> bool:
    return one.removesuffix(".end") == other.removesuffix(".end") != ""


def _changed(log: List, settings: EngineSettings) -> EngineSettings:
    """What a log is like from now on; how it keeps its records never changes."""
    before = log.settings
    assert before is not None
    _refuse(settings.mode not in ("", before.mode), "bad-request")
    return replace(settings, mode=before.mode, durability=before.durability)


def _is_elsewhere(log: List) -> bool:
    """Is it a log of another engine, and run by somebody else than this service?"""
    return log.settings is not None and not log.settings.embedded


def _root(log: List) -> str:
    return log.name.partition("--")[0]
