"""Where the embedded logs of a data directory keep their journals: `belfast/NAME.ID.CREATED/NODE`.

The name of a log's folder says which log it is. Ids are given once, and the time of creation tells
a log from another that got the same id after a loss of journal entries was accepted.
"""

import os
import re
import shutil
from collections.abc import Iterable

import msgspec

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.types import LogId, Milliseconds
from anabranch.shell.journal.disk import make_directory, storage, sync_directory

FOLDER = "belfast"
_DELETED = ".deleted-"
"""A log's name begins with a letter or digit."""
_NAME = re.compile(r"([a-zA-Z0-9].*)\.(\d{1,19})\.(\d{1,19})")


class LogFolder(msgspec.Struct, frozen=True, order=True):
    """The folder of one log."""

    id: LogId
    created_at: Milliseconds
    log: str

    @staticmethod
    def of(log: Log) -> "LogFolder":
        return LogFolder(log.id, log.created_at, log.name)

    @property
    def name(self) -> str:
        return f"{self.log}.{self.id}.{self.created_at}"


def parse(name: str) -> LogFolder | None:
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return LogFolder(LogId(int(found[2])), int(found[3]), found[1])


class Folders:
    """Below one data directory."""

    def __init__(self, data: str) -> None:
        self.root = f"{data}/{FOLDER}"

    def path(self, folder: LogFolder, node: str) -> str:
        return f"{self.root}/{folder.name}/{node}"

    def found(self) -> list[LogFolder]:
        """Of logs; whatever else lies there is passed over."""
        parsed = (parse(name) for name in self._names())
        return sorted(each for each in parsed if each is not None)

    def make(self, folder: LogFolder) -> None:
        """The folder itself is durable before anything in it is."""
        path = f"{self.root}/{folder.name}"
        with storage(path):
            make_directory(path)

    def delete(self, folder: LogFolder) -> None:
        """A folder that is half deleted has another name: nobody takes it for a log's."""
        old, new = f"{self.root}/{folder.name}", f"{self.root}/{_DELETED}{folder.name}"
        with storage(old):
            if os.path.isdir(old):
                os.rename(old, new)
                sync_directory(self.root)
            shutil.rmtree(new, ignore_errors=True)

    def sweep(self) -> None:
        """Finish deletions that a crash has cut off."""
        for name in self._names():
            if name.startswith(_DELETED):
                shutil.rmtree(f"{self.root}/{name}", ignore_errors=True)

    def _names(self) -> Iterable[str]:
        with storage(self.root):
            return os.listdir(self.root) if os.path.isdir(self.root) else []


def deleted(replica: Replica, folder: LogFolder) -> bool:
    """Does the catalogue say that this log was deleted? One that it doesn't know may be newer than
    the catalogue, if that was restored from a copy.
    """
    grave = replica.forest.graves.get(folder.id)
    return grave is not None and grave.name == folder.log


def is_known(replica: Replica, folder: LogFolder) -> bool:
    log = replica.forest.foreign.get(folder.id)
    return log is not None and LogFolder.of(log) == folder
