"""Snapshots of the journal in the object store, and what points to them."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import msgspec

from anabranch.core.errors import (
    CorruptObject,
    DeadlineExceeded,
    JournalCorrupt,
    ObjectExists,
    ObjectMissing,
)
from anabranch.core.storage.journal import read_snapshot, snapshot_header
from anabranch.ports import ObjectStore, Snapshot, StoredObject

KEPT = 2
"""Snapshots that stay: the newest, and one before it for who is about to read that."""

Result = TypeVar("Result")


class Blobs(Protocol):
    """An object store for threads: whole objects, made once."""

    def put(self, name: str, content: bytes) -> None: ...

    def get(self, name: str) -> bytes: ...

    def list(self, prefix: str) -> list[str]: ...

    def delete(self, names: Sequence[str]) -> None: ...


class BridgedBlobs:
    """`Blobs` over the object store of an event loop, for threads other than the loop's."""

    def __init__(
        self, store: ObjectStore, loop: asyncio.AbstractEventLoop, deadline_s: float = 60.0
    ) -> None:
        self._store = store
        self._loop = loop
        self._deadline_s = deadline_s

    def put(self, name: str, content: bytes) -> None:
        self._await(f"putting {name}", self._store.put(name, [content]))

    def get(self, name: str) -> bytes:
        return self._await(f"getting {name}", self._get(name))

    def list(self, prefix: str) -> list[str]:
        return [each.name for each in self.listed(prefix)]

    def listed(self, prefix: str) -> Sequence[StoredObject]:
        """With their sizes and times."""
        return self._await(f"listing {prefix}", self._store.list(prefix))

    def delete(self, names: Sequence[str]) -> None:
        self._await("deleting snapshots", self._store.delete(names))

    async def _get(self, name: str) -> bytes:
        return await self._store.get(name, 0, await self._store.size(name))

    def _await(self, what: str, work: Coroutine[Any, Any, Result]) -> Result:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(self._deadline_s)
        except TimeoutError as late:
            future.cancel()
            raise DeadlineExceeded(what, int(self._deadline_s * 1_000)) from late


class Pointer(msgspec.Struct, frozen=True):
    """The value of etcd's snapshot key: which snapshot is the newest."""

    index: int
    object: str


class Snapshots:
    """`<cluster>/meta/snapshots/<index>-<term>`, each with a header that says whose it is."""

    def __init__(self, cluster: str, blobs: Blobs) -> None:
        self._cluster = cluster
        self._blobs = blobs
        self._prefix = f"{cluster}/meta/snapshots/"

    def put(self, index: int, term: int, content: bytes) -> Pointer:
        pointer = Pointer(index, f"{self._prefix}{index:020}-{term}")
        framed = snapshot_header(index, content, self._cluster) + content
        # The same leader after an answer that was lost: the state after an entry is one and only.
        with suppress(ObjectExists):
            self._blobs.put(pointer.object, framed)
        return pointer

    def load(
        self, pointer: Pointer | None, index_min: int
    ) -> tuple[Snapshot | None, tuple[str, ...]]:
        """What is pointed to, if it reaches up to `index_min` and is readable; if not, another.

        Another may also be newer: to make room in a full etcd the journal is cut before the
        pointer can be written. Beside it: what was wrong with those that were tried.
        """
        wrong: list[str] = []
        for each in self._candidates(pointer, index_min):
            try:
                index, content = read_snapshot(
                    self._blobs.get(each.object), each.object, self._cluster
                )
            except (CorruptObject, JournalCorrupt, ObjectMissing) as damage:
                wrong.append(f"{damage.message} (passed over)")
                continue
            return Snapshot(index, content), tuple(wrong)
        return None, tuple(wrong)

    def forget_old(self, newest: Pointer) -> None:
        old = [each for each in self.kept() if each.index < newest.index]
        names = [each.object for each in old[KEPT - 1 :]]
        if names:
            self._blobs.delete(names)

    def kept(self) -> list[Pointer]:
        """The newest first."""
        found: list[Pointer] = []
        for name in self._blobs.list(self._prefix):
            index, _, term = name.removeprefix(self._prefix).partition("-")
            if index.isdecimal() and term.isdecimal():
                found.append(Pointer(int(index), name))
        return sorted(found, key=lambda each: (each.index, each.object), reverse=True)

    def _candidates(self, pointer: Pointer | None, index_min: int) -> Iterator[Pointer]:
        if pointer is not None and pointer.index >= index_min:
            yield pointer
        for each in self.kept():
            if each != pointer and each.index >= index_min:
                yield each
