"""The replicas of a shard: one log, in the journals of a majority (ADR 0028)."""

from collections.abc import Callable, Sequence
from enum import IntEnum

from anabranch.core.alarms import Alarms
from anabranch.core.belfast.protocol.letters import Learn, Seal, Sealed
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, EntriesRead, ReadFailed, Send
from anabranch.core.replication.backup import Backing
from anabranch.core.replication.config import ShardConfig
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, CopyLetter, Joining, Match, Stored
from anabranch.core.replication.links import Post
from anabranch.core.replication.log import LocalLog
from anabranch.core.replication.primary import LETTER_BYTES_MAX, Leading
from anabranch.core.replication.terms import epoch_of
from anabranch.core.types import LocalSequence, Nanoseconds


class Role(IntEnum):
    IDLE = 0
    """Of no epoch that is known, and nobody's learner."""
    PRIMARY = 1
    BACKUP = 2
    LEARNER = 3
    """Outside of the epoch; it copies."""
    SEALED = 4
    """It waits for an epoch that isn't below its seal."""


class Copies:
    """One replica's share in its shard's log. A part of the Shard machine: the only one that
    persists, and that reads back. The owner sets the callbacks before `recover`, calls `settle` at
    the end of each step, and keeps `alarms.now`.
    """

    def __init__(
        self, config: ShardConfig, limits: Limits, effects: list[Effect], alarms: Alarms
    ) -> None:
        assert limits.batch_bytes_max + LETTER_BYTES_MAX < limits.peer_frame_bytes_max
        self._config = config
        self._effects = effects
        self._post = Post(config, effects, alarms)
        self._log = LocalLog(config.cache_bytes, effects, alarms)
        self._leading: Leading | None = None
        self._backing: Backing | None = None
        self._durable: LocalSequence = 0
        self._sealers: dict[str, Seal] = {}
        self.role = Role.IDLE
        self.epoch = 0
        self.replicas: tuple[str, ...] = ()
        """Of the epoch; none for a learner that knows of it only by the leader's letter."""
        self.primary = ""
        """Of the epoch; this node is it, or copies from it."""
        self.on_logged: Callable[[Item], None] = lambda item: None
        self.on_note: Callable[[bytes], None] = lambda note: None
        self.on_cut_back: Callable[[LocalSequence], None] = lambda to: None
        self.on_skipped: Callable[[LocalSequence], None] = lambda to: None
        """The log begins anew here, and is empty: what lies below is trimmed, and this replica
        hasn't all of it. It may be further up than the log was, or further down.
        """
        self.on_durable: Callable[[], None] = lambda: None
        self.on_role: Callable[[], None] = lambda: None
        """The role or the epoch is another."""
        self._log.on_logged = self._logged
        self._log.on_note = self._noted
        self._log.on_cut_back = self._cut_back
        self._log.on_skipped = self._skipped

    @property
    def patience(self) -> Nanoseconds:
        """So long a replica may owe an answer before it is silent; the owner sets it by the
        rules.
        """
        return self._post.patience

    @patience.setter
    def patience(self, patience: Nanoseconds) -> None:
        self._post.patience = patience

    @property
    def first(self) -> LocalSequence:
        return self._log.first

    @property
    def last(self) -> LocalSequence:
        return self._log.last

    @property
    def disk(self) -> int:
        """Which journal this is: an epoch counts on those that it names."""
        return self._log.disk

    @property
    def complete(self) -> bool:
        """A backup that has all from before its primary's reign in its journal."""
        return self.role is Role.BACKUP and self.epoch == epoch_of(self._log.adopted)

    @property
    def durable(self) -> LocalSequence:
        """At the primary, the end of what a majority is known to hold; elsewhere, of what the
        primary said so. It is known in one life: after a fall it begins at `first`.
        """
        return max(self._durable, self._log.first)

    @property
    def silent(self) -> tuple[str, ...]:
        """Replicas of the epoch whose answers are overdue; the primary knows."""
        return self._leading.silent if self._leading else ()

    @property
    def caught_up(self) -> tuple[str, ...]:
        """Replicas outside of the epoch that keep up with what is durable; the primary knows."""
        return self._leading.caught_up if self._leading else ()

    @property
    def obstacle(self) -> str | None:
        """Why nothing can be journaled: a primary is to take no appends. It is tried again."""
        return self._log.journal.obstacle

    @property
    def stuck(self) -> bool:
        """A primary that can journal nothing, beside replicas that may: it falls silent, and one
        of them takes over.
        """
        return self.role is Role.PRIMARY and len(self.replicas) > 1 and self.obstacle is not None

    @property
    def unreadable(self) -> str | None:
        """Why what was asked for can't be read back. It is tried again."""
        return self._log.journal.unreadable

    @property
    def delay(self) -> Nanoseconds:
        """How long this replica's syncs took of late, or its timers came late, at most."""
        return self._log.journal.delay

    def was_late(self, late: Nanoseconds) -> None:
        """Told that the replica itself did not run for so long."""
        self._log.journal.delays.note(late, self._post.alarms.now)

    @property
    def unstored_bytes(self) -> int:
        """Of what waits for the journal: the owner bounds it."""
        return self._log.journal.unstored_bytes

    def recover(self, snapshot: bytes | None) -> bytes | None:
        """Says the owner's image, that of the last `trim`. Then come the entries after it; of
        those only what the image doesn't know yet is told to the owner.
        """
        return self._log.recover(snapshot)

    def replayed(self, index: int, entry: bytes) -> None:
        self._log.replayed(index, entry)

    def begin(self) -> None:
        """All that the journal held was replayed. `arrange` follows when the ledger is known."""
        self._log.begin()
        self.role = Role.SEALED if self._log.sealed > self._log.epoch else Role.IDLE

    def append(self, batch: bytes, count: int) -> LocalSequence:
        """Says its first place. The primary's alone."""
        assert batch
        return self._add(batch, count)

    def fill(self, count: int) -> LocalSequence:
        """No-ops, as one item. The primary's alone."""
        return self._add(b"", count)

    def note(self, note: bytes) -> None:
        """Journaled in order with the items, given to no other replica."""
        self._log.note(note)

    def when_stored(self, action: Callable[[], None]) -> None:
        """Once all that was logged and noted so far is in the own journal."""
        self._log.journal.when_stored(action)

    def arrange(
        self,
        epoch: int,
        primary: str,
        replicas: Sequence[str],
        node: str,
        disks: Sequence[int] = (),
        begins: LocalSequence = 0,
    ) -> None:
        """The ledger says so; what is known already, and what is over, changes nothing.

        Who has another disk than the epoch counts on has lost what it promised: it is none of
        these replicas. Where all have new ones the log `begins` behind what was there.
        """
        assert node == self._config.node
        if epoch < max(self.epoch, self._log.floor):
            return
        listed = node in replicas and (not disks or disks[replicas.index(node)] == self.disk)
        if epoch == self.epoch and (self.replicas or not listed):
            self.replicas = tuple(replicas)
            return
        self.replicas = tuple(replicas)
        if listed and node == primary:
            if self.last < begins:
                self._log.skip(begins)
            self._enter(epoch, primary, Role.PRIMARY)
        elif listed:
            self._enter(epoch, primary, Role.BACKUP)
        else:
            self._enter(epoch, primary, Role.IDLE)

    def learn(self, letter: Learn) -> None:
        if letter.epoch < max(self.epoch, self._log.floor):
            return
        if letter.epoch == self.epoch and self.role is not Role.IDLE:
            return
        if letter.epoch > self.epoch:
            self.replicas = ()
        self._enter(letter.epoch, letter.primary, Role.LEARNER)

    def seal(self, sender: str, letter: Seal) -> None:
        """Answered with `Sealed` once the seal is journaled; its `last_epoch` is a reign's number,
        to be compared as it is. `letter.epoch` is the ledger's and one. It is to be asked again:

        a backup that hasn't yet come to where its primary began isn't sealed, for it may lack what
        was durable by then, and nobody would ask others for that any more; and a primary that is
        there isn't, before it has brought that to those who are there as well.
        """
        if letter.epoch == self.epoch + 1 and self._can_be_sealed():
            self._log.seal(letter.epoch)
            self._end()
            self.role = Role.SEALED
            self.on_role()
        if self.role is Role.SEALED and letter.epoch == self._log.sealed:
            self._sealers[sender] = letter
            self._log.journal.when_stored(self._say_sealed)

    def cut_back(self, to: LocalSequence) -> None:
        """Void what lies beyond, which nobody was told of, from the end of the item that holds
        `to` on. The primary's alone: the others follow it.
        """
        assert self.role is Role.PRIMARY
        to = self._log.boundary(to)
        if to < self.last:
            self._end()
            self._log.cut(to, self._log.reigns.at(to))
            self._lead()

    def boundary(self, sequence: LocalSequence) -> LocalSequence:
        """Where a log that is cut back to here ends."""
        return self._log.boundary(sequence)

    def trim(self, below: LocalSequence, image: bytes) -> None:
        """Forget the items that end at or below; the owner's image is of now."""
        self._log.trim(below, image)

    def items(self, low: LocalSequence, high: LocalSequence) -> list[Item] | None:
        """From the one that holds `low` on, to the one that holds what is before `high`; from
        memory. None: they aren't all there, `fetch` them.
        """
        return self._log.items(low, high)

    def fetch(
        self,
        low: LocalSequence,
        high: LocalSequence,
        bytes_max: int,
        then: Callable[[list[Item]], None],
    ) -> None:
        """The same from the journal, in a later step: as many from `low` on as have so many bytes,
        at least one, at most a MiB of them. None if by then `low` isn't in the log any more. What
        fails is read again.
        """
        self._log.fetch(low, high, bytes_max, then)

    def received(self, sender: str, letter: CopyLetter) -> bool:
        """Says whether it was meant for this replica, in this epoch."""
        if letter.shard != self._config.shard or letter.epoch != self.epoch:
            return False
        match letter:
            case Joining() if self._leading and sender in self._config.replicas:
                self._leading.join(sender, letter)
            case Stored() if self._leading:
                self._leading.stored(sender, letter)
            case Match() if self._backing and sender == self.primary:
                self._backing.match(letter)
            case Copy() if self._backing and sender == self.primary:
                self._backing.copy(letter)
                self._durable = max(self._durable, self._backing.durable)
            case _:
                return False
        return True

    def persisted(self, last: int) -> None:
        self._log.journal.persisted(last)
        if self._leading:
            self._leading.count()
        if self._backing:
            self._backing.persisted()

    def persist_failed(self, error: AnabranchError) -> None:
        self._log.journal.persist_failed(error)

    def entries_read(self, event: EntriesRead | ReadFailed) -> None:
        self._log.journal.entries_read(event)

    def linked(self, node: str) -> None:
        if self._leading:
            self._leading.linked(node)
        elif self._backing and node == self.primary:
            self._backing.ask()

    def settle(self) -> None:
        """The end of a step: what came together in it is journaled as one group and sent as one
        letter.
        """
        if self._leading:
            self._leading.settle()
        if self._backing:
            self._backing.settle()
        self._log.journal.settle()

    def _add(self, batch: bytes, count: int) -> LocalSequence:
        assert self.role is Role.PRIMARY
        item = Item(self.last, count, batch)
        self._log.add(item)
        return item.first

    def _enter(self, epoch: int, primary: str, role: Role) -> None:
        self._end()
        self._sealers.clear()
        self.epoch = epoch
        self.primary = primary
        self.role = role
        if role is Role.PRIMARY:
            self._lead()
        elif role is not Role.IDLE:
            self._backing = Backing(self._post, self._log, epoch, primary)
        self.on_role()

    def _end(self) -> None:
        if self._leading:
            self._leading.end()
        if self._backing:
            self._backing.end()
        self._leading = self._backing = None

    def _lead(self) -> None:
        self._leading = Leading(
            self._post, self._log, self.epoch, self.replicas, self._durable, self._now_durable
        )

    def _now_durable(self, durable: LocalSequence) -> None:
        self._durable = durable
        self.on_durable()

    def _can_be_sealed(self) -> bool:
        if self._leading:
            return self._leading.followed
        return self.complete

    def _say_sealed(self) -> None:
        """The seal is journaled, and so is all that was logged before."""
        log = self._log
        for sender, seal in self._sealers.items():
            if seal.epoch == log.sealed:
                sealed = Sealed(seal.shard, seal.epoch, log.adopted, log.stored)
                self._effects.append(Send(sender, sealed))
        self._sealers.clear()

    def _logged(self, item: Item) -> None:
        self.on_logged(item)

    def _noted(self, note: bytes) -> None:
        self.on_note(note)

    def _cut_back(self, to: LocalSequence) -> None:
        self._durable = min(self._durable, to)
        self.on_cut_back(to)

    def _skipped(self, to: LocalSequence) -> None:
        self._durable = min(self._durable, to)
        self.on_skipped(to)
