"""One replica of a shard on a disk of its own, with an owner that writes down what it is told."""

from collections.abc import Callable

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    EntriesRead,
    Persist,
    ReadEntries,
    ReadFailed,
    SaveSnapshot,
    Send,
    SetTimer,
)
from anabranch.core.replication.config import ShardConfig
from anabranch.core.replication.entries import Item
from anabranch.core.replication.replica import Copies, Role
from anabranch.core.types import MS, NEVER

PATIENCE = 40 * MS


class Disk:
    """What a journal has; it forgets what comes before its snapshot at once."""

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


class Replica:
    """It lives from `start` to `fall`, again and again; `send` is its network."""

    def __init__(
        self,
        node: str,
        replicas: tuple[str, ...],
        send: Callable[[str, Send], None],
        cache_bytes: int = 700,
        copy_bytes_max: int = 1 << 20,
    ) -> None:
        self.node = node
        self.config = ShardConfig(
            shard="a",
            node=node,
            replicas=replicas,
            sequencers=("s",),
            cache_bytes=cache_bytes,
            copy_bytes_max=copy_bytes_max,
        )
        self.disk = Disk()
        self.up = False
        self.now = 0
        self._send = send

    def start(self, now: int) -> None:
        self.up, self.now = True, now
        self.effects: list[Effect] = []
        self.timer = NEVER
        self.group: list[bytes] | None = None
        self.reads: list[ReadEntries] = []
        self.told: list[Item] = []
        """The owner's account of the log, from `begins` on."""
        self.begins = 0
        self.notes: list[bytes] = []
        self.alarms = Alarms(self.effects)
        self.alarms.now = now
        self.copies = Copies(self.config, Limits(), self.effects, self.alarms)
        self.copies.patience = PATIENCE
        self.copies.on_logged = self._logged
        self.copies.on_note = self.notes.append
        self.copies.on_cut_back = self._cut_back
        self.copies.on_skipped = self._skipped
        owner = self.copies.recover(self.disk.snapshot)
        if owner is not None:
            self.begins, self.told = msgspec.msgpack.decode(owner, type=tuple[int, list[Item]])
        for index in range(self.disk.forgotten + 1, self.disk.last + 1):
            self.copies.replayed(index, self.disk.entries[index])
        self.copies.begin()

    def fall(self, *, kept: bool) -> None:
        """What was being written is there in the end, or it isn't."""
        if self.group is not None and kept:
            self.disk.append(self.group)
        self.up = False

    def settle(self) -> None:
        """A fresh disk is there before anything else is done."""
        self.do(lambda: None)
        if self.group is not None:
            self.write()

    def wipe(self) -> None:
        """Its disk is lost while it is down."""
        assert not self.up
        self.disk = Disk()

    def do(self, action: Callable[[], object]) -> None:
        """One step of the machine that it is a part of."""
        self.alarms.now = self.now
        action()
        self.copies.settle()
        self._perform()
        self.check()

    def pass_time(self, now: int) -> None:
        self.now = now
        if self.timer <= now:
            self.timer = NEVER
            self.do(self.alarms.ring)

    def write(self) -> None:
        assert self.group is not None
        group, self.group = self.group, None
        last = self.disk.append(group)
        self.do(lambda: self.copies.persisted(last))

    def fail_to_write(self) -> None:
        self.group = None
        self.do(lambda: self.copies.persist_failed(StorageFull("disk")))

    def read(self, *, fails: bool = False) -> None:
        asked = self.reads.pop(0)
        event: EntriesRead | ReadFailed
        if fails or asked.first <= self.disk.forgotten:
            event = ReadFailed(asked.token, StorageFailed("disk", "read"))
        else:
            found = [self.disk.entries[index] for index in range(asked.first, asked.upto)]
            event = EntriesRead(asked.token, found)
        self.do(lambda: self.copies.entries_read(event))

    def trim(self, below: int) -> None:
        """The owner's image is its account, which begins where the log does."""
        kept = [item for item in self.told if item.end > below]
        self.begins = kept[0].first if kept else self.end
        self.told = kept
        image = msgspec.msgpack.encode((self.begins, kept))
        self.do(lambda: self.copies.trim(below, image))

    @property
    def leads(self) -> bool:
        return self.up and self.copies.role is Role.PRIMARY

    @property
    def end(self) -> int:
        return self.told[-1].end if self.told else self.begins

    def content(self, low: int, high: int) -> list[tuple[int, bytes]]:
        """By place: what is there, as the owner was told."""
        return [
            (place, item.batch)
            for item in self.told
            for place in range(max(low, item.first), min(high, item.end))
        ]

    def check(self) -> None:
        copies = self.copies
        assert copies.last == self.end
        assert copies.first <= copies.durable <= copies.last

    def _logged(self, item: Item) -> None:
        assert item.first == self.end
        self.told.append(item)

    def _cut_back(self, to: int) -> None:
        self.told = [item for item in self.told if item.end <= to]
        self.begins = min(self.begins, to)
        assert self.end == to

    def _skipped(self, to: int) -> None:
        self.told.clear()
        self.begins = to

    def _perform(self) -> None:
        for effect in self.effects:
            match effect:
                case Persist(entries):
                    assert self.group is None
                    self.group = list(entries)
                case SaveSnapshot():
                    self.disk.save(effect)
                case ReadEntries():
                    self.reads.append(effect)
                case SetTimer(_, at):
                    self.timer = at
                case Send():
                    self._send(self.node, effect)
                case _:
                    raise AssertionError(effect)
        self.effects.clear()
