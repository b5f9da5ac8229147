"""A shard's local log as one replica holds it, in memory and in its journal alike."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from anabranch.core.alarms import Alarms
from anabranch.core.machine import Effect, SaveSnapshot
from anabranch.core.replication.entries import (
    Born,
    CutBack,
    Entry,
    Item,
    LogImage,
    Note,
    SealedBelow,
    Skipped,
    decode_entry,
    decode_image,
    encode,
)
from anabranch.core.replication.index import Holdings
from anabranch.core.replication.journal import Journaling
from anabranch.core.replication.terms import Reign, Reigns, epoch_of, reign_after
from anabranch.core.types import LocalSequence

READ_BYTES_MAX = 1 << 20
"""Of one piece that is read back."""


class LocalLog:
    """Each change is in memory at once, and put into the journal in the same order."""

    def __init__(self, cache_bytes: int, effects: list[Effect], alarms: Alarms) -> None:
        self.journal = Journaling(effects, alarms, self._on_stored)
        self.reigns = Reigns()
        self.adopted = 0
        """The last reign that is in the journal, and not void."""
        self.disk = 0
        """Which journal this is."""
        self.sealed = 0
        """Nothing is taken of an epoch below."""
        self.on_logged: Callable[[Item], None] = lambda item: None
        self.on_note: Callable[[bytes], None] = lambda note: None
        self.on_cut_back: Callable[[LocalSequence], None] = lambda to: None
        self.on_skipped: Callable[[LocalSequence], None] = lambda to: None
        self._effects = effects
        self._alarms = alarms
        self._cache_bytes = cache_bytes
        self._holdings = Holdings(cache_bytes)
        self._highest = 0
        """Reign that was ever begun here, void or not: no number is used twice."""
        self._held = 0
        """The owner's image has what the journal has up to here."""
        self._saved = 0
        """What comes up to here the journal may have forgotten."""

    @property
    def first(self) -> LocalSequence:
        return self._holdings.first

    @property
    def last(self) -> LocalSequence:
        return self._holdings.last

    @property
    def stored(self) -> LocalSequence:
        return self._holdings.stored

    @property
    def epoch(self) -> int:
        """The last whose primary's log this is, at least to where that one began."""
        return epoch_of(self.reigns.last)

    @property
    def floor(self) -> int:
        """Epochs below are over, as far as this replica knows; also one whose reigns are void."""
        return max(self.sealed, epoch_of(self._highest))

    def recover(self, snapshot: bytes | None) -> bytes | None:
        """Says the owner's image."""
        if snapshot is None:
            return None
        image = decode_image(snapshot)
        self._holdings = Holdings(self._cache_bytes, image.first)
        self.reigns = Reigns(image.reigns)
        self.sealed = image.sealed
        self.disk = image.disk
        self._highest = image.highest
        self._held = self._saved = self.journal.last = image.held
        return image.owner

    def replayed(self, index: int, content: bytes) -> None:
        """Up to what the image holds, an entry only says where an item is."""
        entry = decode_entry(content)
        told = index > self._held
        self._saved = min(self._saved, index - 1)
        match entry:
            case Item():
                self._holdings.add(entry)
                self._holdings.store(entry, index)
                if told:
                    self.on_logged(entry)
            case CutBack(to, reign):
                self._holdings.cut(to)
                if told:
                    self._void(to, reign)
            case Skipped(to):
                self._holdings = Holdings(self._cache_bytes, to)
                if told:
                    self._void_all(to)
            case Reign() if told:
                self._adopt(entry)
            case Born(disk):
                self.disk = disk
            case SealedBelow(epoch) if told:
                self.sealed = epoch
            case Note(note) if told:
                self.on_note(note)
            case _:
                pass
        self.journal.last = max(self.journal.last, index)

    def begin(self) -> None:
        self.adopted = self.reigns.last
        if not self.disk:
            self.disk = max(1, self._alarms.now)
            self.journal.put(Born(self.disk))

    def add(self, item: Item) -> None:
        self._holdings.add(item)
        self.journal.put(item)
        self.on_logged(item)

    def note(self, note: bytes) -> None:
        self.journal.put(Note(note))

    def seal(self, epoch: int) -> None:
        assert epoch > self.sealed
        self.sealed = epoch
        self.journal.put(SealedBelow(epoch))

    def reign(self, epoch: int) -> Reign:
        """Begin one here, with a number never used before."""
        assert epoch >= self.floor
        reign = Reign(reign_after(self._highest, epoch), self.last)
        self.adopt(reign)
        return reign

    def adopt(self, reign: Reign) -> None:
        """Another's reign, or the own: all before it is in the log."""
        assert reign.first <= self.last
        self._adopt(reign)
        self.journal.put(reign)

    def cut(self, to: LocalSequence, reign: int) -> None:
        self._holdings.cut(to)
        self.journal.put(CutBack(to, reign))
        self._void(to, reign)

    def skip(self, to: LocalSequence) -> None:
        """What lies below is trimmed, or never was a part of the shard's log."""
        self._holdings = Holdings(self._cache_bytes, to)
        self.journal.put(Skipped(to))
        self._void_all(to)

    def trim(self, below: LocalSequence, image: bytes) -> None:
        """The image is saved when the journal has all that it tells of."""
        self._holdings.trim(below)
        self.reigns.forget(self.first)
        reigns, highest = self.reigns.all, self._highest
        kept = LogImage(0, self.first, self.last, reigns, highest, self.sealed, self.disk, image)
        self.journal.when_stored(partial(self._save, kept, self._holdings))

    def boundary(self, sequence: LocalSequence) -> LocalSequence:
        return self._holdings.boundary(sequence)

    def items(
        self, low: LocalSequence, high: LocalSequence, bytes_max: int = 1 << 62
    ) -> list[Item] | None:
        """From memory, if they are all there: as many as have so many bytes, at least one."""
        return self._holdings.items(low, high, bytes_max)

    def fetch(
        self,
        low: LocalSequence,
        high: LocalSequence,
        bytes_max: int,
        then: Callable[[list[Item]], None],
    ) -> None:
        """From the journal. None, if by then they aren't in the log."""
        indices = self._holdings.indices(low, high, min(bytes_max, READ_BYTES_MAX))
        if not indices:
            self._alarms.after(0, lambda: then(self.items(low, high, bytes_max) or []))
            return
        take = partial(self._take, (low, high, bytes_max, then), indices)
        self.journal.read(indices[0], indices[-1] + 1, take)

    def _take(
        self,
        asked: tuple[LocalSequence, LocalSequence, int, Callable[[list[Item]], None]],
        indices: Sequence[int],
        entries: Sequence[bytes],
    ) -> None:
        """What isn't in the log any more isn't told: from there on it may have been cut."""
        low, _, _, then = asked
        items: list[Item] = []
        for index in indices if entries else ():
            item = decode_entry(entries[index - indices[0]])
            assert isinstance(item, Item)
            if self._holdings.index(item.first) != index:
                break
            items.append(item)
        if items or not self.first <= low < self.last:
            then(items)
        else:
            self.fetch(*asked)

    def _on_stored(self, index: int, entry: Entry) -> None:
        match entry:
            case Item():
                self._holdings.store(entry, index)
            case Reign(number) if self.reigns.holds(entry):
                self.adopted = number
            case _:
                pass

    def _save(self, image: LogImage, holdings: Holdings) -> None:
        """The journal forgets what comes before the first item that is kept."""
        held = self.journal.last
        index = held
        if image.first < image.last:
            found = self._holdings.index(image.first)
            if holdings is not self._holdings or found is None:
                return  # begun anew, or cut back below: a later image will do
            index = found - 1
        if index > self._saved:
            self._saved = index
            self._effects.append(SaveSnapshot(index, encode(replace(image, held=held))))

    def _adopt(self, reign: Reign) -> None:
        self.reigns.add(reign)
        self._highest = max(self._highest, reign.number)

    def _void(self, to: LocalSequence, reign: int) -> None:
        self.reigns.cut(reign)
        self.adopted = min(self.adopted, reign)
        self.on_cut_back(to)

    def _void_all(self, to: LocalSequence) -> None:
        self.reigns = Reigns()
        self.adopted = 0
        self.on_skipped(to)
