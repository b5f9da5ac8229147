"""Where orphans lie for a while before they are deleted: under another prefix of the same store.

An orphan is copied, then removed where it was. Its name is never used a second time, so a copy that
is there already is the same object, and a move that was cut short is simply repeated.
"""

from collections.abc import Sequence
from contextlib import suppress

from anabranch.core.errors import ObjectExists, ObjectMissing
from anabranch.core.records.objects import in_quarantine, quarantined
from anabranch.core.types import Milliseconds
from anabranch.ports import ObjectStore, StoredObject
from anabranch.shell.log import Log


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


async def purge(store: ObjectStore, cluster: str, before: Milliseconds, log: Log) -> int:
    """Delete what was put in quarantine before this time; how many objects that were."""
    old = [each for each in await listed(store, cluster) if each.modified_ms < before]
    if old:
        await store.delete([each.name for each in old])
    for each in old:
        log.warning("deleted an orphan from quarantine", object=each.name, bytes=each.size)
    return len(old)


async def listed(store: ObjectStore, cluster: str) -> list[StoredObject]:
    """Orphans of this cluster; what else lies under the prefix isn't ours, and is left alone."""
    return [
        each
        for each in await store.list(prefix(cluster))
        if (was := in_quarantine(each.name)) is not None and was.cluster == cluster
    ]
