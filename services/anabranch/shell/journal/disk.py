"""The operating system's files behind `ports.Disk`, its errors said as ours."""

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Buffer
from anabranch.shell.runtime.regular_file import open_regular

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_PARTS_MAX = 1024
"""IOV_MAX of Linux: what one gathering write takes."""
_JOINED_BYTES_MAX = 8_192
"""A part that is smaller, on the mean, is copied faster than it is prepared to be written alone."""


@contextmanager
def storage(where: str) -> Generator[None]:
    """Say what the operating system refuses as StorageFull or StorageFailed, with the place."""
    try:
        yield
    except OSError as refused:
        if refused.errno in _NO_SPACE:
            raise StorageFull(where) from refused
        reason = refused.strerror or str(refused)
        raise StorageFailed(where, reason) from refused


def make_directory(path: str) -> None:
    """The directory and those above it, each durable in the one that holds it."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_directory(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # made at the same time by another thread
        return
    sync_directory(above)


def sync_directory(path: str) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_parts(file: int, parts: Sequence[Buffer]) -> None:
    """Write the parts one behind the other where the file stands; only small ones are joined."""
    if sum(map(len, parts)) < len(parts) * _JOINED_BYTES_MAX:
        parts = (b"".join(parts),)
    left = [memoryview(part).cast("B") for part in parts if len(part)]
    at = 0
    while at < len(left):
        written = os.writev(file, left[at : at + _PARTS_MAX])
        while at < len(left) and written >= len(left[at]):
            written -= len(left[at])
            at += 1
        if written:
            left[at] = left[at][written:]


class RealFile:
    """An open file; `where` is its path, for errors."""

    __slots__ = ("_fd", "_where")

    def __init__(self, fd: int, where: str) -> None:
        self._fd = fd
        self._where = where

    def write(self, content: Buffer, offset: int) -> None:
        left = memoryview(content).cast("B")
        with storage(self._where):
            while left:
                written = os.pwrite(self._fd, left, offset)
                left = left[written:]
                offset += written

    def sync(self) -> None:
        with storage(self._where):
            os.fdatasync(self._fd)

    def truncate(self, size: int) -> None:
        with storage(self._where):
            os.ftruncate(self._fd, size)

    def close(self) -> None:
        with storage(self._where):
            os.close(self._fd)


class RealDisk:
    """One directory, made if it isn't there."""

    def __init__(self, root: str) -> None:
        self._root = root
        with storage(root):
            make_directory(root)

    @property
    def where(self) -> str:
        return self._root

    def names(self) -> list[str]:
        with storage(self._root), os.scandir(self._root) as found:
            return sorted(entry.name for entry in found if entry.is_file(follow_symlinks=False))

    def read(self, name: str, bytes_max: int = -1, offset: int = 0) -> bytes:
        path = self._path(name)
        with storage(path), open_regular(path) as file:
            file.seek(offset)
            return file.read(bytes_max)

    def create(self, name: str) -> RealFile:
        return self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> RealFile:
        return self._open(name, os.O_WRONLY)

    def rename(self, old: str, new: str) -> None:
        with storage(self._path(old)):
            os.rename(self._path(old), self._path(new))

    def remove(self, name: str) -> None:
        with storage(self._path(name)):
            os.unlink(self._path(name))

    def sync(self) -> None:
        with storage(self._root):
            sync_directory(self._root)

    def _open(self, name: str, flags: int) -> RealFile:
        path = self._path(name)
        with storage(path):
            return RealFile(os.open(path, flags, 0o600), path)

    def _path(self, name: str) -> str:
        assert "/" not in name
        return f"{self._root}/{name}"
