"""Where orphans lie for a while before they are deleted: under another prefix of the same store.

An orphan is copied, then removed where it was. Its name is never used a second time, so a copy that
is there already is the same object, and a move that was cut short is simply repeated.
"""

from collections.abc import Sequence
from contextlib import suppress

from anabranch.core.errors import ObjectExists, ObjectMissing
from anabranch.core.records.objects import ObjectName, in_quarantine, quarantined, unquarantined
from anabranch.core.types import Milliseconds, ObjectId
from anabranch.ports import ObjectStore, StoredObject
from anabranch.shell.telemetry.log import Log


def prefix(cluster: str) -> str:
    return f"{cluster}/quarantine/"


async def move(store: ObjectStore, names: Sequence[str], log: Log) -> int:
    """Put these orphans in quarantine; how many were still where they were."""
    moved = 0
    for name in names:
        try:
            content = await store.get(name, 0, await store.size(name))
        except ObjectMissing:  # moved by an attempt whose answer was lost
            continue
        with suppress(ObjectExists):
            await store.put(quarantined(name), [content])
        await store.delete([name])
        log.warning("moved an orphan to quarantine", object=name, to=quarantined(name))
        moved += 1
    return moved


async def bring_back(store: ObjectStore, names: Sequence[str], log: Log) -> int:
    """Put these objects back where they were; how many were still in quarantine."""
    returned = 0
    for name in names:
        lies = quarantined(name)
        try:
            content = await store.get(lies, 0, await store.size(lies))
        except ObjectMissing:  # brought back by an attempt whose answer was lost
            continue
        with suppress(ObjectExists):
            await store.put(name, [content])
        await store.delete([lies])
        log.warning("brought an object back from quarantine: a log refers to it", object=name)
        returned += 1
    return returned


async def purge(store: ObjectStore, names: Sequence[str], log: Log) -> int:
    """Delete these orphans from quarantine; how many that were."""
    await store.delete([quarantined(name) for name in names])
    for name in names:
        log.warning("deleted an orphan from quarantine", object=quarantined(name))
    return len(names)


async def listed(store: ObjectStore, cluster: str) -> list[StoredObject]:
    """Orphans of this cluster; what else lies under the prefix isn't ours, and is left alone."""
    return [
        each
        for each in await store.list(prefix(cluster))
        if (was := in_quarantine(each.name)) is not None and was.cluster == cluster
    ]


def dated(found: Sequence[StoredObject]) -> list[tuple[ObjectId, Milliseconds]]:
    """Which objects these are, each with when it was moved to quarantine."""
    return [(ObjectName.parse(unquarantined(each.name)).id, each.modified_ms) for each in found]
