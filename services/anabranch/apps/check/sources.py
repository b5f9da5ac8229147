"""A data directory as `anabranch fsck` reads it: with its lock, or beside its running server."""

import asyncio
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from anabranch.apps.check.cut import OR_CUT, Cut, Plan, place_of, plan_cut
from anabranch.apps.check.embedded import EmbeddedJournals
from anabranch.apps.check.fsck import Examination, JournalContents, Pile, Progress, Report, pile
from anabranch.apps.check.journal_behind import Reach, accept, advice
from anabranch.core.bolt.metadata.leader import replayed
from anabranch.core.bolt.state.audit import Fault
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import (
    BadRequest,
    DataDirLocked,
    JournalBehind,
    JournalCorrupt,
    StorageFailed,
)
from anabranch.core.limits import Limits
from anabranch.ports import StoredObject
from anabranch.shell.journal.data_dir import DataDir, holds_something
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.replay import Replay, replay
from anabranch.shell.journal.watermark import NotedJournal, WatermarkFile
from anabranch.shell.objects import quarantine
from anabranch.shell.objects.folder import FolderStore, StoredFolder
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

LOOKS = 5
"""At a journal that is in use: its files may be replaced between listing and reading them."""


class Directory:
    """A data directory; nobody else may open it, unless somebody has it open already.

    With `alone` nothing is done beside a running server: DataDirLocked is raised.
    """

    def __init__(self, data: str, limits: Limits, *, alone: bool = False) -> None:
        if not holds_something(data):
            raise BadRequest(
                f"{data}", "nothing is stored there: give the directory of `up --data`"
            )
        self._limits = limits
        self.online = False
        try:
            self.directory = DataDir(data, "unused")
        except DataDirLocked:
            if alone:
                raise
            self.directory = DataDir(data, "unused", shared=True)
            self.online = True
        self.where = self.directory.root
        self.journal = self.directory.journal
        self.cluster = self.directory.cluster
        self._store = StoredFolder(self.directory.objects)
        self._plan: Plan | None = None
        self._embedded = EmbeddedJournals(self.where, self.cluster)
        self._examination = Examination(self, limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.directory.close()

    def report(self, progress: Progress) -> Report:
        self._plan = None
        report = self._examination.report(progress, self._cut)
        looks = LOOKS if self.online else 1
        others = self._embedded.faults(looks)
        return replace(report, faults=[*report.faults, *others], node_cuts=self._embedded.cuts)

    def quarantine_orphans(self) -> Pile:
        """Nothing can refer to them any more: the server isn't running, and its next life has
        another epoch.
        """
        self._demand_whole()
        orphans = self._examination.orphans
        asyncio.run(self._quarantine([each.name for each in orphans]))
        return pile(orphans)

    def _demand_whole(self) -> None:
        """Of a journal that isn't all, nobody knows what it doesn't refer to."""
        if self._plan is not None:
            raise BadRequest(
                "fsck --repair",
                "the journal is damaged, and what it refers to behind the damage can't be told "
                "from orphans: restore the damaged file, or cut the journal (--cut-journal)",
            )
        found = self.replay_whole()
        replica = replayed(self.cluster, self._limits, found.image, found.entries).replica
        lives = replica.broker_epochs
        proof = Reach(self.directory).proof(found.last, lives)
        if proof:
            reason = "--repair would take objects that they refer to for orphans"
            todo = f"{reason}. {advice(self.directory, found.last, lives)}"
            raise JournalBehind(self.journal, found.last, proof, todo)

    def cut_journals(self) -> list[str]:
        """Go back to what could be replayed; the rest is put aside, not deleted. Returns where."""
        aside = [] if self._plan is None else [self._cut_journal(self._plan)]
        return [*aside, *self._embedded.cut()]

    def _cut_journal(self, plan: Plan) -> str:
        directory = self.directory
        # Objects that the cut journal doesn't know go with what was cut off.
        unknown = (*self._examination.orphans, *self._examination.unexplained)
        aside = plan.perform(directory.root, directory.objects, [each.name for each in unknown])
        files = FileJournal(RealDisk(directory.journal), directory.cluster)
        note = WatermarkFile(directory.objects)
        journal = NotedJournal(files, note, lambda: 0.0)
        with ExitStack() as stack:
            found = journal.recover()
            stack.callback(journal.close)
            accept(directory, journal, self._limits, Log(Clock().now), found)
        return aside

    def stored(self) -> list[StoredObject]:
        return self._store.list()

    def get(self, name: str) -> bytes:
        return self._store.get(name, 0, self._store.size(name))

    def replay(self, faults: list[Fault]) -> JournalContents:
        found = self._replayed(faults)
        snapshot = found.snapshot
        return JournalContents(
            snapshot.content if snapshot else None,
            found.first - 1,
            found.entries,
            _notes(found, online=self.online),
        )

    def replay_whole(self) -> JournalContents:
        """Raises JournalCorrupt if it can't be replayed to its end."""
        found = replay(RealDisk(self.journal), self.cluster)
        image = found.snapshot.content if found.snapshot else None
        return JournalContents(image, found.first - 1, found.entries)

    def behind(self, found: JournalContents, replica: Replica) -> str:
        """Beside a running server it would only tell of what came since the journal was read."""
        if self.online or self._plan is not None:
            return ""
        return Reach(self.directory).proof(found.last, replica.broker_epochs)

    def _cut(self) -> Cut | None:
        return self._plan.cut if self._plan else None

    async def _quarantine(self, names: list[str]) -> None:
        store = FolderStore(self.directory.objects)
        try:
            await quarantine.move(store, names, Log(Clock().now))
        finally:
            await store.close()

    def _replayed(self, faults: list[Fault]) -> Replay:
        disk = RealDisk(self.directory.journal)
        for _ in range(LOOKS - 1 if self.online else 0):
            try:
                return replay(disk, self.cluster)
            except (JournalCorrupt, StorageFailed):
                continue
        try:
            return replay(disk, self.cluster)
        except JournalCorrupt as damage:
            reason = f"{place_of(damage)}. What to do: {OR_CUT}"
            faults.append(Fault(damage.code, str(damage.facts["path"]), reason))
            plan, kept = plan_cut(disk, self.cluster, damage)
            self._plan = plan
            return kept


def _notes(found: Replay, *, online: bool) -> list[str]:
    notes = [f"{damage.message} (an older one is used)" for damage in found.unreadable]
    if online:
        return notes
    if found.tail is not None and found.tail.torn:
        name, end = found.tail.segment.name, found.tail.end
        notes.append(f"{name} ends in an unfinished write at byte {end}: never acknowledged")
    notes += [f"{name} was never finished" for name in found.unfinished]
    return notes
