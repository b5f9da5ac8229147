"""`anabranch fsck`: prove from the stored bytes that every log in them can be read whole.

It changes nothing and needs no lock: beside a running server or cluster, what changes meanwhile is
looked at twice. Where the bytes come from is in `sources.py` and `pods/fsck.py`; what is true of a
replica and its objects is in core/bolt/state/audit.py.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from anabranch.apps.check.cut import Cut
from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.state import audit
from anabranch.core.bolt.state.audit import Fault, Holding
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import AnabranchError, BadName, ObjectMissing
from anabranch.core.limits import Limits
from anabranch.core.records.objects import ObjectName, split_id, unquarantined
from anabranch.core.types import Kind, ObjectId
from anabranch.ports import StoredObject

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
    online: bool
    """It was in use meanwhile: what was being written then isn't judged."""
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
    """Written and never committed, as far as the journal tells: the server moves them to
    quarantine after its next start.
    """
    quarantine: Pile
    """Orphans that are deleted when quarantine_ms is over."""
    strangers: list[str]
    """Files among the objects that aren't this cluster's."""
    notes: list[str]
    """What the next start of the server puts right by itself."""
    cut: Cut | None
    """What cutting the damaged journal would cost."""
    node_cuts: list[Cut] = []
    """The same of nodes of Belfast logs whose journals nobody can fill again."""
    faults: list[Fault]

    @property
    def sound(self) -> bool:
        return not self.faults

    @property
    def cuts(self) -> list[Cut]:
        return [*([self.cut] if self.cut else []), *self.node_cuts]

    @property
    def whole_journal(self) -> bool:
        """Otherwise an orphan may be an object that the missing entries refer to."""
        return not any(each.code in {"journal-behind", "journal-corrupt"} for each in self.faults)


@dataclass(slots=True)
class JournalContents:
    """What a journal holds."""

    image: bytes | None = None
    snapshot: int = 0
    entries: list[bytes] = field(default_factory=list[bytes])
    notes: list[str] = field(default_factory=list[str])

    @property
    def last(self) -> int:
        return self.snapshot + len(self.entries)


class Source(Protocol):
    """Stored bytes, as they lie there."""

    where: str
    journal: str
    cluster: str
    online: bool
    """Somebody may be writing while this is read."""

    def stored(self) -> list[StoredObject]: ...

    def replay(self, faults: list[Fault]) -> JournalContents: ...

    def get(self, name: str) -> bytes:
        """A whole object."""
        ...

    def behind(self, found: JournalContents, replica: Replica) -> str:
        """Why the journal can't be all that was journaled; empty if it may be."""
        ...


@dataclass(slots=True)
class Listing:
    stored: dict[ObjectId, StoredObject]
    quarantined: dict[ObjectId, StoredObject]
    strangers: list[str]


@dataclass(slots=True)
class _Sums:
    objects: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0


class Examination:
    """Looks at all of a source."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self.orphans: list[StoredObject] = []
        self.unexplained: list[StoredObject] = []
        """Objects of broker lives that the journal doesn't know."""

    def report(self, progress: Progress, cut: Callable[[], Cut | None] = lambda: None) -> Report:
        """Prove all of it; the longest part is reading every object."""
        source, faults = self._source, list[Fault]()
        # Objects before the journal, which then knows of every one that was committed by now.
        listing = listed(source)
        found = source.replay(faults)
        replica = self._replica(found, faults)
        faults += audit.replica_faults(replica)
        garbage = self._sort(replica, listing)
        behind = source.behind(found, replica)
        if behind:
            faults.append(Fault("journal-behind", source.journal, behind))
        sums = _Sums()
        faults += self._read(dict(audit.holdings(replica)), listing, sums, progress)
        logs = replica.forest.logs.values()
        roots = sum(log.kind is Kind.ROOT for log in logs)
        return Report(
            data=source.where,
            cluster=source.cluster,
            online=source.online,
            snapshot=found.snapshot,
            entries=len(found.entries),
            logs=roots,
            forks=len(logs) - roots,
            extents=sum(len(log.index) for log in logs),
            objects=sums.objects,
            bytes=sums.bytes,
            batches=sums.batches,
            records=sums.records,
            garbage=pile(garbage),
            orphans=pile(self.orphans),
            quarantine=pile(listing.quarantined.values()),
            strangers=listing.strangers,
            notes=found.notes,
            cut=cut(),
            faults=faults,
        )

    def _replica(self, found: JournalContents, faults: list[Fault]) -> Replica:
        cluster = self._source.cluster
        try:
            leader = Metadata.recovered(
                cluster, self._limits, found.image, found.entries, found.last
            )
        except (AssertionError, msgspec.DecodeError) as error:
            reason = f"its entries check, but can't be applied: {error}"
            faults.append(Fault("journal-corrupt", self._source.journal, reason))
            return Replica(cluster, self._limits)
        return leader.state.replica

    def _sort(self, replica: Replica, listing: Listing) -> list[StoredObject]:
        """Tell garbage that waits for its grace, which is returned, from orphans and worse."""
        garbage: list[StoredObject] = []
        self.orphans, self.unexplained = [], []
        held = {object for object, _ in audit.holdings(replica)}
        writing = {each.epoch for each in replica.brokers.values()} if self._source.online else {0}
        for object, each in listing.stored.items():
            if object in held:
                continue
            life = split_id(object)[0]
            if object in replica.references.garbage:
                garbage.append(each)
            elif life > replica.broker_epochs:
                self.unexplained.append(each)
            elif life not in writing:
                self.orphans.append(each)
        return garbage

    def _read(
        self,
        held: dict[ObjectId, list[Holding]],
        listing: Listing,
        sums: _Sums,
        progress: Progress,
    ) -> Iterator[Fault]:
        total = sum(listing.stored[each].size for each in held if each in listing.stored)
        faulty: dict[ObjectId, list[Fault]] = {}
        for object, holdings in held.items():
            inspection = self._inspect(object, holdings, listing, sums)
            if inspection.faults:
                faulty[object] = inspection.faults
            sums.batches += inspection.batches
            sums.records += inspection.records
            progress(min(sums.bytes, total), total)
        if faulty and self._source.online:
            # What was squashed, trimmed or compacted meanwhile may have been deleted.
            still = self._replica(self._source.replay([]), [])
            kept = {object for object, _ in audit.holdings(still)}
            faulty = {object: each for object, each in faulty.items() if object in kept}
        for each in faulty.values():
            yield from each

    def _inspect(
        self, object: ObjectId, holdings: list[Holding], listing: Listing, sums: _Sums
    ) -> audit.Inspection:
        cluster = self._source.cluster
        name = str(ObjectName.of(cluster, object))
        try:
            content = self._source.get(name)
        except ObjectMissing:
            in_quarantine = object in listing.quarantined
            return audit.Inspection(0, 0, [*audit.loss(name, holdings, in_quarantine)])
        except AnabranchError as error:
            faults = [Fault(error.code, name, error.message), *audit.loss(name, holdings)]
            return audit.Inspection(0, 0, faults)
        sums.objects += 1
        sums.bytes += len(content)
        return audit.inspect(name, cluster, content, holdings)


def listed(source: Source) -> Listing:
    found = Listing({}, {}, [])
    for each in source.stored():
        was = unquarantined(each.name)
        try:
            name = ObjectName.parse(was)
        except BadName:
            name = None
        if name is None or name.cluster != source.cluster:
            found.strangers.append(each.name)
        elif was != each.name:
            found.quarantined[name.id] = each
        else:
            found.stored[name.id] = each
    return found


def pile(objects: Iterable[StoredObject]) -> Pile:
    sizes = [each.size for each in objects]
    return Pile(len(sizes), sum(sizes))
