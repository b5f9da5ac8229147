"""Orphans wait in quarantine before they are deleted; a move that was cut short loses nothing."""

import asyncio
import io
import time
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import StorageFailed
from anabranch.core.machine import Buffer
from anabranch.core.records.objects import ObjectName, object_id, quarantined
from anabranch.ports import StoredObject
from anabranch.shell.objects import quarantine
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.telemetry.log import Log

CLUSTER = "c"
NAMES = [str(ObjectName.of(CLUSTER, object_id(1, n))) for n in range(1, 5)]
CONTENT = {name: name.encode() * 3 for name in NAMES}


class Breaking:
    """A store whose process is killed when it has made so many calls."""

    def __init__(self, store: MemoryStore, calls: int) -> None:
        self._store, self._left = store, calls

    def _count(self) -> None:
        if not self._left:
            raise StorageFailed("the store", "it was killed here")
        self._left -= 1

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        self._count()
        await self._store.put(name, parts)

    async def get(self, name: str, start: int, length: int) -> bytes:
        self._count()
        return await self._store.get(name, start, length)

    async def size(self, name: str) -> int:
        self._count()
        return await self._store.size(name)

    async def delete(self, names: Sequence[str]) -> None:
        self._count()
        await self._store.delete(names)

    async def list(self, prefix: str = "") -> list[StoredObject]:
        self._count()
        return await self._store.list(prefix)

    async def close(self) -> None: ...


def log() -> Log:
    return Log(time.time_ns, stream=io.StringIO())


async def filled() -> MemoryStore:
    store = MemoryStore()
    for name, content in CONTENT.items():
        await store.put(name, [content])
    return store


async def copies(store: MemoryStore, name: str) -> dict[str, bytes]:
    """Where the object lies, and what is there."""
    places = (name, quarantined(name))
    there = {each.name for each in await store.list()}
    return {
        place: await store.get(place, 0, await store.size(place))
        for place in places
        if place in there
    }


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 14)), max_size=8))
def test_however_often_it_is_cut_short_each_object_is_somewhere_and_whole(
    attempts: list[tuple[bool, int]],
) -> None:
    async def scene() -> None:
        store = await filled()
        for there, calls in attempts:
            act = quarantine.move if there else quarantine.bring_back
            with suppress(StorageFailed):
                await act(Breaking(store, calls), NAMES, log())
            for name in NAMES:
                found = await copies(store, name)
                assert found, f"{name} is lost"
                assert set(found.values()) == {CONTENT[name]}
        await quarantine.bring_back(store, NAMES, log())
        await quarantine.move(store, NAMES, log())
        for name in NAMES:
            assert list(await copies(store, name)) == [quarantined(name)]

    asyncio.run(scene())


def test_what_was_moved_is_counted_once() -> None:
    async def scene() -> None:
        store = await filled()
        assert await quarantine.move(store, NAMES[:3], log()) == 3
        assert await quarantine.move(store, NAMES, log()) == 1
        assert await quarantine.bring_back(store, NAMES[:2], log()) == 2
        assert await quarantine.bring_back(store, NAMES[:2], log()) == 0
        assert await quarantine.purge(store, NAMES[2:], log()) == 2
        assert [each.name for each in await store.list()] == NAMES[:2]

    asyncio.run(scene())


def test_a_listing_is_of_our_orphans_alone_with_the_time_of_their_move() -> None:
    async def scene() -> None:
        store = await filled()
        await quarantine.move(store, NAMES[:2], log())
        for stranger in (f"{CLUSTER}/quarantine/readme", "d/quarantine/x"):
            await store.put(stranger, [b"x"])
        found = await quarantine.listed(store, CLUSTER)
        assert [each.name for each in found] == [quarantined(name) for name in NAMES[:2]]
        assert [id for id, _ in quarantine.dated(found)] == [object_id(1, 1), object_id(1, 2)]
        assert await quarantine.listed(store, "nobody") == []

    asyncio.run(scene())


def test_every_move_is_in_the_log_by_name() -> None:
    async def scene() -> None:
        store, lines = await filled(), io.StringIO()
        told = Log(time.time_ns, stream=lines)
        await quarantine.move(store, NAMES[:1], told)
        await quarantine.bring_back(store, NAMES[:1], told)
        await quarantine.move(store, NAMES[:1], told)
        await quarantine.purge(store, NAMES[:1], told)
        assert lines.getvalue().count(NAMES[0]) >= 2
        assert lines.getvalue().count(quarantined(NAMES[0])) >= 3

    asyncio.run(scene())


def test_the_stores_refusal_is_passed_on() -> None:
    async def scene() -> None:
        with pytest.raises(StorageFailed):
            await quarantine.move(Breaking(await filled(), 0), NAMES, log())

    asyncio.run(scene())
