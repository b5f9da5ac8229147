"""Belfast logs that `anabranch recover` takes along into a new data directory."""

import os
import shutil
from dataclasses import dataclass, field

from anabranch.apps.belfast.folders import NOTES, Folders, embedded, is_known
from anabranch.core.bolt.state.replica import Replica
from anabranch.shell.journal.disk import make_directory, storage, sync_directory
from anabranch.shell.journal.watermark import Watermark

_FIRST = "sequencer-0"


@dataclass(slots=True)
class Carried:
    """Logs by name."""

    whole: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    """Their journals aren't there, so that they won't be served."""
    unknown: list[str] = field(default_factory=list[str])
    """Folders of logs that the catalogue doesn't know (any more). They are taken along as well."""


def carry(data: str, into: str, replica: Replica) -> Carried:
    """Copy what there is of every log. Journals are written in place, so they can't be shared with
    the old directory.
    """
    source, target, carried = Folders(data), Folders(into), Carried()
    for folder in sorted({*embedded(replica), *source.found(), *source.noted()}):
        there = any(source.has_journal(folder, node) for node in source.nodes(folder))
        for above in (source.root, f"{data}/{NOTES}"):
            _copy(f"{above}/{folder.name}", into, os.path.basename(above))
        if not is_known(replica, folder):
            carried.unknown.append(folder.name)
        elif there:
            carried.whole.append(folder.log)
        else:
            carried.left_out.append(folder.log)
            if not target.nodes(folder):
                # Nothing says that it ever held anything. Served empty, it might give positions
                # out again: it waits until somebody accepts that.
                target.note(folder, _FIRST).create(Watermark(1, lives=0))
    return carried


def _copy(source: str, into: str, name: str) -> None:
    if not os.path.isdir(source):
        return
    with storage(into):
        make_directory(f"{into}/{name}")
        copy = f"{into}/{name}/{os.path.basename(source)}"
        shutil.copytree(source, copy)
        sync_directory(f"{into}/{name}")
        for path, _, files in os.walk(copy):
            for each in files:
                _sync(f"{path}/{each}")
            sync_directory(path)


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
