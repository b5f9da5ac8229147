"""Embedded logs that `anabranch recover` takes along into a new data directory."""

import os
import shutil
from dataclasses import dataclass, field

from anabranch.apps.embedded.folders import Folders, embedded, is_known
from anabranch.apps.engines import JOURNAL_RULES
from anabranch.core.bolt.state.replica import Replica
from anabranch.shell.journal.disk import make_directory, storage, sync_directory
from anabranch.shell.journal.watermark import Watermark


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
        _copy(source.log_path(folder), target.log_path(folder))
        _copy(source.notes_path(folder), target.notes_path(folder))
        if not is_known(replica, folder):
            carried.unknown.append(folder.name)
        elif there:
            carried.whole.append(folder.log)
        else:
            carried.left_out.append(folder.log)
            if not target.nodes(folder):
                # Nothing says that it ever held anything. Served empty, it might give positions
                # out again: it waits until somebody accepts that.
                first = JOURNAL_RULES[folder.engine].first
                target.note(folder, first).create(Watermark(1, lives=0))
    return carried


def _copy(source: str, copy: str) -> None:
    if not os.path.isdir(source):
        return
    above = os.path.dirname(copy)
    with storage(copy):
        make_directory(above)
        shutil.copytree(source, copy)
        sync_directory(above)
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
