"""A journal in a black box: a log of another system keeps a shard's entries (decision 63)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NoReturn

from anabranch.core.errors import (
    AnabranchError,
    BlackBoxBehind,
    BlackBoxChanged,
    BlackBoxFailed,
    BlackBoxFenced,
    BlackBoxReplaced,
    BlackBoxTaken,
    BlackBoxUnfit,
)
from anabranch.core.limits import MIB
from anabranch.core.storage.black_box import (
    CONTENT_BYTES_MAX,
    Fold,
    Kind,
    Numbering,
    Places,
    Whole,
    decode,
    encode,
    opening,
)
from anabranch.ports import BlackBox, Recovered, Replayed, Snapshot

LOOK_S = 2.0
"""So old may be the last look at the black box when an append is acknowledged."""
_SOMEBODY = "somebody else"


@dataclass(slots=True)
class _Unsure:
    """Records that were sent, or are to be sent, and aren't known to be there."""

    records: list[bytes]
    group: list[bytes] | None = None
    """The entries among them, until their `append` is repeated."""
    snapshot: int = 0


@dataclass(frozen=True, slots=True)
class _Written:
    """The place of a record of this life that is known to be there."""

    position: int
    number: int


class BlackBoxJournal:
    """`ports.RecordJournal` in one black box. Its writer repeats a group that failed until it is
    there (`core/storage/group_journal.py`).

    A black box is in the hands of others, who may trim it, cut it short or make it again. Each
    append looks, at most every `LOOK_S`, whether what was written is still there; one without
    entries does nothing else.
    """

    def __init__(
        self, box: BlackBox, owner: str, life: int, *, noted: int = 0, now: Callable[[], float]
    ) -> None:
        """`owner`: whose journal it is, and stays. `life`: a number that no writer ever had.
        `noted`: entries up to this one are known to have been durable, from outside. `now`: counts
        seconds and never goes back.
        """
        self._box = box
        self._owner = owner
        self._life = life
        self._noted = noted
        self._now = now
        self._numbering = Numbering(life, owner)
        self._fold = Fold()
        self._places = Places()
        self._end = 0
        """Records before this position went through the fold."""
        self._snapshot = (0, 0)
        """The last snapshot's index, and the position where it begins."""
        self._unsure = _Unsure([])
        self._over: AnabranchError | None = None
        """Why nothing is written here any more."""
        self._trouble: AnabranchError | None = None
        """Why nothing is written until a later look finds the black box in order."""
        self._looked = now()
        self._must_look = False
        """Before anything else is acknowledged."""
        self._written = self._known = _Written(0, 0)
        """The last record, and the last one of which a look has found that it is still there."""
        self._writing = Lock()
        """Groups and snapshots are written by a thread each."""
        self._placing = Lock()
        """Of the places: whoever reads back doesn't wait for a write."""

    @property
    def where(self) -> str:
        return self._box.where

    def recover(self) -> Recovered:
        found: list[bytes | None] = []
        entries: list[tuple[int, bytes]] = []

        def take(index: int, entry: bytes) -> None:
            entries.append((index, entry))

        self.recover_into(found.append, take)
        content, first = found[0], entries[0][0] if entries else self._fold.last + 1
        snapshot = Snapshot(first - 1, content) if content is not None else None
        return Recovered(snapshot, first, [each for _, each in entries])

    def recover_into(
        self, restore: Callable[[bytes | None], None], take: Callable[[int, bytes], None]
    ) -> Replayed:
        """Raises BlackBoxTaken, BlackBoxReplaced, BlackBoxBehind, and BlackBoxFailed where the same
        may succeed later.
        """
        begin, end = self._box.bounds()
        snapshot = self._last_snapshot(begin, end)
        restore(snapshot.content if snapshot is not None else None)
        held = snapshot.index if snapshot is not None else 0
        self._end = begin
        self._fold = self._fold_from(begin, end)
        self._replay(end, held, take)
        if not self._fold.last:
            self._fold.last = held
        # Before the opening: records that are put back behind one don't count.
        self._check_noted(held)
        self._open(held, take)
        if self._places.first == self._places.end:
            self._places.end = self._fold.last + 1
        self._looked = self._now()
        return Replayed(self._fold.last)

    def append(self, entries: Sequence[bytes]) -> int:
        with self._writing:
            self._look_at_trouble()
            if self._unsure.group is None and entries:
                first = self._fold.last + 1
                self._unsure.group = list(entries)
                self._unsure.records.extend(self._numbering.entries(first, entries))
            assert (self._unsure.group or []) == list(entries), "a group that failed is repeated"
            self._flush()
            if self._must_look or not entries or self._now() - self._looked >= LOOK_S:
                self._look()
            self._unsure.group = None
            return self._fold.last

    def read(self, first: int, upto: int) -> list[bytes]:
        with self._placing:
            if first < self._places.first:
                raise BlackBoxFailed(self.where, f"entry {first} was forgotten with a snapshot")
            assert first <= upto <= self._places.end
            at, end = self._places.position(first), self._end
        found: list[bytes] = []
        fold = None
        for position, record in self._records(at, end):
            part = decode(record)
            if fold is None:
                if part is None:
                    raise BlackBoxFailed(self.where, f"no entry is at {position} any more")
                fold = Fold.at(part)
            whole = fold.take(position, record)
            if whole is not None and whole.kind == Kind.ENTRY:
                if whole.index != first + len(found):
                    raise BlackBoxFailed(self.where, f"entry {first + len(found)} isn't there")
                found.append(whole.content)
            if len(found) == upto - first:
                return found
        raise BlackBoxFailed(self.where, f"entry {first + len(found)} isn't there")

    def save_snapshot(self, index: int, content: bytes) -> None:
        """Raises BlackBoxFailed for a snapshot that is too large: then nothing is trimmed."""
        if len(content) > CONTENT_BYTES_MAX:
            limit = f"{CONTENT_BYTES_MAX // MIB} MiB"
            reason = f"a snapshot of {len(content)} bytes exceeds {limit}, so nothing is trimmed"
            raise BlackBoxFailed(self.where, reason)
        with self._writing:
            self._look_at_trouble()
            if index > self._snapshot[0]:
                if index > self._unsure.snapshot:
                    self._unsure.snapshot = index
                    self._unsure.records.extend(self._numbering.snapshot(index, content))
                self._flush()
            # What somebody else has put there isn't deleted.
            self._look()
            below = self._needed()
            with self._placing:
                self._places.forget(self._snapshot[0] + 1)
        self._box.trim(below)

    def close(self) -> None:
        self._box.close()

    def _last_snapshot(self, begin: int, end: int) -> Whole | None:
        """None if all entries since the first are there, or none at all."""
        if begin == end:
            return None
        fold, found, first = self._fold_from(begin, end), None, 0
        for position, record in self._records(begin, end):
            whole = fold.take(position, record)
            self._check_owner(fold)
            if whole is None:
                continue
            if whole.kind == Kind.SNAPSHOT:
                found = whole
            elif not first:
                first = whole.index
                if first == 1:
                    return None
        if first > 1 and (found is None or found.index < first - 1):
            proof = "no snapshot tells what entries before them said"
            raise BlackBoxBehind(self.where, first, fold.last, proof)
        return found

    def _fold_from(self, begin: int, end: int) -> Fold:
        if begin == end:
            return Fold()
        part = decode(self._box.read(begin)[0][1])
        if part is None:
            raise self._taken(_SOMEBODY)
        return Fold.at(part)

    def _replay(self, end: int, held: int, take: Callable[[int, bytes], None]) -> None:
        """Have the fold read up to there, and give entries that the snapshot doesn't contain."""
        for position, record in self._records(self._end, end):
            whole = self._take(position, record)
            self._check_owner(self._fold)
            if whole is not None and whole.kind == Kind.ENTRY and whole.index > held:
                take(whole.index, whole.content)

    def _open(self, held: int, take: Callable[[int, bytes], None]) -> None:
        """Begin a life, behind everything that the one before has written."""
        mine = opening(self._life, self._fold.life, self._owner)
        position = self._box.append([encode(mine)])[-1]
        self._replay(position + 1, held, take)
        if self._fold.life != self._life:
            raise BlackBoxFailed(self.where, "another process has opened it at the same time")
        self._written = self._known = _Written(position, 0)

    def _check_noted(self, held: int) -> None:
        last = self._fold.last
        if last < self._noted:
            proof = f"it is noted that entry {self._noted} was there"
            raise BlackBoxBehind(self.where, min(held + 1, last), last, proof)

    def _check_owner(self, fold: Fold) -> None:
        if fold.owner and fold.owner != self._owner:
            raise self._taken(fold.owner)

    def _taken(self, theirs: str) -> AnabranchError:
        if self._noted:
            return BlackBoxReplaced(self.where, theirs, self._owner, self._noted)
        return BlackBoxTaken(self.where, theirs, self._owner)

    def _flush(self) -> None:
        """Write what isn't known to be there. What comes twice doesn't count twice."""
        records = self._unsure.records
        if not records:
            return
        try:
            positions = self._box.append(records)
        except BlackBoxFailed:
            # It may be gone: then a look says so.
            self._must_look = True
            raise
        if positions[0] < self._end:
            proof = f"records were acknowledged up to position {self._end - 1}, and one at "
            self._stop(BlackBoxChanged(self.where, f"{proof}{positions[0]} since"))
        if positions == list(range(self._end, self._end + len(records))):
            for position, record in zip(positions, records, strict=True):
                self._take(position, record)
        else:
            # Others may have put their records in the place of what was there.
            self._known = self._written
            self._look()
            self._take_between(positions[-1] + 1, records)
        if self._fold.life != self._life:
            self._stop(BlackBoxFenced(self.where))
        if self._fold.number != self._numbering.next:
            raise BlackBoxFailed(self.where, "some records didn't arrive")
        self._written = _Written(positions[-1], self._numbering.next - 1)
        self._unsure.records.clear()
        self._unsure.snapshot = 0
        if self._box.begin > self._needed():
            self._must_look = True

    def _take_between(self, end: int, records: Sequence[bytes]) -> None:
        """These records don't follow what was known: others wrote there, or they came twice."""
        first = self._numbering.next - len(records)
        for position, record in self._records(self._end, end):
            nth = self._fold.number - first
            self._take(position, record)
            mine = self._fold.life == self._life and self._fold.number - first > nth
            if mine and records[nth : nth + 1] != [record]:
                proof = f"the record at position {position} was written in this shard's name"
                self._stop(BlackBoxChanged(self.where, proof))

    def _look_at_trouble(self) -> None:
        """Raises what keeps this journal from writing."""
        if self._over is not None:
            # Raised again and again, it would gather a trace of all of them.
            raise self._over.with_traceback(None)
        if self._trouble is not None and self._now() - self._looked < LOOK_S:
            raise self._trouble.with_traceback(None)
        if self._trouble is not None or self._must_look:
            # Records that can't be acknowledged aren't sent again and again.
            self._look()

    def _look(self) -> None:
        """Raises BlackBoxChanged if records that a restart needs aren't there any more."""
        self._must_look = True
        try:
            begin, end = self._box.look()
            self._check_kept(begin, end)
        except (BlackBoxChanged, BlackBoxUnfit) as error:
            self._trouble = error
            raise
        finally:
            self._looked = self._now()
        self._trouble = None
        self._must_look = False
        self._known = self._written

    def _check_kept(self, begin: int, end: int) -> None:
        needed, known = self._needed(), self._known
        if begin > needed:
            self._check_fenced()
            proof = f"it begins at position {begin}, and the log needs records from {needed} on"
            raise BlackBoxChanged(self.where, proof)
        if end < self._end:
            proof = f"it ends at position {end}, and records were acknowledged up to "
            raise BlackBoxChanged(self.where, f"{proof}{self._end - 1}")
        if known.position < begin:
            return
        position, record = self._box.read(known.position)[0]
        part = decode(record) if position == known.position else None
        if part is None or (part.life, part.number) != (self._life, known.number):
            proof = f"the record at position {known.position} isn't the one that was written there"
            raise BlackBoxChanged(self.where, proof)

    def _check_fenced(self) -> None:
        """Whoever opened the black box since may have trimmed it with every right."""
        begin, end = self._box.bounds()
        if begin < end and begin > self._end:
            part = decode(self._box.read(begin)[0][1])
            if part is not None and part.life != self._life:
                self._stop(BlackBoxFenced(self.where))
        for position, record in self._records(max(begin, self._end), end):
            self._take(position, record)
        if self._fold.life != self._life:
            self._stop(BlackBoxFenced(self.where))

    def _needed(self) -> int:
        """The position from which on a restart needs what is there."""
        with self._placing:
            held, below = self._snapshot
            first = max(held + 1, self._places.first)
            if first >= self._places.end:
                return below if held else self._end
            position = self._places.position(first)
            return min(below, position) if held else position

    def _stop(self, why: AnabranchError) -> NoReturn:
        self._over = why
        raise why

    def _take(self, position: int, record: bytes) -> Whole | None:
        assert position >= self._end, "each record is read once"
        whole = self._fold.take(position, record)
        self._end = position + 1
        if whole is not None and whole.kind == Kind.ENTRY:
            with self._placing:
                self._places.add(whole.index, whole.position)
        elif whole is not None:
            self._snapshot = (whole.index, whole.position)
        return whole

    def _records(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Those from `start` on, up to and without `end`."""
        while start < end:
            for position, record in self._box.read(start):
                if position >= end:
                    return
                yield position, record
                start = position + 1
