"""The embedded object store: one file an object (docs/decisions/0004-file-journal.md)."""

import asyncio
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from anabranch.core.errors import CorruptObject, ObjectExists, ObjectMissing
from anabranch.core.machine import Buffer, PutTarget
from anabranch.core.types import Milliseconds
from anabranch.ports import NewObject, StoredObject
from anabranch.shell.journal.disk import make_directory, storage, sync_directory, write_parts

_Given = TypeVarTuple("_Given")
_Found = TypeVar("_Found")
THREADS = 4
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_PARTS = ".parts"
"""Where files are written that can't be written nameless; no object's name begins with a dot."""


class StoredFolder:
    """A store as it lies there: what reads it, and changes not a byte."""

    def __init__(self, root: str) -> None:
        self._root = root

    def get(self, name: str, start: int, length: int) -> bytes:
        """Opened anew each time: that costs 3 us, and nothing removed is kept alive."""
        with self._reading(name) as file:
            content = os.pread(file, length, start)
        if len(content) != length:
            end = start + len(content)
            raise CorruptObject(
                name, f"bytes {start}..{start + length} were asked, it ends at {end}"
            )
        return content

    def size(self, name: str) -> int:
        with self._reading(name) as file:
            return os.fstat(file).st_size

    def url(self, name: str) -> str:
        return Path(os.path.abspath(self._path(name))).as_uri()

    def list(self, prefix: str = "") -> list[StoredObject]:
        directory = prefix.rpartition("/")[0]
        if directory and not NAME.fullmatch(directory):
            return []  # no name begins like that
        with storage(self._root):
            found = [each for each in self._walk(directory) if each.name.startswith(prefix)]
        return sorted(found, key=lambda each: each.name)

    def _path(self, name: str) -> str:
        assert NAME.fullmatch(name), name
        return f"{self._root}/{name}"

    @contextmanager
    def _reading(self, name: str) -> Generator[int]:
        path = self._path(name)
        with storage(path):
            try:
                file = os.open(path, os.O_RDONLY)
            except (FileNotFoundError, NotADirectoryError):
                raise ObjectMissing(name) from None
            try:
                yield file
            finally:
                os.close(file)

    def _walk(self, directory: str) -> Iterator[StoredObject]:
        path = f"{self._root}/{directory}" if directory else self._root
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as found:
            for entry in found:
                name = f"{directory}/{entry.name}" if directory else entry.name
                if not NAME.fullmatch(name):
                    continue  # hidden, or put there by somebody else: no call could name it
                if entry.is_dir(follow_symlinks=False):
                    yield from self._walk(name)
                    continue
                if not entry.is_file(follow_symlinks=False):
                    continue
                with suppress(FileNotFoundError):  # deleted meanwhile
                    status = entry.stat(follow_symlinks=False)
                    yield StoredObject(name, status.st_size, status.st_mtime_ns // 1_000_000)


class Folder(StoredFolder):
    """The store's calls, each made by the thread that asks; any number of threads may."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._parts = f"{root}/{_PARTS}"
        self._serials = count()
        self._made: set[str] = set()
        """Directories known to be there, which nobody else removes."""
        with storage(root):
            make_directory(self._parts)
            for leftover in os.listdir(self._parts):
                os.unlink(f"{self._parts}/{leftover}")
        self._nameless = self._can_write_nameless()

    def put(self, name: str, parts: Sequence[Buffer]) -> None:
        """Write, sync, and only then give it its name: whoever sees the object sees all of it."""
        path = self._path(name)
        above, last = os.path.split(path)
        with storage(path):
            if above not in self._made:
                make_directory(above)
                self._made.add(above)
            directory = os.open(above, os.O_RDONLY | os.O_DIRECTORY)
            try:
                with self._part(above) as (file, source):
                    write_parts(file, parts)
                    os.fdatasync(file)
                    _link(source, directory, last)
                os.fsync(directory)
            except FileExistsError:
                raise ObjectExists(name) from None
            finally:
                os.close(directory)

    def delete(self, names: Sequence[str]) -> None:
        directories: dict[str, None] = {}
        for name in names:
            path = self._path(name)
            with storage(path), suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
                directories[os.path.dirname(path)] = None
        for directory in directories:
            with storage(directory):
                sync_directory(directory)

    @contextmanager
    def _part(self, directory: str) -> Generator[tuple[int, str]]:
        """A file open for writing without a name, and what to link it by."""
        if self._nameless:
            file = os.open(directory, os.O_WRONLY | os.O_TMPFILE, 0o600)
            source = f"/proc/self/fd/{file}"
        else:
            source = f"{self._parts}/{next(self._serials)}"
            file = os.open(source, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            yield file, source
        finally:
            os.close(file)
            if not self._nameless:
                os.unlink(source)

    def _can_write_nameless(self) -> bool:
        """Not every file system can (NFS, some overlays), and `/proc` may be hidden."""
        self._nameless = True
        directory = os.open(self._parts, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with self._part(self._parts) as (_, source):
                _link(source, directory, "probe")
            os.unlink(f"{self._parts}/probe")
        except OSError:
            return False
        finally:
            os.close(directory)
        return True


class FolderStore:
    """`ports.ObjectStore` on a folder: a few threads wait for the disk, the loop never does."""

    def __init__(self, root: str, threads: int = THREADS) -> None:
        self._folder = Folder(root)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="folder")

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        await self._call(self._folder.put, name, parts)

    async def get(self, name: str, start: int, length: int) -> bytes:
        return await self._call(self._folder.get, name, start, length)

    async def size(self, name: str) -> int:
        return await self._call(self._folder.size, name)

    async def delete(self, names: Sequence[str]) -> None:
        await self._call(self._folder.delete, names)

    async def list(self, prefix: str = "") -> list[StoredObject]:
        return await self._call(self._folder.list, prefix)

    async def sign(
        self, ranges: Sequence[tuple[str, int, int]], valid_ms: Milliseconds
    ) -> Sequence[str]:
        """The file of each range. Nothing but the folder's own permissions keeps a reader on this
        machine from the rest of it.
        """
        return [self._folder.url(name) for name, _, _ in ranges]

    async def sign_put(
        self, contents: Sequence[NewObject], valid_ms: Milliseconds
    ) -> Sequence[PutTarget]:
        """The path of each. Whoever writes there syncs and links the file, as `Folder.put` does."""
        return [PutTarget(self._folder.url(each.name)) for each in contents]

    async def close(self) -> None:
        """Wait for what is under way, so that nothing is written after the directory is let go."""
        await asyncio.to_thread(self._threads.shutdown)

    async def _call(self, work: Callable[[*_Given], _Found], *given: *_Given) -> _Found:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)


def _link(source: str, directory: int, name: str) -> None:
    # Only with a directory's descriptor does Python follow the link in /proc to the open file.
    os.link(source, name, dst_dir_fd=directory)
