"""A data directory: whose it is, in which format, and that one process at a time has it open."""

import fcntl
import os
import re
import zlib
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from anabranch.core.errors import BadRequest, DataDirLocked, JournalCorrupt, JournalTooNew
from anabranch.core.storage.journal import CLUSTER_BYTES_MAX
from anabranch.shell.journal.disk import RealDisk, storage

FORMAT = 2
"""The highest format that this version reads."""
_FIRST_FORMAT = 1
JOURNAL, OBJECTS = "journal", "objects"
_IDENTITY, _PART, _LOCK = "format", "format.part", "lock"
_NOTHING = {_LOCK, _PART, "lost+found"}
"""What a directory may hold and still be empty."""
_OF_BELFAST = "belfast.json"
"""Of a directory of `anabranch up --engine belfast`."""
_LINE = re.compile(rb"(anabranch data, format (\d+), cluster ([!-~]+)), check ([0-9a-f]{8})\n")


class DataDir:
    """An open data directory. `cluster` is what it was created with, or just now."""

    def __init__(self, root: str, new_cluster: str, *, shared: bool = False) -> None:
        """`shared`: without the lock, for who only reads beside a process that has it."""
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", new_cluster)
        assert len(new_cluster) <= CLUSTER_BYTES_MAX
        self.root = root
        self._disk = RealDisk(root)
        self._lock = None if shared else _locked(f"{root}/{_LOCK}")
        with ExitStack() as refused:
            refused.callback(self.close)
            self.cluster = self._identity() or self._claim(new_cluster)
            refused.pop_all()

    @property
    def journal(self) -> str:
        return f"{self.root}/{JOURNAL}"

    @property
    def objects(self) -> str:
        return f"{self.root}/{OBJECTS}"

    def raise_format(self) -> None:
        """Keep versions out that know only the first format. Done before a catalogue that may hold
        logs of other engines is journaled here: those versions would take them for Bolt's, and
        give their ids to others.
        """
        assert self._lock is not None, "only the process that has the directory changes it"
        line = _LINE.fullmatch(self._disk.read(_IDENTITY))
        assert line is not None, "it was read when the directory was opened"
        if int(line[2]) < FORMAT:
            self._write_identity(self.cluster, FORMAT)

    def close(self) -> None:
        """Let another process in."""
        if self._lock is not None:
            os.close(self._lock)

    def _identity(self) -> str | None:
        """The cluster it belongs to; None if nothing was ever stored here."""
        path = f"{self.root}/{_IDENTITY}"
        if _IDENTITY not in self._disk.names():
            with storage(self.root):
                others = sorted(set(os.listdir(self.root)) - _NOTHING)
            if _OF_BELFAST in others:
                reason = (
                    "it is a Belfast log's by itself: serve it with `anabranch up --engine belfast`"
                )
                raise BadRequest(f"{self.root} is no data directory", reason)
            if others:
                reason = f"it holds {others[0]} but no file {_IDENTITY}: choose an empty directory"
                raise BadRequest(f"{self.root} is no data directory", reason)
            return None
        line = _LINE.fullmatch(self._disk.read(_IDENTITY))
        if line is None or zlib.crc32(line[1]) != int(line[4], 16):
            raise JournalCorrupt(path, 0, "the line that names format and cluster isn't intact")
        if int(line[2]) > FORMAT:
            raise JournalTooNew(path, int(line[2]))
        return line[3].decode()

    def _claim(self, cluster: str) -> str:
        self._write_identity(cluster, _FIRST_FORMAT)
        return cluster

    def _write_identity(self, cluster: str, version: int) -> None:
        said = f"anabranch data, format {version}, cluster {cluster}".encode()
        if _PART in self._disk.names():
            self._disk.remove(_PART)
        file = self._disk.create(_PART)
        try:
            file.write(said + f", check {zlib.crc32(said):08x}\n".encode(), 0)
            file.sync()
        finally:
            file.close()
        self._disk.rename(_PART, _IDENTITY)
        self._disk.sync()


@contextmanager
def exclusive(root: Path) -> Generator[None]:
    """Keep a directory to this process, whatever is in it; refuse if another process has it."""
    root.mkdir(parents=True, exist_ok=True)
    lock = _locked(str(root / _LOCK))
    try:
        yield
    finally:
        os.close(lock)


def holds_something(root: str) -> bool:
    """Is there anything at all that was stored here?"""
    with storage(root):
        return os.path.isdir(root) and bool(set(os.listdir(root)) - _NOTHING)


def _locked(path: str) -> int:
    """The open lock file: the kernel lets go of it when this process ends, however it ends."""
    with storage(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(lock, 20).strip()
            os.close(lock)
            raise DataDirLocked(path, int(owner) if owner.isdigit() else 0) from None
        # The same bytes each time, so that a full disk doesn't keep a directory from being opened.
        os.pwrite(lock, f"{os.getpid():<19}\n".encode(), 0)
    return lock
