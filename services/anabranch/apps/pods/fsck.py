"""`anabranch fsck --cluster`: proves from etcd and the bucket that every log can be read whole."""

import asyncio

import msgspec

from anabranch.apps import settings
from anabranch.apps.check.fsck import Examination, JournalContents, Progress, Report
from anabranch.core.bolt.state.audit import Fault
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import Damage, JournalBehind, UnknownCluster
from anabranch.core.limits import Limits
from anabranch.ports import Recovered, StoredObject
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.etcd.archive.copy import Archive
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs
from anabranch.shell.etcd.group.marker import in_bucket
from anabranch.shell.etcd.group.reader import JournalReader
from anabranch.shell.objects.quarantine import prefix
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.objects.s3.store import S3Store
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log, LogFormat


class FsckSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cluster: str
    """The cluster's name."""

    s3: S3Settings
    """Where the objects are."""

    etcd: EtcdSettings = EtcdSettings()
    """Where the journal is."""

    log_format: LogFormat = LogFormat.HUMAN
    """Log lines for people, or one JSON object each."""

    limits: Limits = Limits()
    """Every limit and interval, each with its own prose."""

    def __post_init__(self) -> None:
        settings.check_limits(self.limits)


def examine(chosen: FsckSettings, progress: Progress) -> Report:
    return asyncio.run(_examine(chosen, progress))


async def _examine(chosen: FsckSettings, progress: Progress) -> Report:
    clock = Clock()
    store = S3Store(chosen.s3, Log(clock.now, chosen.log_format), clock.now)
    client = EtcdClient(chosen.etcd)
    try:
        blobs = BridgedBlobs(store, asyncio.get_running_loop())
        source = Cluster(client, blobs, chosen.cluster, chosen.s3.where)
        return await asyncio.to_thread(lambda: Examination(source, chosen.limits).report(progress))
    finally:
        client.close()
        await store.close()


class Cluster:
    """`fsck.Source` of a cluster, which may be running."""

    online = True

    def __init__(self, client: EtcdClient, blobs: BridgedBlobs, cluster: str, where: str) -> None:
        self.where = where
        self.cluster = cluster
        self._blobs = blobs
        self._reader = JournalReader(client, cluster, blobs)
        self._archive = Archive(cluster, blobs)
        self.journal = self._reader.where

    def stored(self) -> list[StoredObject]:
        if in_bucket(self._blobs, self.cluster) is None:
            raise UnknownCluster(self.cluster, self.where)
        data, quarantined = f"{self.cluster}/data/", prefix(self.cluster)
        return [*self._blobs.listed(data), *self._blobs.listed(quarantined)]

    def get(self, name: str) -> bytes:
        return self._blobs.get(name)

    def replay(self, faults: list[Fault]) -> JournalContents:
        """By the bucket's copy if etcd's journal is damaged, so that objects are looked at."""
        try:
            return _found(self._reader.recover().recovered)
        except Damage as damage:
            faults.append(Fault(damage.code, self.journal, damage.message))
            return _found(self._archive.recover(cut=True))

    def behind(self, found: JournalContents, replica: Replica) -> str:
        try:
            self._archive.check(self._reader)
        except JournalBehind as behind:
            return behind.message
        return ""


def _found(recovered: Recovered) -> JournalContents:
    snapshot = recovered.snapshot
    image = snapshot.content if snapshot else None
    notes = list(recovered.repairs)
    return JournalContents(image, snapshot.index if snapshot else 0, recovered.entries, notes)
