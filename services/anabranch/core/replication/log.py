"""A replicated log as one replica holds it, in memory and in its journal alike."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from anabranch.core.alarms import Alarms
from anabranch.core.machine import Effect, SaveSnapshot
from anabranch.core.replication.entries import (
    Born,
    CutBack,
    Item,
    JournalEntry,
    LogImage,
    Note,
    SealedBelow,
    Skipped,
    decode_entry,
    decode_image,
    encode,
)
from anabranch.core.replication.index import Index
from anabranch.core.replication.terms import Term, Terms, epoch_of, next_number
from anabranch.core.storage.group_journal import GroupJournal
from anabranch.core.types import LocalSequence

READ_BYTES_MAX = 1 << 20
"""The most that one read asks the journal for."""


class Log:
    """Each change takes effect in memory at once, and is journaled in the same order.

    The owner sets the `on_...` callbacks before `recover`.
    """

    def __init__(self, cache_bytes: int, effects: list[Effect], alarms: Alarms) -> None:
        self.journal = GroupJournal(effects, alarms, encode, self._on_stored)
        self.terms = Terms()
        self.adopted = 0
        """The last term that is in the journal, and not void."""
        self.disk = 0
        """Identifies the journal: an epoch counts on the journals that it names."""
        self.sealed = 0
        """The replica takes nothing from an epoch below this one."""
        self.on_logged: Callable[[Item], None] = lambda item: None
        self.on_note: Callable[[bytes], None] = lambda note: None
        """Called only for notes that are replayed: the owner knows those that it writes."""
        self.on_cut_back: Callable[[LocalSequence], None] = lambda to: None
        self.on_skipped: Callable[[LocalSequence], None] = lambda to: None
        """The log is empty and goes on at this place, above or below where it was: what lies below
        is trimmed, and this replica lacked some of it.
        """
        self._effects = effects
        self._alarms = alarms
        self._cache_bytes = cache_bytes
        self._index = Index(cache_bytes=cache_bytes)
        self._durable: LocalSequence = 0
        self._highest = 0
        """The highest number of a term that ever began here, void or not: none is used twice."""
        self._held = 0
        """The owner's image covers the journal up to this entry."""
        self._saved = 0
        """The journal may have forgotten the entries up to this one."""

    @property
    def first(self) -> LocalSequence:
        return self._index.first

    @property
    def last(self) -> LocalSequence:
        return self._index.last

    @property
    def stored(self) -> LocalSequence:
        """The end of what this replica's journal holds."""
        return self._index.stored

    @property
    def durable(self) -> LocalSequence:
        """The end of what a quorum is known to hold: the primary counts it and tells the others.
        It is kept in memory only: after a restart it begins at `first`.
        """
        return max(self._durable, self.first)

    @durable.setter
    def durable(self, upto: LocalSequence) -> None:
        assert self.durable <= upto <= self.last, "what is durable stays durable"
        self._durable = upto

    @property
    def epoch(self) -> int:
        """The last epoch whose primary's log this one equals, up to where that primary began."""
        return epoch_of(self.terms.last)

    @property
    def floor(self) -> int:
        """Epochs below are known to be over, even if all terms of this one are void."""
        return max(self.sealed, epoch_of(self._highest))

    def recover(self, snapshot: bytes | None) -> bytes | None:
        """Returns the owner's image: the one given to the last `trim`. `replayed` follows for each
        entry after it; the owner is called only for what its image does not cover.
        """
        if snapshot is None:
            return None
        image = decode_image(snapshot)
        self._index = Index(cache_bytes=self._cache_bytes, first=image.first)
        self.terms = Terms(image.terms)
        self.sealed = image.sealed
        self.disk = image.disk
        self._highest = image.highest
        self._held = self._saved = self.journal.last = image.held
        return image.owner

    def replayed(self, index: int, content: bytes) -> None:
        entry = decode_entry(content)
        self._saved = min(self._saved, index - 1)
        self._replay_items(index, entry)
        if index > self._held:
            self._replay_rest(entry)
        self.journal.last = max(self.journal.last, index)

    def start(self) -> None:
        """Everything that the journal held was replayed."""
        assert not self.adopted, "a log starts once"
        assert self.first <= self.last == self.stored
        self.adopted = self.terms.last
        if not self.disk:
            self.disk = max(1, self._alarms.now)
            self.journal.put(Born(self.disk))

    def add(self, item: Item) -> None:
        self._index.add(item)
        self.journal.put(item)
        self.on_logged(item)

    def note(self, note: bytes) -> None:
        """Journal the owner's note, in order with the items; no other replica gets it."""
        self.journal.put(Note(note))

    def seal(self, epoch: int) -> None:
        assert epoch > self.sealed
        self.sealed = epoch
        self.journal.put(SealedBelow(epoch))

    def begin_term(self, epoch: int, view: int) -> Term:
        """Begin a term at the end of the log, with a number that was never used before."""
        assert epoch >= self.floor
        term = Term(number=next_number(self._highest, epoch), first=self.last, view=view)
        self.adopt(term)
        return term

    def adopt(self, term: Term) -> None:
        """The log holds everything from before this term."""
        assert term.first <= self.last
        self._add_term(term)
        self.journal.put(term)

    def cut(self, to: LocalSequence, term: int) -> None:
        """Void the items from here on, and the terms after this one."""
        assert to <= self.last
        assert term <= self.terms.last
        self._index.cut(to)
        self.journal.put(CutBack(to=to, term=term))
        self._void(to, term)

    def skip(self, to: LocalSequence) -> None:
        """Void everything: what lies below is trimmed, or never was a part of the shared log."""
        self._index = Index(cache_bytes=self._cache_bytes, first=to)
        self.journal.put(Skipped(to))
        self._void_all(to)

    def trim(self, below: LocalSequence, image: bytes) -> None:
        """Forget the items that end at or below this place. The owner's image is of this moment,
        and is saved when the journal holds everything that it covers.
        """
        self._index.trim(below)
        self.terms.forget(self.first)
        kept = LogImage(
            held=0,
            first=self.first,
            last=self.last,
            terms=self.terms.all,
            highest=self._highest,
            sealed=self.sealed,
            disk=self.disk,
            owner=image,
        )
        self.journal.when_stored(partial(self._save, kept, self._index))

    def boundary(self, sequence: LocalSequence) -> LocalSequence:
        """Where a log that is cut back to this place ends: items are cut as a whole."""
        return self._index.boundary(sequence)

    def items(
        self, low: LocalSequence, high: LocalSequence, bytes_max: int = 1 << 62
    ) -> list[Item] | None:
        """From the item that holds `low` to the one that holds the place before `high`, or as many
        as fit into so many bytes, at least one. None if they are not all in memory: `fetch` them.
        """
        return self._index.items(low, high, bytes_max)

    def fetch(
        self,
        low: LocalSequence,
        high: LocalSequence,
        bytes_max: int,
        then: Callable[[list[Item]], None],
    ) -> None:
        """Read the same items from the journal, a MiB at most, and pass them on in a later step.
        A failed read is repeated. `then` gets none if `low` isn't in the log any more by then.
        """
        assert low < high
        entries = self._index.entries(low, high, min(bytes_max, READ_BYTES_MAX))
        if not entries:
            self._alarms.after(0, lambda: then(self.items(low, high, bytes_max) or []))
            return
        take = partial(self._take, (low, high, bytes_max, then), entries)
        self.journal.read(entries[0], entries[-1] + 1, take)

    def _take(
        self,
        asked: tuple[LocalSequence, LocalSequence, int, Callable[[list[Item]], None]],
        wanted: Sequence[int],
        entries: Sequence[bytes],
    ) -> None:
        """Stop at the first item that is not in the log any more: it was cut during the read."""
        low, _, _, then = asked
        items: list[Item] = []
        for index in wanted if entries else ():
            item = decode_entry(entries[index - wanted[0]])
            assert isinstance(item, Item)
            if self._index.entry(item.first) != index:
                break
            items.append(item)
        if items or not self.first <= low < self.last:
            then(items)
        else:
            self.fetch(*asked)

    def _replay_items(self, index: int, entry: JournalEntry) -> None:
        """Where the items are: the image doesn't say."""
        match entry:
            case Item():
                self._index.add(entry)
                self._index.store(entry, index)
            case CutBack(to=to):
                self._index.cut(to)
            case Skipped(to):
                self._index = Index(cache_bytes=self._cache_bytes, first=to)
            case Term() | Born() | SealedBelow() | Note():
                """Says nothing of items."""

    def _replay_rest(self, entry: JournalEntry) -> None:
        """Everything that the image covers up to its own entry."""
        match entry:
            case Item():
                self.on_logged(entry)
            case CutBack(to=to, term=term):
                self._void(to, term)
            case Skipped(to):
                self._void_all(to)
            case Term():
                self._add_term(entry)
            case Born(disk):
                self.disk = disk
            case SealedBelow(epoch):
                self.sealed = epoch
            case Note(note):
                self.on_note(note)

    def _on_stored(self, index: int, entry: JournalEntry) -> None:
        if isinstance(entry, Item):
            self._index.store(entry, index)
        elif isinstance(entry, Term) and self.terms.holds(entry):
            self.adopted = entry.number

    def _save(self, image: LogImage, index: Index) -> None:
        """After this the journal may forget what comes before the first item that is kept."""
        held = self.journal.last
        upto = held
        assert image.first <= image.last, "a log ends behind its beginning"
        if image.first < image.last:
            found = self._index.entry(image.first)
            if index is not self._index or found is None:
                return  # the log was emptied or cut back below meanwhile: a later image will do
            upto = found - 1
        if upto > self._saved:
            self._saved = upto
            self._effects.append(SaveSnapshot(upto, encode(replace(image, held=held))))

    def _add_term(self, term: Term) -> None:
        self.terms.add(term)
        self._highest = max(self._highest, term.number)

    def _void(self, to: LocalSequence, term: int) -> None:
        self.terms.cut(term)
        self.adopted = min(self.adopted, term)
        self._durable = min(self._durable, to)
        self.on_cut_back(to)

    def _void_all(self, to: LocalSequence) -> None:
        self.terms = Terms()
        self.adopted = 0
        self._durable = min(self._durable, to)
        self.on_skipped(to)
