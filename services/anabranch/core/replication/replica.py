"""One replica of a log that a group keeps in the journals of a quorum (docs/decisions/0028, 0045).

Somebody outside the group arranges it: for each epoch one primary and a list of replicas. The
primary decides what the log holds, and the others copy it. Nothing is decided by votes here.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum

from anabranch.core.alarms import Alarms
from anabranch.core.errors import StaleView
from anabranch.core.machine import Effect
from anabranch.core.replication.backup import Backup
from anabranch.core.replication.config import ReplicaConfig
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Joining, Match, ReplicaLetter, Stored
from anabranch.core.replication.links import Links
from anabranch.core.replication.log import Log
from anabranch.core.replication.primary import Primary
from anabranch.core.replication.terms import epoch_of
from anabranch.core.types import LocalSequence

FIRST_EPOCH = 1
"""A group's first: there is nothing from before it."""

SealAnswer = Callable[[int, LocalSequence], None]
"""Takes the last term in the sealed replica's journal, and the end of its journaled log."""


class Role(IntEnum):
    IDLE = 0
    """In no epoch, and no learner either."""
    PRIMARY = 1
    BACKUP = 2
    LEARNER = 3
    """Outside of the epoch; copies the primary's log."""
    SEALED = 4
    """Waits for an epoch that is not below its seal."""


class Replica:
    """A part of a machine: the only one that persists, and that reads back.

    The owner sets `on_role` and the callbacks of `log`, replays what the journal held into `log`,
    and calls `start`; it calls `settle` at the end of each step, and keeps `alarms.now`.
    """

    def __init__(self, config: ReplicaConfig, effects: list[Effect], alarms: Alarms) -> None:
        self.links = Links(config, effects, alarms)
        self.log = Log(config.cache_bytes, effects, alarms)
        self.primary: Primary | None = None
        """While this replica leads."""
        self.backup: Backup | None = None
        """While it copies, as a backup or as a learner."""
        self.role = Role.IDLE
        self.epoch = 0
        self.replicas: tuple[str, ...] = ()
        """Of the epoch; empty while a learner knows of the epoch by its primary's name alone."""
        self.founder = False
        """In its group's first epoch, which counts on this very journal. The replica lacks nothing
        from before the epoch, and can be sealed although its primary was lost before it began.
        """
        self.on_role: Callable[[], None] = lambda: None
        """The role or the epoch is another."""
        self._config = config
        self._sealers: dict[str, tuple[int, SealAnswer]] = {}

    @property
    def view(self) -> int:
        """Writers of an earlier view are refused."""
        return self.log.terms.view

    @property
    def complete(self) -> bool:
        """A backup whose journal has everything from before its primary's first term."""
        adopted = self.founder or self.epoch == epoch_of(self.log.adopted)
        return self.role is Role.BACKUP and adopted

    @property
    def stuck(self) -> bool:
        """A primary that cannot write its journal, while other replicas may be able to: it should
        fall silent, so that one of them takes over.
        """
        alone = len(self.replicas) <= 1
        return self.primary is not None and not alone and self.log.journal.obstacle is not None

    def start(self) -> None:
        """Everything that the journal held was replayed. `arrange` follows."""
        self.log.start()
        self.role = Role.SEALED if self.log.sealed > self.log.epoch else Role.IDLE

    def append(self, batch: bytes, count: int, *, view: int = 0) -> LocalSequence:
        """Returns the first place of the batch. Only the primary may append.

        Raises StaleView for a writer of an earlier view than the log's. A later view is fenced.
        """
        assert batch
        assert self.primary is not None
        if view != self.primary.view:
            self.fence(view)
        return self._add(batch, count)

    def fill(self, count: int) -> LocalSequence:
        """Append so many no-ops as one item. Only the primary may."""
        assert count > 0
        return self._add(b"", count)

    def fence(self, view: int) -> None:
        """Refuse writers of an earlier view than this from now on, on whichever replica: once
        `primary.established`, every later primary knows the view too. Only the primary may fence.

        Raises StaleView if the log's view is later.
        """
        if self._is_new(view):
            self._lead(view)

    def truncate(self, to: LocalSequence) -> None:
        """Void everything from the end of the item that holds `to` on; nobody may have been told of
        it. Only the primary may: the backups follow in its next term.
        """
        self._cut(self.log.boundary(to))

    def replace_tail(
        self, start: LocalSequence, items: Sequence[tuple[bytes, int]], *, view: int
    ) -> LocalSequence:
        """Void the log from `start` on, which is the end of an item, and put these batches there
        instead, each with its count. Returns the end of the log. Only the primary may.

        The new tail counts when it is durable, like any append: until then either tail may be there
        after a change of the primary. Done twice, it leads to the same log.

        Raises StaleView for a writer of an earlier view than the log's. A later view is fenced.
        """
        assert self.log.first <= start <= self.log.last
        assert self.log.boundary(start) == start, "items are replaced as a whole"
        self.fence(view)
        self._cut(start)
        for batch, count in items:
            self._add(batch, count)
        return self.log.last

    def arrange(
        self,
        epoch: int,
        primary: str,
        replicas: Sequence[str],
        *,
        disks: Sequence[int] = (),
        begins: LocalSequence = 0,
    ) -> None:
        """Take the place in this epoch; one that is known or over changes nothing.

        A replica whose journal is not the one that the epoch counts on has lost what it promised,
        and is none of the epoch's. Where all journals are new, the log `begins` behind what there
        was.
        """
        node = self._config.node
        assert primary in replicas
        assert not disks or len(disks) == len(replicas)
        if epoch < max(self.epoch, self.log.floor):
            return
        listed = node in replicas and (not disks or disks[replicas.index(node)] == self.log.disk)
        known = epoch == self.epoch and (bool(self.replicas) or not listed)
        self.replicas = tuple(replicas)
        if known:
            return
        self.founder = listed and bool(disks) and epoch == FIRST_EPOCH
        if listed and node == primary:
            if self.log.last < begins:
                self.log.skip(begins)
            self._enter(epoch, primary, Role.PRIMARY)
        else:
            self._enter(epoch, primary, Role.BACKUP if listed else Role.IDLE)

    def learn(self, epoch: int, primary: str) -> None:
        """Copy from this primary, outside of its epoch."""
        if epoch < max(self.epoch, self.log.floor):
            return
        if epoch == self.epoch and self.role is not Role.IDLE:
            return
        if epoch > self.epoch:
            self.replicas = ()
        self.founder = False
        self._enter(epoch, primary, Role.LEARNER)

    def seal(self, sender: str, epoch: int, answer: SealAnswer) -> None:
        """Take nothing from an epoch below this one any more, and answer once that is journaled.
        The sender repeats its request, because some replicas must not be sealed yet: a backup that
        has not reached the place where its primary began may lack what was durable by then; and a
        primary first brings that to the backups that are reachable.
        """
        if epoch == self.epoch + 1 and self._may_be_sealed():
            self.log.seal(epoch)
            self._close()
            self.role = Role.SEALED
            self.on_role()
        if self.role is Role.SEALED and epoch == self.log.sealed:
            self._sealers[sender] = (epoch, answer)
            self.log.journal.when_stored(self._answer_sealers)

    def received(self, sender: str, letter: ReplicaLetter) -> bool:
        """False if the letter is not for this replica in this role and epoch; it is dropped."""
        if letter.group != self._config.group or letter.epoch != self.epoch:
            return False
        if self.primary is not None:
            return self._received_as_primary(self.primary, sender, letter)
        if self.backup is not None and sender == self.backup.primary:
            return self._received_as_backup(self.backup, letter)
        return False

    def persisted(self, last: int) -> None:
        self.log.journal.persisted(last)
        if self.primary:
            self.primary.count()
        if self.backup:
            self.backup.persisted()

    def linked(self, node: str) -> None:
        """There is a new connection: letters under way on an earlier one may be lost."""
        if self.primary:
            self.primary.linked(node)
        elif self.backup and node == self.backup.primary:
            self.backup.join()

    def settle(self) -> None:
        """The end of a step: what came together in it is journaled as one group and sent as one
        letter.
        """
        assert not (self.primary and self.backup)
        if self.primary:
            self.primary.settle()
        if self.backup:
            self.backup.settle()
        self.log.journal.settle()

    def _is_new(self, view: int) -> bool:
        if view < self.view:
            raise StaleView(f"a write to {self._config.group}", view, self.view)
        return view > self.view

    def _add(self, batch: bytes, count: int) -> LocalSequence:
        assert self.primary is not None
        item = Item(self.log.last, count, batch)
        self.log.add(item)
        return item.first

    def _cut(self, to: LocalSequence) -> None:
        """What follows is of a term of its own, so no replica takes it for what was cut off."""
        assert self.primary is not None
        if to < self.log.last:
            view = self.view
            self.log.cut(to, self.log.terms.at(to))
            self._lead(view)

    def _received_as_primary(self, primary: Primary, sender: str, letter: ReplicaLetter) -> bool:
        match letter:
            case Joining() if sender in self._config.nodes:
                primary.join(sender, letter)
            case Stored():
                primary.stored(sender, letter)
            case Joining() | Match() | Copy():
                return False
        return True

    def _received_as_backup(self, backup: Backup, letter: ReplicaLetter) -> bool:
        match letter:
            case Match():
                backup.match(letter)
            case Copy():
                backup.copy(letter)
            case Joining() | Stored():
                return False
        return True

    def _enter(self, epoch: int, primary: str, role: Role) -> None:
        assert epoch >= max(self.epoch, self.log.floor)
        self._close()
        self._sealers.clear()
        self.epoch = epoch
        self.role = role
        if role is Role.PRIMARY:
            self._lead(self.view)
        elif role is not Role.IDLE:
            self.backup = Backup(self.links, self.log, epoch=epoch, primary=primary)
        self.on_role()

    def _close(self) -> None:
        if self.primary:
            self.primary.close()
        if self.backup:
            self.backup.close()
        self.primary = self.backup = None

    def _lead(self, view: int) -> None:
        """Begin a term. Those of this primary before it are over."""
        assert self.role is Role.PRIMARY
        self._close()
        self.primary = Primary(
            self.links, self.log, epoch=self.epoch, replicas=self.replicas, view=view
        )

    def _may_be_sealed(self) -> bool:
        return self.primary.may_be_sealed if self.primary else self.complete

    def _answer_sealers(self) -> None:
        """The seal is journaled, and so is everything that was logged before it."""
        log = self.log
        for epoch, answer in self._sealers.values():
            if epoch == log.sealed:
                answer(log.adopted, log.stored)
        self._sealers.clear()
