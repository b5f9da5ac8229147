"""The journals of a data directory's embedded logs, read through as their next start will do."""

import os
from collections.abc import Iterator

from anabranch.apps.belfast.folders import Folders
from anabranch.core.bolt.state.audit import Fault
from anabranch.core.errors import AnabranchError, JournalCorrupt, StorageFailed
from anabranch.shell.journal.disk import RealDisk, storage
from anabranch.shell.journal.replay import groups, look


def embedded_faults(data: str, cluster: str, looks: int) -> Iterator[Fault]:
    """Everything that keeps a sequencer or a replica from recovering. `looks`: how often a journal
    is read that a running server may be changing meanwhile.
    """
    assert looks > 0
    folders = Folders(data)
    for folder in folders.found():
        path = f"{folders.root}/{folder.name}"
        with storage(path):
            nodes = sorted(os.listdir(path))
        for node in nodes:
            error = _error(f"{path}/{node}", cluster, looks)
            if error is not None:
                yield Fault(error.code, f"{folder.log}/{node}", error.message)


def _error(path: str, cluster: str, looks: int) -> AnabranchError | None:
    for left in reversed(range(looks)):
        try:
            disk = RealDisk(path)
            for _ in groups(disk, look(disk, cluster)):
                pass
        except (JournalCorrupt, StorageFailed) as error:
            if not left:
                return error
        except AnabranchError as error:
            return error
        else:
            return None
    raise AssertionError("every look but the last is repeated")
