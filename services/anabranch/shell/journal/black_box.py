"""A journal in a black box: a log of another system keeps a shard's entries (decision 63)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from anabranch.core.errors import (
    AnabranchError,
    BlackBoxBehind,
    BlackBoxFailed,
    BlackBoxFenced,
    BlackBoxTaken,
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

_SOMEBODY = "somebody else"


@dataclass(slots=True)
class _Unsure:
    """Records that were sent, or are to be sent, and aren't known to be there."""

    records: list[bytes]
    group: list[bytes] | None = None
    """The entries among them, until their `append` is repeated."""
    snapshot: int = 0


class BlackBoxJournal:
    """`ports.RecordJournal` in one black box. Its writer repeats a group that failed until it is
    there (`core/storage/group_journal.py`).
    """

    def __init__(self, box: BlackBox, owner: str, life: int, *, noted: int = 0) -> None:
        """`owner`: whose journal it is, and stays. `life`: a number that no writer ever had.
        `noted`: entries up to this one are known to have been durable, from outside.
        """
        self._box = box
        self._owner = owner
        self._life = life
        self._noted = noted
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
        """Raises BlackBoxTaken, BlackBoxBehind, and BlackBoxFailed where the same may succeed
        later.
        """
        begin, end = self._box.bounds()
        snapshot = self._last_snapshot(begin, end)
        restore(snapshot.content if snapshot is not None else None)
        held = snapshot.index if snapshot is not None else 0
        self._end = begin
        self._fold = self._fold_from(begin, end)
        self._replay(end, held, take)
        self._open(held, take)
        self._check(held)
        return Replayed(self._fold.last)

    def append(self, entries: Sequence[bytes]) -> int:
        with self._writing:
            if self._unsure.group is None:
                first = self._fold.last + 1
                self._unsure.group = list(entries)
                self._unsure.records.extend(self._numbering.entries(first, entries))
            assert self._unsure.group == list(entries), "a group that failed is repeated"
            self._flush()
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
            if index > self._snapshot[0]:
                if index > self._unsure.snapshot:
                    self._unsure.snapshot = index
                    self._unsure.records.extend(self._numbering.snapshot(index, content))
                self._flush()
            held, below = self._snapshot
            with self._placing:
                if held + 1 < self._places.end:
                    below = min(below, self._places.position(max(held + 1, self._places.first)))
                self._places.forget(held + 1)
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
            raise BlackBoxTaken(self.where, _SOMEBODY, self._owner)
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
        if not self._fold.last:
            self._fold.last = held
        mine = opening(self._life, self._fold.life, self._owner)
        position = self._box.append([encode(mine)])[-1]
        self._replay(position + 1, held, take)
        if self._fold.life != self._life:
            raise BlackBoxFailed(self.where, "another process has opened it at the same time")

    def _check(self, held: int) -> None:
        last = self._fold.last
        if last < self._noted:
            proof = f"it is noted that entry {self._noted} was there"
            raise BlackBoxBehind(self.where, min(held + 1, last), last, proof)
        if self._places.first == self._places.end:
            self._places.end = last + 1

    def _check_owner(self, fold: Fold) -> None:
        if fold.owner and fold.owner != self._owner:
            raise BlackBoxTaken(self.where, fold.owner, self._owner)

    def _flush(self) -> None:
        """Write what isn't known to be there. What comes twice doesn't count twice."""
        if self._over is not None:
            raise self._over
        records = self._unsure.records
        if not records:
            return
        positions = self._box.append(records)
        if positions == list(range(self._end, self._end + len(records))):
            for position, record in zip(positions, records, strict=True):
                self._take(position, record)
        elif positions[-1] < self._end:
            proof = f"records were acknowledged up to position {self._end - 1}"
            self._stop(BlackBoxBehind(self.where, self._places.first, self._fold.last, proof))
        else:
            for position, record in self._records(self._end, positions[-1] + 1):
                self._take(position, record)
        if self._fold.life != self._life:
            self._stop(BlackBoxFenced(self.where))
        if self._fold.number != self._numbering.next:
            raise BlackBoxFailed(self.where, "some records didn't arrive")
        self._unsure.records.clear()
        self._unsure.snapshot = 0

    def _stop(self, why: AnabranchError) -> None:
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
