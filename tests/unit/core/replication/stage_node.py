"""The process of a shard's replica on a test's stage: its disk survives it."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from anabranch.core.errors import StorageFull
from anabranch.core.machine import (
    Effects,
    EntriesRead,
    Event,
    Persist,
    Persisted,
    PersistFailed,
    ReadEntries,
    Reply,
    Rest,
    SaveSnapshot,
    Send,
    SetTimer,
    SnapshotSaved,
)
from anabranch.core.types import NEVER, Nanoseconds


class ReplicaMachine(Protocol):
    def recover(self, snapshot: bytes | None) -> None: ...

    def replayed(self, index: int, entry: bytes) -> None: ...

    def start(self, now: Nanoseconds) -> Effects: ...

    def step(self, now: Nanoseconds, event: Event) -> Effects: ...


class NodeStage:
    """What nodes say and ask, in order, until the test passes it on."""

    def __init__(self) -> None:
        self.now: Nanoseconds = 1_000_000_000
        self.post: deque[tuple[str, str, Any]] = deque()
        self.later: deque[tuple[StageNode[Any], Event]] = deque()
        self.answers: dict[int, list[Any]] = {}
        self.heard: list[tuple[str, int, Any]] = []
        """All answers: of which node, to which question, and what."""


M = TypeVar("M", bound=ReplicaMachine)


class StageNode(ABC, Generic[M]):
    def __init__(self, stage: NodeStage, name: str) -> None:
        self.name = name
        self.disk: dict[int, bytes] = {}
        self.last = 0
        self.snapshot: tuple[int, bytes] | None = None
        self.up = False
        self.held = False
        """What is to be journaled waits."""
        self.writing: Sequence[bytes] | None = None
        self.timer = NEVER
        self.rested = False
        self.machine: M
        self._stage = stage

    @abstractmethod
    def make(self) -> M: ...

    def start(self) -> None:
        self.up, self.writing, self.timer = True, None, NEVER
        self.machine = self.make()
        self.machine.recover(self.snapshot[1] if self.snapshot else None)
        for index, entry in sorted(self.disk.items()):
            self.machine.replayed(index, entry)
        self._perform(self.machine.start(self._stage.now))

    def fall(self) -> None:
        self.up = False

    def wipe(self) -> None:
        assert not self.up
        self.disk, self.last, self.snapshot = {}, 0, None

    def give(self, event: Event) -> None:
        if self.up:
            self._perform(self.machine.step(self._stage.now, event))

    def write(self) -> None:
        assert self.writing is not None
        for entry in self.writing:
            self.last += 1
            self.disk[self.last] = entry
        self.writing = None
        self.give(Persisted(self.last))

    def fail_to_write(self) -> None:
        self.writing = None
        self.give(PersistFailed(StorageFull("disk")))

    def _perform(self, effects: Effects) -> None:
        stage = self._stage
        for effect in effects:
            match effect:
                case Persist(entries):
                    assert self.writing is None
                    self.writing = list(entries)
                case Send(to, letter):
                    stage.post.append((self.name, to, letter))
                case SetTimer(_, at):
                    self.timer = at
                case Reply(token, message):
                    stage.answers.setdefault(token, []).append(message)
                    stage.heard.append((self.name, token, message))
                case ReadEntries(token, first, upto):
                    found = [self.disk[index] for index in range(first, upto)]
                    stage.later.append((self, EntriesRead(token, found)))
                case SaveSnapshot(index, image):
                    self.snapshot = (index, image)
                    self.disk = {at: entry for at, entry in self.disk.items() if at > index}
                    stage.later.append((self, SnapshotSaved(index)))
                case Rest():
                    self.rested = True
                case _:
                    raise AssertionError(effect)
