"""A second level of a broker's cache, on a disk of its own, between it and the object store.

A range is kept when it was read for the second time, and both times were the same bytes: what was
spoilt on its way isn't kept, nor what is read once and never again. Objects don't change, so it is
right for ever; it is summed all the same, for disks forget. Nothing in here is needed: it is
emptied at the start, nothing is synced, and a disk that is full or fails turns it off, which is
said once and is nobody's error.
"""

import asyncio
import os
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from anabranch.core.limits import MIB
from anabranch.core.machine import Buffer, PutTarget
from anabranch.core.records.checksum import crc32c
from anabranch.core.storage.s3fifo import Keeping
from anabranch.core.types import Milliseconds
from anabranch.ports import NewObject, ObjectStore, StoredObject
from anabranch.shell.objects.signing import signed, signed_puts
from anabranch.shell.telemetry.log import Log

UNWRITTEN_BYTES_MAX = 64 * MIB
"""What waits to be written; what comes while a slow disk is so far behind is not kept."""

SEEN_MAX = 100_000
"""Ranges that were read once, whose sums are remembered."""

_BLOCK_BYTES = 4_096
_ENTRY_BYTES = 4_096
"""What a file costs a file system beside its blocks, roughly."""
_SUFFIX = ".range"
_THREADS = 4

Range = tuple[str, int, int]
"""Object, start and length."""

_Found = TypeVar("_Found")


class _File(NamedTuple):
    path: str
    range: Range
    crc: int


@dataclass(slots=True)
class DiskCacheCounters:
    hits: int = 0
    hits_bytes: int = 0
    misses: int = 0
    written: int = 0
    written_bytes: int = 0
    passed_over: int = 0
    """Not kept, because the disk was too far behind."""
    spoilt: int = 0
    """Files that no longer held what was written to them; the store was asked instead."""


@dataclass(slots=True)
class DiskCacheGauges:
    files: int = 0
    bytes: int = 0
    unwritten_bytes: int = 0
    off: int = 0
    """1 after the disk was full or failed."""


class DiskCache:
    """`ports.ObjectStore`: another one, whose ranges it keeps on a disk once they are read.

    The directory is this cache's alone: what looks like its files is removed.
    """

    def __init__(self, store: ObjectStore, directory: str, bytes_max: int, log: Log) -> None:
        self._store = store
        self._directory = directory
        self._log = log
        self._files: Keeping[Range, _File] = Keeping(bytes_max)
        self._by_object: defaultdict[str, set[Range]] = defaultdict(set)
        self._seen: OrderedDict[Range, int] = OrderedDict()
        self._unwritten: dict[Range, int] = {}
        self._unwritten_bytes = 0
        self._serial = 0
        self._off = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="disk-cache")
        self.counters = DiskCacheCounters()

    async def start(self) -> None:
        """Begin empty: what an earlier process left may be torn, and nobody knows what is in it."""
        await self._attempt(self._empty)

    @property
    def gauges(self) -> DiskCacheGauges:
        return DiskCacheGauges(
            len(self._files), self._files.bytes, self._unwritten_bytes, int(self._off)
        )

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        await self._store.put(name, parts)

    async def get(self, name: str, start: int, length: int) -> bytes:
        key = (name, start, length)
        file = self._files.get(key)
        if file is not None:
            content = await self._read(file)
            if content is not None:
                return content
        self.counters.misses += 1
        content = await self._store.get(name, start, length)
        self._keep(key, content)
        return content

    async def size(self, name: str) -> int:
        return await self._store.size(name)

    async def delete(self, names: Sequence[str]) -> None:
        await self._store.delete(names)
        gone = [key for name in names for key in self._by_object.pop(name, ())]
        await self._remove([file for key in gone if (file := self._files.drop(key)) is not None])

    async def list(self, prefix: str = "") -> list[StoredObject]:
        return await self._store.list(prefix)

    async def sign(
        self, ranges: Sequence[tuple[str, int, int]], valid_ms: Milliseconds
    ) -> Sequence[str]:
        return await signed(self._store, ranges, valid_ms)

    async def sign_put(
        self, contents: Sequence[NewObject], valid_ms: Milliseconds
    ) -> Sequence[PutTarget]:
        return await signed_puts(self._store, contents, valid_ms)

    async def close(self) -> None:
        """The store stays open: it is whoever's opened it. Nothing is written afterwards."""
        self._off = True
        await asyncio.gather(*self._tasks)
        await asyncio.to_thread(self._empty_quietly)
        await asyncio.to_thread(self._threads.shutdown)

    def _keep(self, key: Range, content: bytes) -> None:
        if self._off or not content or key in self._files or key in self._unwritten:
            return
        if self._unwritten_bytes + len(content) > UNWRITTEN_BYTES_MAX:
            self.counters.passed_over += 1
            return
        self._unwritten[key] = len(content)
        self._unwritten_bytes += len(content)
        task = asyncio.get_running_loop().create_task(self._look(key, content))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self, key: Range, content: bytes) -> None:
        crc = await self._attempt(partial(crc32c, content))
        if crc is not None and self._seen.pop(key, None) == crc:
            await self._write(_File(self._path(), key, crc), content)
        elif crc is not None:
            self._seen[key] = crc
            if len(self._seen) > SEEN_MAX:
                self._seen.popitem(last=False)
        self._unwritten_bytes -= self._unwritten.pop(key)

    def _path(self) -> str:
        self._serial += 1
        return f"{self._directory}/{self._serial}{_SUFFIX}"

    async def _write(self, file: _File, content: bytes) -> None:
        await self._attempt(partial(_written, file.path, content))
        if self._off:
            return
        self.counters.written += 1
        self.counters.written_bytes += len(content)
        self._by_object[file.range[0]].add(file.range)
        blocks = -(-len(content) // _BLOCK_BYTES)
        gone = self._files.put(file.range, file, _ENTRY_BYTES + blocks * _BLOCK_BYTES)
        for other in gone:
            self._forget(other.range)
        await self._remove(gone)

    async def _read(self, file: _File) -> bytes | None:
        """None if it isn't there as it was written; then it is forgotten."""
        content = await self._attempt(partial(_content, file.path))
        if content is not None and len(content) == file.range[2] and crc32c(content) == file.crc:
            self.counters.hits += 1
            self.counters.hits_bytes += len(content)
            return content
        # It may have had to make room while it was read, and be gone for that reason.
        if self._files.drop(file.range) is not None:
            self._forget(file.range)
            self.counters.spoilt += 1
            await self._remove([file])
        return None

    def _forget(self, key: Range) -> None:
        ranges = self._by_object[key[0]]
        ranges.discard(key)
        if not ranges:
            del self._by_object[key[0]]

    async def _remove(self, files: Sequence[_File]) -> None:
        if files:
            await self._attempt(partial(_removed, [file.path for file in files]))

    async def _attempt(self, work: Callable[[], _Found]) -> _Found | None:
        """What the disk has to say; None once it has failed."""
        if self._off:
            return None
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, work)
        except OSError as error:
            self._turn_off(error)
            return None

    def _turn_off(self, error: OSError) -> None:
        if not self._off:
            self._off = True
            self._log.warning(
                "the disk cache is off: reads go to the object store",
                at=self._directory,
                reason=error.strerror or str(error),
            )
            self._files = Keeping(0)
            self._by_object.clear()
            self._threads.submit(self._empty_quietly)

    def _empty(self) -> None:
        os.makedirs(self._directory, exist_ok=True)
        for name in os.listdir(self._directory):
            if name.endswith(_SUFFIX):
                _removed([f"{self._directory}/{name}"])

    def _empty_quietly(self) -> None:
        with suppress(OSError):
            self._empty()


def _written(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _content(path: str) -> bytes | None:
    """None if there is no such file any more."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _removed(paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
