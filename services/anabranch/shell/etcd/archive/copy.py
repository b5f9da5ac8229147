"""Copies the journal into the bucket, so that the metadata outlive etcd (docs/decisions/0018).

Only a leader copies, in a thread of its own, reading from etcd what the bucket doesn't have yet. So
there is no queue to bound, and a new leader begins where the last one ended. A segment that a
deposed leader writes late holds what is journaled all the same.
"""

import threading
from collections.abc import Callable, Sequence

from anabranch.core.errors import (
    AnabranchError,
    Damage,
    JournalBehind,
    JournalCorrupt,
    ObjectExists,
)
from anabranch.core.storage.archive import Segment, chain, covered, pack, unpack
from anabranch.core.types import Milliseconds
from anabranch.ports import Recovered
from anabranch.shell.etcd.archive.snapshots import Blobs, Snapshots
from anabranch.shell.etcd.group.reader import JournalReader
from anabranch.shell.telemetry.log import Log

SEGMENT_BYTES_MAX = 8 << 20
_RETRY_S = 1.0
_ADVICE = (
    "etcd was restored from an older snapshot, or lost entries. Stop every metadata member, then "
    "rebuild the journal from the bucket with `anabranch recover --from-bucket --replace`"
)


class Archive:
    """`<cluster>/meta/journal/<first>-<last>`: what is there, and more of it."""

    def __init__(self, cluster: str, blobs: Blobs) -> None:
        self._cluster = cluster
        self._blobs = blobs
        self._prefix = f"{cluster}/meta/journal/"
        self.snapshots = Snapshots(cluster, blobs)

    def segments(self) -> list[Segment]:
        names = self._blobs.list(self._prefix)
        found = (Segment.parse(name.removeprefix(self._prefix)) for name in names)
        return [segment for segment in found if segment is not None]

    def write(self, first: int, entries: Sequence[bytes]) -> None:
        segment = Segment(first, first + len(entries) - 1)
        try:
            self._blobs.put(self._name(segment), pack(self._cluster, first, entries))
        except ObjectExists:
            # By a leader before, or by us and the answer was lost: the same entries.
            return

    def reach(self) -> int:
        """The last entry from which on everything can be rebuilt from the bucket alone."""
        kept = self.snapshots.kept()
        index = kept[0].index if kept else 0
        behind = chain(self.segments(), index)
        return behind[-1].last if behind else index

    def furthest(self) -> int:
        """The last entry that the bucket knows to have been journaled, gaps or not."""
        found = [segment.last for segment in self.segments()]
        return max([0, *found, *(each.index for each in self.snapshots.kept())])

    def check(self, reader: JournalReader) -> None:
        """Raise JournalBehind if etcd's journal ends before the bucket's copy of it.

        The copy is looked at first: it only ever holds what etcd held before, so a journal that is
        whole is never found behind, whoever leads meanwhile.
        """
        reached = self.furthest()
        last = reader.end()
        if reached > last:
            proof = f"the archive in the bucket reached entry {reached}"
            raise JournalBehind(f"in {reader.where}", last, proof, _ADVICE)

    def prune(self) -> None:
        """Forget what the oldest snapshot kept makes needless: a newer one may be damaged."""
        kept = self.snapshots.kept()
        needless = covered(self.segments(), kept[-1].index) if kept else []
        if needless:
            self._blobs.delete([self._name(segment) for segment in needless])

    def recover(self, *, cut: bool = False) -> Recovered:
        """The newest snapshot that can be read, and every entry behind it; with `cut` those behind
        a damaged segment are given up.
        """
        snapshot, wrong = self.snapshots.load(None, 0)
        index = snapshot.index if snapshot else 0
        entries: list[bytes] = []
        for segment in chain(self.segments(), index):
            name = self._name(segment)
            try:
                found = unpack(self._blobs.get(name), name, self._cluster, segment)
            except JournalCorrupt as damage:
                if not cut:
                    raise
                wrong = (*wrong, f"{damage.message} (the rest was given up)")
                break
            entries += found[index + len(entries) + 1 - segment.first :]
        return Recovered(snapshot, index + 1, entries, wrong)

    def forget_behind(self, index: int) -> None:
        """What can't be joined to this entry: its indices are about to be given anew."""
        names = [self._name(each) for each in self.segments() if each.last > index]
        names += [each.object for each in self.snapshots.kept() if each.index > index]
        if names:
            self._blobs.delete(names)

    def _name(self, segment: Segment) -> str:
        return f"{self._prefix}{segment}"


class Archiver:
    """The thread that copies while this member leads."""

    def __init__(
        self, archive: Archive, reader: JournalReader, interval_ms: Milliseconds, log: Log
    ) -> None:
        self._archive = archive
        self._reader = reader
        self._interval_s = interval_ms / 1_000
        self._log = log
        self._turn = threading.Condition()
        self._leading = False
        self._checked = False
        """Of this lead: the bucket was found to have no more than etcd."""
        self.on_damage: Callable[[AnabranchError], None] = lambda _: None
        """Called when the journal of this member's lead can't be all that was journaled."""
        self._wanted = 0
        """Somebody waits until the bucket has this entry."""
        self._closed = False
        self.reached = 0
        """The last entry that the bucket is known to have, since this member leads."""
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    @property
    def leading(self) -> bool:
        return self._leading

    def lead(self) -> None:
        with self._turn:
            self._leading, self._checked, self.reached = True, False, 0
            self._turn.notify_all()

    def step_down(self) -> None:
        with self._turn:
            self._leading = False
            self._turn.notify_all()

    def wait(self, index: int, at_most_s: float | None) -> bool:
        """Until the bucket has it. False if it hasn't: time is up, or this member leads no more."""
        with self._turn:
            self._wanted = max(self._wanted, index)
            self._turn.notify_all()
            self._turn.wait_for(
                lambda: self.reached >= index or not self._leading or self._closed, at_most_s
            )
            return self.reached >= index

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while self._wait_for_turn():
            try:
                self._copy()
            except Damage as error:
                self._leading = False
                self.on_damage(error)
            except AnabranchError as error:
                self._log.warning("the journal isn't archived", reason=error.message)
                with self._turn:
                    self._turn.wait_for(lambda: self._closed, _RETRY_S)

    def _wait_for_turn(self) -> bool:
        """False when it is time to end."""
        with self._turn:
            self._turn.wait_for(
                lambda: self._closed or (self._leading and self._wanted > self.reached),
                self._interval_s,
            )
            self._turn.wait_for(lambda: self._closed or self._leading)
            return not self._closed

    def _copy(self) -> None:
        if not self._checked:
            self._archive.check(self._reader)
            self._checked = True
        reached = self.reached or self._archive.reach()
        found = self._reader.read_after(reached).recovered
        first, held, size = found.first, list[bytes](), 0
        for entry in found.entries:
            if held and size + len(entry) > SEGMENT_BYTES_MAX:
                self._archive.write(first, held)
                first, held, size = first + len(held), [], 0
            held.append(entry)
            size += len(entry)
        if held:
            self._archive.write(first, held)
        with self._turn:
            self.reached = max(reached, found.last)
            self._turn.notify_all()
