"""`anabranch fsck`: prove from a data directory's bytes that every log in it can be read whole.

It looks with the directory's lock held and changes nothing, unless told to. What is true of a
replica and its objects is in core/bolt/audit.py; this reads the files for it.
"""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import msgspec

from anabranch.apps.cut import Cut, Plan, plan_cut
from anabranch.core.bolt import audit
from anabranch.core.bolt.audit import Fault, Holding
from anabranch.core.bolt.metadata import Metadata
from anabranch.core.bolt.replica import Replica
from anabranch.core.errors import AnabranchError, BadName, BadRequest, JournalCorrupt
from anabranch.core.limits import Limits
from anabranch.core.records.objects import ObjectName, split_id
from anabranch.core.types import Kind, ObjectId
from anabranch.ports import StoredObject
from anabranch.shell.datadir import DataDir, holds_something
from anabranch.shell.disk import RealDisk
from anabranch.shell.folder import Folder, StoredFolder
from anabranch.shell.replay import Replay, replay

Progress = Callable[[int, int], None]
"""Bytes of objects read, and to be read."""


class Pile(msgspec.Struct, frozen=True):
    """Objects that no log refers to."""

    objects: int
    bytes: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was found; without `faults`, every record of every log is there."""

    data: str
    cluster: str
    snapshot: int
    """The journal entry that the snapshot contains; 0 without one."""
    entries: int
    """Journal entries after it."""
    logs: int
    forks: int
    extents: int
    objects: int
    """Objects that were read through, every checksum in them recomputed."""
    bytes: int
    batches: int
    records: int
    garbage: Pile
    """Squashed, trimmed or replaced: deleted when the grace period is over."""
    orphans: Pile
    """Written and never committed: deleted by the server after its next start."""
    strangers: list[str]
    """Files among the objects that aren't this cluster's."""
    notes: list[str]
    """What the next start of the server puts right by itself."""
    cut: Cut | None
    """What cutting the damaged journal would cost."""
    faults: list[Fault]

    @property
    def sound(self) -> bool:
        return not self.faults


class Examination:
    """A data directory while it is examined: nobody else may open it."""

    def __init__(self, data: str, limits: Limits) -> None:
        if not holds_something(data):
            raise BadRequest(
                f"{data}", "nothing is stored there: give the directory of `up --data`"
            )
        self._directory = DataDir(data, "unused")
        self._limits = limits
        self._store = StoredFolder(self._directory.objects)
        self._plan: Plan | None = None
        self._orphans: list[StoredObject] = []
        self._future: list[StoredObject] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._directory.close()

    def report(self, progress: Progress) -> Report:
        """Prove all of it; the longest part is reading every object."""
        faults: list[Fault] = []
        found = self._replay(faults)
        replica = self._replica(found, faults)
        faults += audit.replica_faults(replica)
        stored, strangers = self._stored()
        held = dict(audit.holdings(replica))
        garbage = self._sort(replica, held, stored, faults)
        total = sum(stored[object].size for object in held if object in stored)
        done = batches = records = objects = 0
        for object, holdings in held.items():
            name = str(ObjectName.of(self._directory.cluster, object))
            if object not in stored:
                faults += audit.loss(name, holdings)
                continue
            inspection = self._inspect(name, stored[object].size, holdings)
            faults += inspection.faults
            batches += inspection.batches
            records += inspection.records
            objects += 1
            done += stored[object].size
            progress(done, total)
        logs = replica.forest.logs.values()
        roots = sum(log.kind is Kind.ROOT for log in logs)
        return Report(
            data=self._directory.root,
            cluster=self._directory.cluster,
            snapshot=found.snapshot.index if found.snapshot else 0,
            entries=len(found.entries),
            logs=roots,
            forks=len(logs) - roots,
            extents=sum(len(log.index) for log in logs),
            objects=objects,
            bytes=done,
            batches=batches,
            records=records,
            garbage=_pile(garbage),
            orphans=_pile(self._orphans),
            strangers=strangers,
            notes=_notes(found),
            cut=self._plan.cut if self._plan else None,
            faults=faults,
        )

    def delete_orphans(self) -> Pile:
        """Nothing can refer to them any more: the server isn't running, and its next life has
        another epoch.
        """
        pile = _pile(self._orphans)
        if self._orphans:
            Folder(self._directory.objects).delete([each.name for each in self._orphans])
        self._orphans = []
        return pile

    def cut_journal(self) -> str:
        """Go back to what could be replayed; the rest is put aside, not deleted. Returns where."""
        assert self._plan is not None, "only a damaged journal is cut"
        # The next broker's life takes the first epoch that the cut journal doesn't know: objects
        # of a lost life would stand in its way.
        unreferenced = [each.name for each in (*self._orphans, *self._future)]
        return self._plan.perform(self._directory.root, self._directory.objects, unreferenced)

    def _replay(self, faults: list[Fault]) -> Replay:
        disk = RealDisk(self._directory.journal)
        try:
            return replay(disk, self._directory.cluster)
        except JournalCorrupt as damage:
            faults.append(Fault(damage.code, str(damage.facts["path"]), damage.message))
            self._plan, kept = plan_cut(disk, self._directory.cluster, damage)
            return kept

    def _replica(self, found: Replay, faults: list[Fault]) -> Replica:
        image = found.snapshot.content if found.snapshot else None
        last = found.first + len(found.entries) - 1
        cluster = self._directory.cluster
        try:
            leader = Metadata.recovered(cluster, self._limits, image, found.entries, last)
        except (AssertionError, msgspec.DecodeError) as error:
            reason = f"its entries check, but can't be applied: {error}"
            faults.append(Fault("journal-corrupt", self._directory.journal, reason))
            return Replica(cluster, self._limits)
        return leader.state.replica

    def _stored(self) -> tuple[dict[ObjectId, StoredObject], list[str]]:
        stored: dict[ObjectId, StoredObject] = {}
        strangers: list[str] = []
        for each in self._store.list():
            try:
                name = ObjectName.parse(each.name)
            except BadName:
                strangers.append(each.name)
                continue
            if name.cluster == self._directory.cluster:
                stored[name.id] = each
            else:
                strangers.append(each.name)
        return stored, strangers

    def _sort(
        self,
        replica: Replica,
        held: dict[ObjectId, list[Holding]],
        stored: dict[ObjectId, StoredObject],
        faults: list[Fault],
    ) -> list[StoredObject]:
        """Tell garbage that waits for its grace, which is returned, from orphans and worse."""
        garbage: list[StoredObject] = []
        self._orphans, self._future = [], []
        for object, each in stored.items():
            if object in held:
                continue
            if object in replica.references.garbage:
                garbage.append(each)
            elif split_id(object)[0] <= replica.broker_epochs:
                self._orphans.append(each)
            else:
                self._future.append(each)
                reason = (
                    "the journal knows nothing of the broker that wrote it: entries are missing"
                )
                faults.append(Fault("journal-behind", each.name, reason))
        return garbage

    def _inspect(self, name: str, size: int, holdings: list[Holding]) -> audit.Inspection:
        try:
            content = self._store.get(name, 0, size)
        except AnabranchError as error:
            faults = [Fault(error.code, name, error.message), *audit.loss(name, holdings)]
            return audit.Inspection(0, 0, faults)
        return audit.inspect(name, self._directory.cluster, content, holdings)


def _pile(objects: Iterable[StoredObject]) -> Pile:
    sizes = [each.size for each in objects]
    return Pile(len(sizes), sum(sizes))


def _notes(found: Replay) -> list[str]:
    notes = [f"{damage.message} (an older one is used)" for damage in found.unreadable]
    if found.tail is not None and found.tail.torn:
        name, end = found.tail.segment.name, found.tail.end
        notes.append(f"{name} ends in an unfinished write at byte {end}: never acknowledged")
    notes += [f"{name} was never finished" for name in found.unfinished]
    return notes
