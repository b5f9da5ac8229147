"""One node of the conformance suite: a machine with a replica in it, on a virtual disk."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import (
    Effect,
    Effects,
    EntriesRead,
    Event,
    Gone,
    Persist,
    Persisted,
    PersistFailed,
    ReadEntries,
    ReadFailed,
    Received,
    SaveSnapshot,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.quorum import MAJORITY, Quorum
from anabranch.core.replication.config import ReplicaConfig
from anabranch.core.replication.entries import Item
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.types import MS, NEVER

PATIENCE = 40 * MS

ARRANGER = "s"
"""The node that arranges the replicas; it has no replica itself."""


class Arrangement(msgspec.Struct, frozen=True):
    """What is decided about an epoch, as `Replica.arrange` takes it."""

    epoch: int
    primary: str
    replicas: tuple[str, ...]
    disks: tuple[int, ...] = ()
    begins: int = 0


class Seal(msgspec.Struct, frozen=True):
    """From the arranger, as `Replica.seal` takes it."""

    epoch: int


class Sealed(msgspec.Struct, frozen=True):
    """The answer to the arranger."""

    epoch: int
    last_term: int
    last: int


class Learn(msgspec.Struct, frozen=True):
    """From the arranger, as `Replica.learn` takes it."""

    epoch: int
    primary: str


class Machine(Protocol):
    """What uses a replica."""

    replica: Replica

    def recover(self, snapshot: bytes | None) -> None: ...

    def replayed(self, index: int, entry: bytes) -> None: ...

    def start(self, now: int) -> Effects: ...

    def step(self, now: int, event: Event) -> Effects: ...


class PlainLog:
    """The simplest user: a replicated log, and nothing else."""

    def __init__(self, config: ReplicaConfig) -> None:
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self.image: bytes | None = None
        self.notes: list[bytes] = []
        self.replica = Replica(config, self._effects, self._alarms)
        self.replica.links.patience = PATIENCE
        self.replica.log.on_note = self.notes.append

    def recover(self, snapshot: bytes | None) -> None:
        self.image = self.replica.log.recover(snapshot)

    def replayed(self, index: int, entry: bytes) -> None:
        self.replica.log.replayed(index, entry)

    def start(self, now: int) -> Effects:
        self._alarms.now = now
        self.replica.start()
        return self._settle()

    def step(self, now: int, event: Event) -> Effects:
        self._alarms.now = now
        replica = self.replica
        match event:
            case Received(sender, letter):
                self._received(sender, letter)
            case Persisted(last):
                replica.persisted(last)
            case PersistFailed(error):
                replica.log.journal.persist_failed(error)
            case EntriesRead() | ReadFailed():
                replica.log.journal.entries_read(event)
            case TimerFired():
                self._alarms.ring()
            case Gone():
                """The end of a step that called the replica itself."""
            case _:
                raise AssertionError(event)
        return self._settle()

    def _received(self, sender: str, letter: Any) -> None:
        match letter:
            case Arrangement(epoch, primary, replicas, disks, begins):
                self.replica.arrange(epoch, primary, replicas, disks=disks, begins=begins)
            case Seal(epoch):

                def answer(last_term: int, last: int) -> None:
                    self._effects.append(Send(sender, Sealed(epoch, last_term, last)))

                self.replica.seal(sender, epoch, answer)
            case Learn(epoch, primary):
                self.replica.learn(epoch, primary)
            case _:
                self.replica.received(sender, letter)

    def _settle(self) -> Effects:
        self.replica.settle()
        effects = tuple(self._effects)
        self._effects.clear()
        return effects


class Disk:
    """A journal. It forgets what comes before its snapshot at once."""

    def __init__(self) -> None:
        self.last = 0
        self.entries: dict[int, bytes] = {}
        self.snapshot: bytes | None = None
        self.forgotten = 0

    def append(self, entries: list[bytes]) -> int:
        for entry in entries:
            self.last += 1
            self.entries[self.last] = entry
        return self.last

    def save(self, saved: SaveSnapshot) -> None:
        assert self.forgotten < saved.index <= self.last
        for index in range(self.forgotten + 1, saved.index + 1):
            del self.entries[index]
        self.forgotten, self.snapshot = saved.index, saved.image

    def read(self, asked: ReadEntries, *, fails: bool) -> EntriesRead | ReadFailed:
        if fails or asked.first <= self.forgotten:
            return ReadFailed(asked.token, StorageFailed("disk", "read"))
        found = [self.entries[index] for index in range(asked.first, asked.upto)]
        return EntriesRead(asked.token, found)


class Node:
    """It lives from `start` to `crash`, again and again; `send` is its network. A subclass says
    what the user of the replica is.
    """

    bare = True
    """The log is all there is to it: the suite itself writes its notes and its image."""
    forgets = False
    """It has to be told of all arrangements again after a restart."""

    def __init__(
        self,
        node: str,
        nodes: tuple[str, ...],
        send: Callable[[str, Send], None],
        *,
        quorum: Quorum = MAJORITY,
        cache_bytes: int = 700,
        unacknowledged_bytes_max: int = 1 << 20,
    ) -> None:
        self.node = node
        self.config = ReplicaConfig(
            group="a",
            node=node,
            nodes=nodes,
            quorum=quorum,
            cache_bytes=cache_bytes,
            unacknowledged_bytes_max=unacknowledged_bytes_max,
        )
        self.disk = Disk()
        self.up = False
        self.now = 0
        self.told: list[Item] = []
        """The user's account of the log, from `begins` on."""
        self.begins = 0
        self.group: list[bytes] | None = None
        """What the disk is about to write."""
        self.reads: list[ReadEntries] = []
        self.machine: Machine
        self._send = send
        self._timer = NEVER

    def make(self) -> Machine:
        return PlainLog(self.config)

    def batch(self, name: str, count: int) -> bytes:
        """A batch of so many records, unlike any other."""
        assert count > 0
        return name.encode()

    def arranged(self, arrangement: Arrangement) -> list[Any]:
        """Letters that tell the machine of an arrangement."""
        return [arrangement]

    def outgoing(self, letter: Any) -> Any:
        """As the arranger and the other nodes read it; None: it is for neither."""
        return letter

    def incoming(self, letter: Any) -> Any:
        """What the machine reads of a letter."""
        return letter

    @property
    def replica(self) -> Replica:
        return self.machine.replica

    @property
    def leads(self) -> bool:
        return self.up and self.replica.role is Role.PRIMARY

    @property
    def end(self) -> int:
        return self.told[-1].end if self.told else self.begins

    def start(self, now: int) -> None:
        self.up, self.now = True, now
        self.group, self.reads, self._timer = None, [], NEVER
        self.told, self.begins = [], 0
        self.machine = self.make()
        self._listen()
        self.machine.recover(self.disk.snapshot)
        if isinstance(self.machine, PlainLog) and self.machine.image is not None:
            image = self.machine.image
            self.begins, self.told = msgspec.msgpack.decode(image, type=tuple[int, list[Item]])
        for index in range(self.disk.forgotten + 1, self.disk.last + 1):
            self.machine.replayed(index, self.disk.entries[index])
        self._perform(self.machine.start(now))
        if not self.disk.last and self.group is not None:
            self.write()

    def crash(self, *, kept: bool) -> None:
        """What was being written is on the disk in the end, or it isn't."""
        if self.group is not None and kept:
            self.disk.append(self.group)
        self.up = False

    def wipe(self) -> None:
        assert not self.up
        self.disk = Disk()

    def do(self, action: Callable[[], object]) -> None:
        """A step in which the user calls its replica."""
        self.replica.links.alarms.now = self.now
        try:
            action()
        finally:
            self.give(Gone(()))

    def give(self, event: Event) -> None:
        self._perform(self.machine.step(self.now, event))
        self.check()

    def receive(self, sender: str, letter: Any) -> None:
        self.give(Received(sender, self.incoming(letter)))

    def arrange(self, arrangement: Arrangement) -> None:
        for letter in self.arranged(arrangement):
            self.receive(ARRANGER, letter)

    def append(self, *items: tuple[bytes, int], view: int = 0) -> None:
        """All in one step."""

        def append() -> None:
            for batch, count in items:
                self.replica.append(batch, count, view=view)

        self.do(append)

    def trim(self, below: int) -> None:
        kept = [item for item in self.told if item.end > below]
        self.begins = kept[0].first if kept else self.end
        self.told = kept
        image = msgspec.msgpack.encode((self.begins, kept))
        self.do(lambda: self.replica.log.trim(below, image))

    def pass_time(self, now: int) -> None:
        self.now = now
        if self._timer <= now:
            self._timer = NEVER
            self.give(TimerFired(Alarms.KEY))

    def write(self) -> None:
        assert self.group is not None
        group, self.group = self.group, None
        self.give(Persisted(self.disk.append(group)))

    def fail_to_write(self) -> None:
        self.group = None
        self.give(PersistFailed(StorageFull("disk")))

    def read(self, *, fails: bool = False) -> None:
        self.give(self.disk.read(self.reads.pop(0), fails=fails))

    def content(self, low: int, high: int) -> list[tuple[int, bytes]]:
        """What the user was told, by place."""
        return [
            (place, item.batch)
            for item in self.told
            for place in range(max(low, item.first), min(high, item.end))
        ]

    def check(self) -> None:
        log = self.replica.log
        assert log.last == self.end
        assert log.first <= log.durable <= log.last

    def _listen(self) -> None:
        """Besides the user itself."""
        log = self.replica.log
        on_logged, on_cut_back, on_skipped = log.on_logged, log.on_cut_back, log.on_skipped

        def logged(item: Item) -> None:
            assert item.first == self.end
            self.told.append(item)
            on_logged(item)

        def cut_back(to: int) -> None:
            self.told = [item for item in self.told if item.end <= to]
            self.begins = min(self.begins, to)
            assert self.end == to
            on_cut_back(to)

        def skipped(to: int) -> None:
            self.told.clear()
            self.begins = to
            on_skipped(to)

        log.on_logged, log.on_cut_back, log.on_skipped = logged, cut_back, skipped

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist(entries):
                    assert self.group is None
                    self.group = list(entries)
                case SaveSnapshot():
                    self.disk.save(effect)
                case ReadEntries():
                    self.reads.append(effect)
                case SetTimer(_, at):
                    self._timer = at
                case Send(to, letter):
                    letter = self.outgoing(letter)
                    if letter is not None:
                        self._send(self.node, Send(to, letter))
                case _:
                    raise AssertionError(effect)
