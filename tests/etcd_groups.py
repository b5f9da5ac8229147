"""A group's journal in etcd for tests: each with a cluster name and a store of its own."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Condition, Thread
from typing import Generic, TypeVar

from anabranch.core.errors import AnabranchError
from anabranch.ports import Recovered
from anabranch.shell.etcd.api.client import EtcdClient, delete_op, prefix_end, put_op
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.etcd.api.space import HEADROOM
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs
from anabranch.shell.etcd.group.follower import Follower
from anabranch.shell.etcd.group.journal import KEPT_ENTRIES, EtcdJournal, Fence
from anabranch.shell.etcd.group.reader import JournalReader
from anabranch.shell.objects.folder import FolderStore
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

WAIT_S = 60.0
"""Against hanging only: nothing here takes so long."""

Told = TypeVar("Told")

_clusters = count(1)


def client_of(endpoints: Sequence[str], *, deadline_ms: int = 10_000) -> EtcdClient:
    """Patient, as befits a machine that does other things as well."""
    return EtcdClient(EtcdSettings(endpoints=tuple(endpoints), deadline_ms=deadline_ms))


class SoleJournal(EtcdJournal):
    """The journal of a member that takes the lead as it opens: whoever had it is deposed."""

    def recover(self) -> Recovered:
        fence = seize(self._client, self._keys.candidates)
        recovered = super().recover()
        self.lead(fence, recovered.last)
        return recovered


def seize(client: EtcdClient, candidates: bytes) -> Fence:
    client.txn((), (delete_op(candidates, prefix_end(candidates)),))
    key = candidates + b"sole"
    revision = client.txn((), (put_op(key, b"sole"),)).header.revision
    return Fence(key, revision, revision)


class Group:
    """One cluster in an etcd; journals of it see the same entries and snapshots."""

    def __init__(self, client: EtcdClient, blobs: BridgedBlobs) -> None:
        self.cluster = f"c{next(_clusters)}"
        self.client = client
        self.blobs = blobs
        self.log = Log(Clock().now)

    def sole(self, *, kept_entries: int = KEPT_ENTRIES, headroom: float = HEADROOM) -> SoleJournal:
        return SoleJournal(
            self.client,
            self.cluster,
            self.blobs,
            self.log,
            kept_entries=kept_entries,
            headroom=headroom,
        )


class Heard(Generic[Told]):
    """What other threads tell, in the order of telling."""

    def __init__(self) -> None:
        self._told: list[Told] = []
        self._turn = Condition()

    def __call__(self, told: Told) -> None:
        with self._turn:
            self._told.append(told)
            self._turn.notify_all()

    @property
    def all(self) -> list[Told]:
        with self._turn:
            return self._told.copy()

    def wait(self, enough: Callable[[list[Told]], bool]) -> list[Told]:
        """Until enough was told."""
        with self._turn:
            assert self._turn.wait_for(lambda: enough(self._told), WAIT_S), self._told[-5:]
            return self._told.copy()


class Standby:
    """What a follower tells, checked to be without a gap and without a repetition."""

    def __init__(self, reader: JournalReader, log: Log, *, check_s: float = WAIT_S) -> None:
        self.heard = Heard[tuple[int, bytes]]()
        """Entries by index, and states under the negative of theirs."""
        self.failed = Heard[AnabranchError]()
        self.last = 0
        self.follower = Follower(
            reader,
            log,
            followed=self._followed,
            restored=self._restored,
            failed=self.failed,
            check_s=check_s,
        )

    def wait(self, last: int) -> list[bytes]:
        """Everything told by the time that this entry is."""
        told = self.heard.wait(lambda told: bool(told) and abs(told[-1][0]) >= last)
        return [content for _, content in told]

    def _followed(self, first: int, entries: Sequence[bytes]) -> None:
        for index, entry in enumerate(entries, first):
            assert index == self.last + 1, (index, self.last)
            self.last = index
            self.heard((index, entry))

    def _restored(self, index: int, image: bytes) -> None:
        assert index > self.last
        self.last = index
        self.heard((-index, image))


@contextmanager
def bridged(folder: Path) -> Iterator[BridgedBlobs]:
    """Objects in a folder, through an event loop of their own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    store = FolderStore(str(folder))
    try:
        yield BridgedBlobs(store, loop, WAIT_S)
    finally:
        asyncio.run_coroutine_threadsafe(store.close(), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
