"""What a member has on its disk, and what waits until it is there.

The journal holds records; each is the next change of the state, and a snapshot is the whole state.
At most one group of records is in flight. A promise to another member is sent when it is durable.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.letters import Entry
from anabranch.core.consensus.log import GroupLog
from anabranch.core.machine import Effect, Persist, SaveSnapshot
from anabranch.core.types import Milliseconds

RETRY_MS: Milliseconds = 500
"""The pause before a write that failed is repeated."""

SNAPSHOT_BYTES = 16 << 20
"""A snapshot is due after so many bytes of records, whatever their number."""


class Saved(Protocol):
    @property
    def content(self) -> bytes: ...


class Recovered(Protocol):
    """What the journal held: `ports.Recovered`, which a core cannot import."""

    @property
    def snapshot(self) -> Saved | None: ...
    @property
    def entries(self) -> Sequence[bytes]: ...


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base."""


class Ballot(Record, frozen=True, tag="ballot"):
    """A term has begun, and the member votes for this one in it; empty if it has not voted."""

    term: int
    vote: str


class Joined(Record, frozen=True, tag="joined"):
    """The disk holds everything that its member may have promised before."""


class Written(Record, frozen=True, tag="written"):
    """An entry. Earlier entries at this index and behind it are cut off."""

    index: int
    entry: Entry


class Rebased(Record, frozen=True, kw_only=True, tag="rebased"):
    """The log is emptied and goes on behind this entry, with this image of the owner's state."""

    index: int
    term: int
    image: bytes


class Picture(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot. The base is the last entry that the owner's image contains."""

    term: int
    vote: str
    joined: bool
    base: int
    base_term: int
    image: bytes
    entries: list[Entry]


_pack = msgspec.msgpack.Encoder().encode
_record: "msgspec.msgpack.Decoder[Ballot | Joined | Written | Rebased]" = msgspec.msgpack.Decoder(
    Ballot | Joined | Written | Rebased
)
_picture: "msgspec.msgpack.Decoder[Picture]" = msgspec.msgpack.Decoder(Picture)


class GroupDisk:
    def __init__(
        self,
        log: GroupLog,
        effects: list[Effect],
        alarms: Alarms,
        snapshot_entries: int,
        picture: Callable[[], tuple[int, bytes]],
    ) -> None:
        """`picture` returns the last entry that the owner's state contains, and an image of it."""
        self.term = 0
        self.vote = ""
        self.joined = False
        """A fresh disk may have lost what was promised: until it has joined, its member does not
        count.
        """
        self.durable = 0
        """The end of the log that is on the disk."""
        self.durable_term = 0
        self.faulty = False
        """The last write failed."""
        self._log = log
        self._effects = effects
        self._alarms = alarms
        self._snapshot_entries = snapshot_entries
        self._take_picture = picture
        self._pending: list[bytes] = []
        self._waiting: list[Callable[[], None]] = []
        self._flying: list[bytes] = []
        self._awaiting: list[Callable[[], None]] = []
        """What to do once the group in flight is durable."""
        self._flying_last = 0
        self._flying_term = 0
        self._resting = False
        self._behind = 0
        self._behind_bytes = 0
        self._image: bytes | None = None
        """The state after the group in flight, if a snapshot is due."""
        self._saving = False

    def recover(self, recovered: Recovered) -> bytes:
        """Returns the owner's image, after entry `log.base`."""
        image = b""
        if recovered.snapshot is not None:
            held = _picture.decode(recovered.snapshot.content)
            self.term, self.vote, self.joined, image = held.term, held.vote, held.joined, held.image
            self._log.reset(held.base, held.base_term)
            for entry in held.entries:
                self._log.append(entry)
        for each in recovered.entries:
            match _record.decode(each):
                case Ballot(term, vote):
                    self.term, self.vote = term, vote
                case Joined():
                    self.joined = True
                case Written(index, entry):
                    self._log.cut_back(index - 1)
                    self._log.append(entry)
                    assert self._log.last == index, "entries follow one another in the journal"
                case Rebased(index=index, term=term, image=content):
                    self._log.reset(index, term)
                    image = content
        self._behind = len(recovered.entries)
        self._behind_bytes = sum(map(len, recovered.entries))
        self.durable, self.durable_term = self._log.last, self.term
        return image

    def cast(self, term: int, vote: str) -> None:
        assert term > self.term or not self.vote, "one vote in a term"
        self.term, self.vote = term, vote
        self._write(Ballot(term, vote))

    def join(self) -> None:
        assert not self.joined
        self.joined = True
        self._write(Joined())

    def append(self, entry: Entry) -> int:
        assert entry.term <= self.term
        index = self._log.append(entry)
        self._write(Written(index, entry))
        return index

    def cut_back(self, upto: int) -> None:
        """Always followed by an `append`, whose record implies it."""
        assert upto < self._log.last, "there is something to cut off"
        self._log.cut_back(upto)
        self.durable = min(self.durable, upto)
        self._flying_last = min(self._flying_last, upto)

    def rebase(self, index: int, term: int, image: bytes) -> None:
        assert index > self._log.base
        self._log.reset(index, term)
        self.durable = self._flying_last = 0
        self._write(Rebased(index=index, term=term, image=image))

    def when_durable(self, action: Callable[[], None]) -> None:
        """Run the action once everything written so far is durable; at once if it is."""
        if self._pending:
            self._waiting.append(action)
        elif self._flying:
            self._awaiting.append(action)
        else:
            action()

    def persisted(self, last: int) -> None:
        assert self._flying
        assert self._flying_last <= self._log.last
        self.faulty = False
        self.durable, self.durable_term = self._flying_last, self._flying_term
        self._flying = []
        if self._image is not None:
            self._effects.append(SaveSnapshot(last, self._image))
            self._saving, self._image = True, None
            self._behind = self._behind_bytes = 0
        done, self._awaiting = self._awaiting, []
        for action in done:
            action()

    def persist_failed(self) -> None:
        """Write it all again. Some of it may be there already: a replay leads to the same."""
        assert self._flying
        assert not self._resting, "nothing is written during the pause"
        self.faulty = self._resting = True
        self._behind -= len(self._flying)
        self._pending = self._flying + self._pending
        self._waiting = self._awaiting + self._waiting
        self._flying, self._awaiting, self._image = [], [], None
        self._alarms.after(RETRY_MS, self._rested)

    def snapshot_saved(self) -> None:
        self._saving = False

    def settle(self) -> None:
        if self._flying or self._resting or not self._pending:
            return
        self._flying, self._pending = self._pending, []
        self._awaiting, self._waiting = self._waiting, []
        self._flying_last, self._flying_term = self._log.last, self.term
        self._behind += len(self._flying)
        self._behind_bytes += sum(map(len, self._flying))
        due = self._behind >= self._snapshot_entries or self._behind_bytes >= SNAPSHOT_BYTES
        if due and not self._saving:
            # The state of this moment is what the journal holds once this group is durable.
            self._image = _pack(self._picture())
        self._effects.append(Persist(self._flying))

    def _rested(self) -> None:
        self._resting = False

    def _write(self, record: Record) -> None:
        self._pending.append(_pack(record))

    def _picture(self) -> Picture:
        base, image = self._take_picture()
        entries = self._log.after(base, self._log.last)
        term = self._log.term_at(base)
        return Picture(
            term=self.term,
            vote=self.vote,
            joined=self.joined,
            base=base,
            base_term=term,
            image=image,
            entries=entries,
        )
