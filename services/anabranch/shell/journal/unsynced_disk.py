"""A disk that waits for nothing: what is written survives the process, and not the machine.

What a journal promises on it is less by that much, and costs no sync. For shards whose replicas
are on several machines, and who take the risk that all of these lose power at once.
"""

from anabranch.core.machine import Buffer
from anabranch.ports import Disk, File


class UnsyncedDisk:
    """`ports.Disk`, whose syncs do nothing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.where = disk.where

    def names(self) -> list[str]:
        return self._disk.names()

    def read(self, name: str, bytes_max: int = -1, offset: int = 0) -> bytes:
        return self._disk.read(name, bytes_max, offset)

    def create(self, name: str) -> File:
        return _UnsyncedFile(self._disk.create(name))

    def open(self, name: str) -> File:
        return _UnsyncedFile(self._disk.open(name))

    def rename(self, old: str, new: str) -> None:
        self._disk.rename(old, new)

    def remove(self, name: str) -> None:
        self._disk.remove(name)

    def sync(self) -> None:
        """There is nothing to wait for."""


class _UnsyncedFile:
    def __init__(self, file: File) -> None:
        self._file = file

    def write(self, content: Buffer, offset: int) -> None:
        self._file.write(content, offset)

    def sync(self) -> None:
        """There is nothing to wait for."""

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()
