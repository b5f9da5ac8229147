"""The metadata leader: journals commands in groups, applies them, answers, and tends what time
changes.

Rules it holds (spec 4, 6, 10): nothing is applied or answered before its group is durable (R1);
groups are applied in journal order (B12); queries see every answered command; expiry, garbage and
snapshots are commands and effects of its own, never side effects of a replica.
"""

from collections import deque
from collections.abc import Sequence

import msgspec

from anabranch.core.bolt.logs.forest import Family
from anabranch.core.bolt.metadata.compactors import CompactorDuties
from anabranch.core.bolt.metadata.delegation import Delegation
from anabranch.core.bolt.metadata.garbage import Garbage
from anabranch.core.bolt.metadata.liveness import Liveness
from anabranch.core.bolt.metadata.orphans import orphans, sort_quarantine
from anabranch.core.bolt.metadata.watchers import Watches
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Bare,
    Command,
    CommitObject,
    Configure,
    CreateLog,
    DrainBroker,
    Entry,
    Expire,
    FindBroker,
    ForgetBroker,
    ForgetObjects,
    ForkLog,
    LoseBroker,
    RaiseFormat,
    RegisterBroker,
    SetSettings,
    bare,
    decode_group,
)
from anabranch.core.bolt.protocol.compaction import SwapExtents
from anabranch.core.bolt.protocol.compactors import (
    EndCompactor,
    LapseCompactors,
    RegisterCompactor,
    RenewCompactor,
    TakeCopies,
)
from anabranch.core.bolt.protocol.fronts import ConfigureFront, LeadFront
from anabranch.core.bolt.protocol.letters import (
    Alive,
    Applied,
    Ask,
    Propose,
    QueryAnswer,
    Unwatch,
    Watch,
)
from anabranch.core.bolt.protocol.marks import CompleteVersion
from anabranch.core.bolt.protocol.scans import (
    BeginPlan,
    EndPlan,
    EraseGarbage,
    LapsePlans,
    RenewPlan,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import AnabranchError, JournalTooNew, Overloaded
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits, replicated, with_replicated
from anabranch.core.machine import (
    DeleteObjects,
    Effect,
    Effects,
    Event,
    ListObjects,
    ListQuarantine,
    ObjectsDeleted,
    ObjectsListed,
    ObjectsQuarantined,
    ObjectsReturned,
    Persist,
    Persisted,
    PersistFailed,
    QuarantineListed,
    QuarantineObjects,
    QuarantinePurged,
    Received,
    SaveSnapshot,
    Send,
    SetTimer,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.records.digest import UNKNOWN
from anabranch.core.types import MS, Nanoseconds, ObjectId

GROUP = "group"
TEND = "tend"
SILENCE = "silence"
BEHIND_MS = 100
"""While there is more to look at than one turn has time for, turns follow so closely."""
PURGE_MS = 600_000
"""How often the quarantine is looked through, at most: its retention is counted in days."""
SELF = ""
"""Who proposed what the leader itself noticed: nobody waits for the outcome."""

_encode = msgspec.msgpack.Encoder().encode


class Proposal(msgspec.Struct, frozen=True, gc=False):
    sender: str
    token: int
    entry: Entry


class Metadata:
    """The one leader of a cluster's metadata."""

    def __init__(self, state: State, limits: Limits, index: int) -> None:
        assert index >= 0
        self.state = state
        self.limits = limits
        self.watches = Watches(state.replica)
        self.delegation = Delegation(state.replica, limits)
        self.index = index
        """The last journal entry applied; each holds one group."""
        self.knows = 0
        """The format that commands are raised to."""
        self.waiting: deque[Proposal] = deque()
        self.group: list[Proposal] = []
        self.journaled_bytes = 0
        self.saving_snapshot = False
        self.garbage = Garbage(state.replica, limits)
        self.compactors = CompactorDuties(state.replica, limits, self.delegation)
        self.expiring = False
        """An Expire is on its way to the journal; until then the forks it names look expired
        still.
        """
        self.orphans_due = True
        self.sweeping = False
        """Orphans are being looked for or moved: a second sweep would move the same ones."""
        self.purge_due: Nanoseconds = 0
        self.liveness: Liveness | None = None

    @classmethod
    def recovered(
        cls,
        cluster: str,
        limits: Limits,
        image: bytes | None,
        entries: Sequence[bytes],
        index: int,
        *,
        knows: int = FORMAT,
    ) -> "Metadata":
        """The leader as it was: the snapshot, then every group journaled since; `index` is the
        last one's.
        """
        leader = cls(replayed(cluster, limits, image, entries, knows=knows), limits, index)
        leader.journaled_bytes = sum(map(len, entries))
        return leader

    def start(self, now: Nanoseconds, knows: int = FORMAT) -> Effects:
        """Before anything else commands are of this format, and under the limits this leader is set
        to.
        """
        assert knows >= 0
        self.knows = knows
        self._purge_later(now)
        # What was moved there by someone who knew too little must be back before it is read.
        return (ListQuarantine(), self._tend_again(now), *self._configure(now))

    def start_in_group(self, now: Nanoseconds, knows: int) -> Effects:
        """As the leader of members that brokers reach by a network, and that may be older."""
        self.liveness = Liveness(self.state.replica.placement, now)
        return (*self.start(now, knows), self._listen_again(now))

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        match event:
            case Received(sender, message):
                return self._received(now, sender, message)
            case Persisted(last):
                return self._apply_group(now, last)
            case PersistFailed(error):
                return self._refuse_group(now, error)
            case TimerFired(key):
                if key == SILENCE:
                    return self._look_for_the_silent(now)
                return self._journal_group() if key == GROUP else self._tend(now)
            case ObjectsDeleted(objects):
                self.garbage.deleting = False
                return self._propose(now, SELF, 0, b"", ForgetObjects(list(objects)))
            case ObjectsListed(objects):
                return self._quarantine_orphans(objects)
            case ObjectsQuarantined():
                self.sweeping = False
                return ()
            case QuarantineListed(objects):
                before = now // MS - self.limits.quarantine_ms
                return sort_quarantine(self.state.replica, before, objects)
            case ObjectsReturned() | QuarantinePurged():
                return ()
            case SnapshotSaved():
                self.saving_snapshot = False
                return ()
            case _:
                raise AssertionError(f"the metadata ask for nothing that ends in {event}")

    def _received(self, now: Nanoseconds, sender: str, message: object) -> Effects:
        match message:
            case Propose(token, request, command, digest):
                return self._propose(now, sender, token, request, command, digest)
            case Ask(token, TakeCopies() as query):
                taken = self.compactors.take(query, now // MS)
                return (Send(sender, QueryAnswer(token, taken)),)
            case Ask(token, query):
                return (Send(sender, QueryAnswer(token, self.state.answer(query))),)
            case Watch(logs):
                until = now + 3 * self.limits.watch_ms * MS
                told = [self.watches.watch(sender, id, version, until) for id, version in logs]
                return tuple(Send(sender, moved) for moved in told if moved is not None)
            case Alive(epoch):
                found = self.liveness.heard(sender, epoch, now) if self.liveness else None
                return self._decide(now, found) if found else ()
            case Unwatch(logs):
                for id in logs:
                    self.watches.unwatch(sender, id)
                return ()
            case _:
                raise AssertionError(f"not a message to the metadata: {message}")

    @property
    def _is_full(self) -> bool:
        return len(self.waiting) >= self.limits.proposals_max

    def _propose(
        self,
        now: Nanoseconds,
        sender: str,
        token: int,
        request: bytes,
        command: Command,
        digest: int = UNKNOWN,
    ) -> Effects:
        """Queue a command; the group closes at the end of this turn, or when the one before is
        durable.
        """
        if self._is_full:
            refused = Overloaded("proposals", self.limits.proposals_max, "proposals_max")
            return (Send(sender, Applied(token, Refused.of(refused))),) if sender else ()
        entry = Entry(now // MS, request, command, digest)
        self.waiting.append(Proposal(sender, token, entry))
        if self.group or len(self.waiting) > 1:
            return ()
        return (SetTimer(GROUP, now),)

    def _journal_group(self) -> Effects:
        """One group in flight: what comes meanwhile makes the next one larger, and no fsync is
        spent twice.
        """
        if self.group or not self.waiting:
            return ()
        size = 0
        while self.waiting and len(self.group) < self.limits.group_commands_max:
            proposal = self.waiting.popleft()
            self.group.append(proposal)
            size += _weight(proposal.entry.command)
            if size >= self.limits.group_bytes_max:
                break
        assert 0 < len(self.group) <= self.limits.group_commands_max
        entry = _encode([proposal.entry for proposal in self.group])
        self.journaled_bytes += len(entry)
        return (Persist((entry,)),)

    def _apply_group(self, now: Nanoseconds, last: int) -> Effects:
        assert last == self.index + 1, "groups are journaled one at a time"
        self.index = last
        group, self.group = self.group, []
        effects: list[Effect] = []
        touched: dict[Family, None] = {}
        tend = swapped = again = False
        for proposal in group:
            command = bare(proposal.entry.command)
            self._note_families(command, touched)
            outcome = self.state.apply(proposal.entry)
            self.delegation.applied(command, outcome, now // MS)
            swapped |= isinstance(command, SwapExtents)
            tend |= isinstance(command, ForkLog) and command.ttl_ms is not None
            if isinstance(command, Expire):
                self.expiring, tend = False, True
            self.orphans_due |= isinstance(command, RegisterBroker | ForgetBroker)
            again |= self.garbage.goes_on(command)
            self.orphans_due |= self.compactors.settled(command)
            if self.liveness:
                self.liveness.applied(command, outcome, now)
            if proposal.sender:
                effects.append(Send(proposal.sender, Applied(proposal.token, outcome)))
        if self.watches.watchers:
            effects += (Send(node, moved) for node, moved in self.watches.news(touched))
        if tend or again:
            effects.append(SetTimer(TEND, now) if again else self._tend_again(now))
        if swapped:
            effects += self.delegation.letters(now // MS)
        effects += self._save_snapshot_if_due()
        effects += self._journal_group()
        return tuple(effects)

    def _refuse_group(self, now: Nanoseconds, error: AnabranchError) -> Effects:
        """Nothing of it was applied: whoever asks again with the same request id does it at most
        once.
        """
        group, self.group = self.group, []
        for proposal in group:
            self.garbage.refused(bare(proposal.entry.command))
            self.compactors.settled(bare(proposal.entry.command))
            if self.liveness:
                self.liveness.refused(proposal.entry.command)
        if any(isinstance(proposal.entry.command, Expire) for proposal in group):
            self.expiring = False
        refused = Refused.of(error)
        answers = tuple(
            Send(proposal.sender, Applied(proposal.token, refused))
            for proposal in group
            if proposal.sender
        )
        return (*answers, *self._journal_group())

    def _note_families(self, command: Bare, touched: dict[Family, None]) -> None:
        """Which families a command may move, as they are before it is applied."""
        logs = self.state.replica.forest.logs
        match command:
            case CommitObject():
                ids = [row.log for row in command.rows]
            case Expire():
                ids = command.logs
            case CreateLog() | ForgetObjects() | Configure() | RaiseFormat() | SwapExtents():
                return
            case RegisterBroker() | DrainBroker() | LoseBroker() | FindBroker() | ForgetBroker():
                return
            case RegisterCompactor() | RenewCompactor() | EndCompactor() | LapseCompactors():
                return
            case BeginPlan() | RenewPlan() | EndPlan() | LapsePlans() | EraseGarbage():
                return
            case ForkLog():
                ids = [command.parent]
            case _:
                ids = [command.log]
        for id in ids:
            log = logs.get(id)
            if log is not None:
                touched[log.family] = None

    def _save_snapshot_if_due(self) -> Effects:
        if self.saving_snapshot or self.journaled_bytes < self.limits.snapshot_bytes:
            return ()
        self.saving_snapshot = True
        self.journaled_bytes = 0
        return (SaveSnapshot(self.index, snapshot.save(self.state.replica)),)

    def _tend(self, now: Nanoseconds) -> Effects:
        """What time brings: forks expire, watches lapse, garbage outlives its grace, orphans are
        looked for.
        """
        self.watches.lapse(now)
        # Again, if the journal was full at the start.
        effects: list[Effect] = [*self._configure(now)]
        expired = self.state.replica.expired(now // MS)
        if expired and not self.expiring:
            queued = len(self.waiting)
            effects += self._propose(now, SELF, 0, b"", Expire(expired))
            self.expiring = len(self.waiting) > queued
        ending = None if self._is_full else self.garbage.overdue(now // MS)
        if ending is not None:
            self.garbage.lapsing = True
            effects += self._propose(now, SELF, 0, b"", ending)
        lapsing = None if self._is_full else self.compactors.overdue(now // MS)
        if lapsing is not None:
            self.compactors.lapsing = True
            effects += self._propose(now, SELF, 0, b"", lapsing)
        garbage = self.garbage.deletable(now // MS)
        if garbage:
            self.garbage.deleting = True
            effects.append(DeleteObjects(garbage))
        if self.orphans_due and not self.sweeping:
            self.orphans_due, self.sweeping = False, True
            effects.append(ListObjects())
        if now >= self.purge_due:
            self._purge_later(now)
            effects.append(ListQuarantine())
        effects += self.delegation.letters(now // MS)
        effects.append(self._tend_again(now))
        return tuple(effects)

    def _look_for_the_silent(self, now: Nanoseconds) -> Effects:
        effects: list[Effect] = [self._listen_again(now)]
        silent = self.liveness.silent(now, self.limits.silence_ms) if self.liveness else []
        for lost in silent:
            effects += self._decide(now, lost)
        return tuple(effects)

    def _decide(self, now: Nanoseconds, change: LoseBroker | FindBroker) -> Effects:
        """If there is no room for it now, it is noticed again."""
        if self.liveness is None or self._is_full:
            return ()
        self.liveness.proposed(change)
        return self._propose(now, SELF, 0, b"", change)

    def _listen_again(self, now: Nanoseconds) -> SetTimer:
        return SetTimer(SILENCE, now + self.limits.silence_ms * MS // 4)

    def _configure(self, now: Nanoseconds) -> Effects:
        effects: Effects = ()
        if self.state.replica.format < self.knows:
            effects = self._propose(now, SELF, 0, b"", RaiseFormat(self.knows))
        limits = replicated(self.limits)
        if limits != replicated(self.state.replica.limits):
            effects = (*effects, *self._propose(now, SELF, 0, b"", Configure(limits)))
        return effects

    def _quarantine_orphans(self, objects: Sequence[ObjectId]) -> Effects:
        found = orphans(self.state.replica, objects)
        self.sweeping = bool(found)
        return (QuarantineObjects(found),) if found else ()

    def _purge_later(self, now: Nanoseconds) -> None:
        interval_ms = max(self.limits.gc_interval_ms, self.limits.quarantine_ms // 8)
        self.purge_due = now + min(PURGE_MS, interval_ms) * MS

    def _tend_again(self, now: Nanoseconds) -> SetTimer:
        """Wake at the next expiry, or when garbage is due to be looked for."""
        interval_ms = self.limits.gc_interval_ms
        if self.delegation.is_behind:
            interval_ms = min(interval_ms, BEHIND_MS)
        at = now + interval_ms * MS
        ends = [] if self.expiring else [self.state.replica.next_expiry()]
        ends += [self.garbage.next_lapse(), self.compactors.next_lapse()]
        # Never at once: if an expiry couldn't be queued, what fills the queue must get its turn.
        return SetTimer(TEND, min([at, *(max(now + MS, e * MS) for e in ends if e is not None)]))


def blank(cluster: str, limits: Limits) -> State:
    """Before the first entry: what decides outcomes is as it is by default, until it is
    journaled otherwise.
    """
    return State(cluster, with_replicated(limits, replicated(Limits())))


def replayed(
    cluster: str,
    limits: Limits,
    image: bytes | None,
    entries: Sequence[bytes],
    *,
    knows: int = FORMAT,
) -> State:
    """The snapshot, if there is one, and every group journaled since.

    Raises JournalTooNew where the commands become those of a later version: what this one doesn't
    know of a command would be skipped, and its effects be wrong without a word.
    """
    state = blank(cluster, limits)
    if image is not None:
        state.replica = snapshot.load(image, state.replica.limits)
    _check_format(state, knows)
    for entry in entries:
        for each in decode_group(entry):
            state.apply(each)
        _check_format(state, knows)
    return state


def _check_format(state: State, knows: int) -> None:
    if state.replica.format > knows:
        raise JournalTooNew("the journal of commands", state.replica.format)


def _weight(command: Command) -> int:
    """About how many bytes a command takes in the journal."""
    if isinstance(command, CommitObject):
        return 32 + sum(16 + 24 * len(row.batches) for row in command.rows)
    if isinstance(command, LeadFront | ConfigureFront):
        return 4_096
    if isinstance(command, SwapExtents):
        return 64 + 40 * len(command.extents)
    if isinstance(command, CreateLog | SetSettings) and command.settings is not None:
        return 256 + sum(map(len, command.settings.addresses))
    if isinstance(command, CompleteVersion):
        return 256 + 12 * len(command.parts)
    return 256
