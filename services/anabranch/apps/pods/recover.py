"""`anabranch recover --from-bucket`: everything that was acknowledged, from the bucket alone."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from anabranch.apps import settings
from anabranch.core.bolt.metadata.rebuild import Rebuilt, rebuild
from anabranch.core.errors import BadName, ObjectExists
from anabranch.core.limits import Limits
from anabranch.core.records.objects import ObjectName, quarantined, unquarantined
from anabranch.core.types import ObjectId
from anabranch.ports import Recovered, StoredObject
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.etcd.archive.recovery import restore
from anabranch.shell.etcd.archive.snapshots import Blobs, BridgedBlobs
from anabranch.shell.objects import quarantine
from anabranch.shell.objects.s3.admin import open_bucket
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.objects.s3.store import S3Store
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log, LogFormat


class RecoverSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cluster: str
    """The cluster's name."""

    s3: S3Settings
    """Where the objects are."""

    etcd: EtcdSettings = EtcdSettings()
    """Where the journal will be; it must hold nothing of this cluster, unless `replace` is set."""

    cut: bool = False
    """Give up what lies behind a damaged part of the archive."""

    replace: bool = False
    """Give up the journal that etcd has, if it is damaged or behind the bucket."""

    log_format: LogFormat = LogFormat.HUMAN
    """Log lines for people, or one JSON object each."""

    limits: Limits = Limits()
    """Every limit and interval, each with its own prose."""

    def __post_init__(self) -> None:
        settings.check_limits(self.limits)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    cluster: str
    snapshot: int
    """The entry up to which a snapshot was used; 0 without one."""
    entries: int
    """Entries behind it."""
    logs: int
    forks: int
    objects: int
    missing: list[str]
    """Objects that are referred to and not there."""
    unnamed: int
    """Objects that may hold appends of the moment that was lost."""
    notes: list[str]


def recover(chosen: RecoverSettings) -> Report:
    return asyncio.run(_recover(chosen))


async def _recover(chosen: RecoverSettings) -> Report:
    clock = Clock()
    log = Log(clock.now, chosen.log_format)
    await asyncio.to_thread(open_bucket, chosen.s3, log, clock.now())
    store = S3Store(chosen.s3, log, clock.now)
    client = EtcdClient(chosen.etcd)
    try:
        objects = _ids(await store.list(f"{chosen.cluster}/data/"))
        orphans = _ids(await quarantine.listed(store, chosen.cluster))
        found: list[Rebuilt] = []

        def rebuilt(recovered: Recovered) -> bytes:
            snapshot = recovered.snapshot
            image = snapshot.content if snapshot else None
            state = rebuild(
                chosen.cluster, chosen.limits, image, recovered.entries, objects, orphans
            )
            for object in state.returning:
                _bring_back(blobs, str(ObjectName.of(chosen.cluster, object)))
            found.append(state)
            return state.image

        blobs = BridgedBlobs(store, asyncio.get_running_loop())
        restored = await asyncio.to_thread(
            restore,
            client,
            blobs,
            chosen.cluster,
            rebuilt,
            cut=chosen.cut,
            replace=chosen.replace,
        )
        return _report(chosen.cluster, restored.found, found[0], objects)
    finally:
        client.close()
        await store.close()


def _ids(stored: Sequence[StoredObject]) -> list[ObjectId]:
    found: list[ObjectId] = []
    for each in stored:
        # Somebody else's is nothing that a log could refer to.
        with suppress(BadName):
            found.append(ObjectName.parse(unquarantined(each.name)).id)
    return found


def _bring_back(blobs: Blobs, name: str) -> None:
    with suppress(ObjectExists):
        blobs.put(name, blobs.get(quarantined(name)))


def _report(
    cluster: str, recovered: Recovered, state: Rebuilt, objects: Sequence[ObjectId]
) -> Report:
    return Report(
        cluster=cluster,
        snapshot=recovered.snapshot.index if recovered.snapshot else 0,
        entries=len(recovered.entries),
        logs=state.logs,
        forks=state.forks,
        objects=len(objects),
        missing=[str(ObjectName.of(cluster, each)) for each in state.missing],
        unnamed=len(state.unnamed),
        notes=list(recovered.repairs),
    )
