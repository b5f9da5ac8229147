"""Where the embedded logs of a data directory keep their journals: `ENGINE/NAME.ID.CREATED/NODE`.

The name of a log's folder says which log it is. Ids are given once, and the time of creation tells
a log from another that got the same id after a loss of journal entries was accepted.

How far each journal went is noted outside of these folders, for Belfast's logs in
`reached/NAME.ID.CREATED/NODE`, for those of later engines in `reached/ENGINE/NAME.ID.CREATED/NODE`:
a journal that is gone would else be taken for that of a new log.
"""

import os
import re
import shutil
from collections.abc import Callable

import msgspec

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.protocol.commands import FRONT, EngineSettings
from anabranch.core.bolt.state.catalogue import ENGINES, machines_of_front, nodes
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import StorageFailed
from anabranch.core.storage.journal import SEGMENT, snapshot_index
from anabranch.core.types import LogId, Milliseconds
from anabranch.shell.journal.disk import make_directory, storage, sync_directory
from anabranch.shell.journal.watermark import WatermarkFile

NOTES, GIVEN_UP = "reached", "given-up"
_FIRST_ENGINE = "belfast"
"""Its notes lie in `reached/` itself, where releases put them that knew no other engine."""
_KINDS = (*ENGINES, FRONT)
_DELETED = ".deleted-"
"""A log's name begins with a letter or digit."""
_NAME = re.compile(r"([a-zA-Z0-9].*)\.(\d{1,19})\.(\d{1,19})")


class LogFolder(msgspec.Struct, frozen=True, order=True):
    """The folder of one log."""

    id: LogId
    created_at: Milliseconds
    log: str
    engine: str

    @staticmethod
    def of(log: Log) -> "LogFolder":
        assert log.engine or log.front, "a Bolt log without a front has no folder"
        return LogFolder(log.id, log.created_at, log.name, log.engine or FRONT)

    @property
    def name(self) -> str:
        return f"{self.log}.{self.id}.{self.created_at}"

    @property
    def removal(self) -> str:
        """What the server's log says when this folder is gone. A log outlives its lazy front."""
        return "removed a lazy front" if self.engine == FRONT else "deleted a log"


def parse(name: str, engine: str) -> LogFolder | None:
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return LogFolder(LogId(int(found[2])), int(found[3]), found[1], engine)


class Folders:
    """Below one data directory."""

    def __init__(self, data: str) -> None:
        self.data = data

    def root(self, engine: str) -> str:
        return f"{self.data}/{engine}"

    def log_path(self, folder: LogFolder) -> str:
        return f"{self.root(folder.engine)}/{folder.name}"

    def path(self, folder: LogFolder, node: str) -> str:
        return f"{self.log_path(folder)}/{node}"

    def notes_path(self, folder: LogFolder) -> str:
        return f"{self._notes(folder.engine)}/{folder.name}"

    def found(self) -> list[LogFolder]:
        """Of logs; whatever else lies there is passed over."""
        return _logs(self.root)

    def noted(self) -> list[LogFolder]:
        """Logs of whose journals it is noted how far they went."""
        return _logs(self._notes)

    def nodes(self, folder: LogFolder) -> list[str]:
        """Those that have a journal, and those that are known to have had one."""
        names = {*_names(self.log_path(folder)), *_names(self.notes_path(folder))}
        return sorted(name for name in names if "." not in name)

    def reached(self, folder: LogFolder, node: str) -> int:
        """The entry that this journal is known to have reached; 0 if nothing is known.

        Raises StorageFailed if the note isn't intact.
        """
        if not os.path.exists(f"{self.notes_path(folder)}/{node}"):
            return 0
        mark = self.note(folder, node).read()
        return mark.entry if mark else 0

    def note(self, folder: LogFolder, node: str) -> WatermarkFile:
        return WatermarkFile(self.notes_path(folder), node)

    def is_gone(self, folder: LogFolder, node: str) -> bool:
        """Is there nothing at all of a journal that held something, or may have?"""
        try:
            return not self.has_journal(folder, node) and self.reached(folder, node) > 0
        except StorageFailed:
            return True

    def has_journal(self, folder: LogFolder, node: str) -> bool:
        return holds_journal(self.path(folder, node))

    def make(self, folder: LogFolder) -> None:
        """The folder itself is durable before anything in it is."""
        path = self.log_path(folder)
        with storage(path):
            make_directory(path)

    def delete(self, folder: LogFolder) -> None:
        """A folder that is half deleted has another name: nobody takes it for a log's."""
        self.forget(folder)
        root = self.root(folder.engine)
        old, new = self.log_path(folder), f"{root}/{_DELETED}{folder.name}"
        with storage(old):
            if os.path.isdir(old):
                os.rename(old, new)
                sync_directory(root)
            shutil.rmtree(new, ignore_errors=True)

    def forget(self, folder: LogFolder, node: str | None = None) -> None:
        """How far this journal went, or every one of the log: from here on it may be new."""
        path = self.notes_path(folder)
        with storage(path):
            if node is not None:
                os.unlink(f"{path}/{node}")
                sync_directory(path)
            elif os.path.isdir(path):
                shutil.rmtree(path)
                sync_directory(self._notes(folder.engine))

    def give_up(self, folder: LogFolder) -> str:
        """Put aside what is left of a log, which then begins anew. Returns where it is put."""
        aside = f"{self.data}/{GIVEN_UP}/{folder.name}"
        turn = 1
        while os.path.exists(aside):
            turn += 1
            aside = f"{self.data}/{GIVEN_UP}/{folder.name}-{turn}"
        old = self.log_path(folder)
        with storage(old):
            make_directory(os.path.dirname(aside))
            if os.path.isdir(old):
                os.rename(old, aside)
                sync_directory(os.path.dirname(aside))
                sync_directory(self.root(folder.engine))
        self.forget(folder)
        return aside

    def sweep(self) -> None:
        """Finish deletions that a crash has cut off."""
        for root in map(self.root, _KINDS):
            for name in _names(root):
                if name.startswith(_DELETED):
                    shutil.rmtree(f"{root}/{name}", ignore_errors=True)

    def _notes(self, engine: str) -> str:
        notes = f"{self.data}/{NOTES}"
        return notes if engine == _FIRST_ENGINE else f"{notes}/{engine}"


def holds_journal(path: str) -> bool:
    """Is anything of a journal in this directory?"""
    return any(each.endswith(SEGMENT) or snapshot_index(each) is not None for each in _names(path))


def _names(path: str) -> list[str]:
    with storage(path):
        return os.listdir(path) if os.path.isdir(path) else []


def _logs(root: Callable[[str], str]) -> list[LogFolder]:
    found = (parse(name, engine) for engine in _KINDS for name in _names(root(engine)))
    return sorted(each for each in found if each is not None)


def deleted(replica: Replica, folder: LogFolder) -> bool:
    """Does the catalogue say that this log was deleted? One that it doesn't know may be newer than
    the catalogue, if that was restored from a copy.
    """
    log = replica.forest.logs.get(folder.id)
    if folder.engine == FRONT and log is not None and log.front is not None and log.front.ended:
        return LogFolder.of(log) == folder
    grave = replica.forest.graves.get(folder.id)
    return grave is not None and grave.name == folder.log


def embedded(replica: Replica) -> dict[LogFolder, EngineSettings]:
    """The logs that the process with this catalogue runs itself."""
    forest = replica.forest
    found = [(log, log.settings) for log in forest.foreign.values()]
    found += [(log, log.front.settings) for log in forest.fronts.values() if log.front is not None]
    return {
        LogFolder.of(log): settings
        for log, settings in found
        if settings is not None and settings.embedded
    }


def machines(folder: LogFolder, settings: EngineSettings) -> int:
    """How many machines serve this log, or its front."""
    if folder.engine == FRONT:
        return machines_of_front(settings)
    return nodes(folder.engine, settings)


def is_known(replica: Replica, folder: LogFolder) -> bool:
    log = replica.forest.foreign.get(folder.id) or replica.forest.fronts.get(folder.id)
    return log is not None and LogFolder.of(log) == folder
