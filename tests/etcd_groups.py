"""A group's journal in etcd for tests: each with a cluster name and a store of its own."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Thread

from anabranch.ports import Recovered
from anabranch.shell.clock import Clock
from anabranch.shell.etcd.calls import EtcdSettings
from anabranch.shell.etcd.client import EtcdClient, delete_op, prefix_end, put_op
from anabranch.shell.etcd.journal import KEPT_ENTRIES, EtcdJournal, Fence
from anabranch.shell.etcd.snapshots import BridgedBlobs
from anabranch.shell.folder import FolderStore
from anabranch.shell.log import Log

WAIT_S = 60.0
"""Against hanging only: nothing here takes so long."""

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

    def sole(self, *, kept_entries: int = KEPT_ENTRIES) -> SoleJournal:
        return SoleJournal(
            self.client, self.cluster, self.blobs, self.log, kept_entries=kept_entries
        )


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
