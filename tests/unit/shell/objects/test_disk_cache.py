"""The cache on a disk: the store's answers, fewer questions, and no harm when the disk fails."""

import asyncio
import io
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch.core.errors import AnabranchError, ObjectMissing
from anabranch.shell.objects.disk_cache import DiskCache
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

MANY = 1 << 30


class Counted(MemoryStore):
    gets = 0
    spoilt = 0
    """So many of the next answers don't come as they left."""

    async def get(self, name: str, start: int, length: int) -> bytes:
        self.gets += 1
        content = await super().get(name, start, length)
        if self.spoilt:
            self.spoilt -= 1
            return bytes([content[0] ^ 1]) + content[1:]
        return content


class Stage:
    def __init__(self, directory: Path, bytes_max: int) -> None:
        self.directory = directory
        self.lines = io.StringIO()
        self.store = Counted()
        log = Log(Clock().now, stream=self.lines)
        self.cache = DiskCache(self.store, str(directory), bytes_max, log)

    async def get(self, name: str, start: int, length: int) -> bytes:
        content = await self.cache.get(name, start, length)
        # Nobody is told when the disk has caught up, for nobody waits for it.
        while self.cache.gauges.unwritten_bytes:  # noqa: ASYNC110
            await asyncio.sleep(0)
        return content

    async def get_twice(self, name: str, start: int, length: int) -> bytes:
        """So that it is kept."""
        await self.get(name, start, length)
        return await self.get(name, start, length)

    def files(self) -> list[Path]:
        return sorted(self.directory.glob("*.range"))


Scene = Callable[[Stage], Coroutine[Any, Any, None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., None]:
    def play(scene: Scene, bytes_max: int = MANY) -> None:
        async def played() -> None:
            stage = Stage(tmp_path / "cache", bytes_max)
            await stage.cache.start()
            try:
                await stage.store.put("o", [bytes(range(250)) * 40])
                await scene(stage)
            finally:
                await stage.cache.close()

        asyncio.run(asyncio.wait_for(played(), 60))

    return play


def test_what_was_read_twice_is_not_asked_of_the_store_again(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(4):
            assert await stage.get("o", 3, 5) == bytes([3, 4, 5, 6, 7])
        assert await stage.get("o", 4, 5) == bytes([4, 5, 6, 7, 8])
        assert stage.store.gets == 3
        assert (stage.cache.counters.hits, stage.cache.counters.misses) == (2, 3)
        assert stage.cache.counters.hits_bytes == 10
        assert len(stage.files()) == stage.cache.gauges.files == 1

    play(scene)


def test_what_was_spoilt_on_its_way_is_not_kept(play: Callable[..., None]) -> None:
    """Whoever found it spoilt asks again, and must get something else."""

    async def scene(stage: Stage) -> None:
        whole = await stage.store.get("o", 0, 10)
        stage.store.spoilt = 1
        assert await stage.get("o", 0, 10) != whole
        for _ in range(4):
            assert await stage.get("o", 0, 10) == whole
        assert stage.store.gets == 4
        assert stage.cache.counters.written == 1

    play(scene)


def test_it_begins_and_ends_empty_and_leaves_what_is_not_its_own(
    play: Callable[..., None], tmp_path: Path
) -> None:
    directory = tmp_path / "cache"
    directory.mkdir()
    (directory / "7.range").write_bytes(b"of another life")
    (directory / "notes").write_bytes(b"somebody's")

    async def scene(stage: Stage) -> None:
        assert stage.files() == []
        await stage.get_twice("o", 0, 10)
        assert len(stage.files()) == 1

    play(scene)
    assert os.listdir(directory) == ["notes"]


@pytest.mark.parametrize("harm", ["a bit", "the end", "all of it"])
def test_what_a_disk_has_spoilt_is_read_from_the_store(
    play: Callable[..., None], harm: str
) -> None:
    async def scene(stage: Stage) -> None:
        content = await stage.get_twice("o", 0, 100)
        (file,) = stage.files()
        match harm:
            case "a bit":
                file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
            case "the end":
                file.write_bytes(content[:-1])
            case _:
                file.unlink()
        for _ in range(3):
            assert await stage.get("o", 0, 100) == content
        assert stage.store.gets == 4
        assert stage.cache.counters.spoilt == 1
        assert len(stage.files()) == 1
        assert stage.cache.gauges.off == 0

    play(scene)


def test_a_full_disk_turns_it_off_and_is_nobodys_error(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        content = await stage.get_twice("o", 0, 100)
        (stage.directory / "2.range").symlink_to("/dev/full")
        for start in (1, 2, 3):
            assert await stage.get_twice("o", start, 10) == content[start : start + 10]
        assert await stage.get("o", 0, 100) == content
        assert stage.store.gets == 9
        assert stage.cache.gauges.off == 1
        assert stage.cache.gauges.bytes == 0
        assert stage.lines.getvalue().count("the disk cache is off") == 1

    play(scene)


def test_a_directory_that_cannot_be_made_turns_it_off(
    play: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_bytes(b"a file")

    async def scene(stage: Stage) -> None:
        for _ in range(2):
            assert await stage.get("o", 0, 2) == bytes([0, 1])
        assert stage.store.gets == 2
        assert stage.cache.gauges.off == 1

    play(scene)


def test_a_directory_that_goes_away_turns_it_off(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        stage.directory.rmdir()
        assert await stage.get_twice("o", 0, 2) == bytes([0, 1])
        assert stage.cache.gauges.off == 1

    play(scene)


def test_it_takes_no_more_of_the_disk_than_it_may(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        for start in range(30):
            await stage.get_twice("o", start, 5_000)
        assert 1 <= len(stage.files()) <= 3
        assert stage.cache.gauges.bytes <= 40_000
        await stage.get_twice("o", 0, 9_999)
        assert sum(file.stat().st_size for file in stage.files()) <= 40_000

    play(scene, bytes_max=40_000)


def test_objects_that_are_deleted_are_missing(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        await stage.get_twice("o", 0, 10)
        await stage.cache.delete(["o"])
        assert stage.files() == []
        with pytest.raises(ObjectMissing):
            await stage.get("o", 0, 10)

    play(scene)


names = st.sampled_from(["a", "b", "c"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), names, st.integers(0, 9_000), st.just(0)),
        st.tuples(st.just("get"), names, st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("delete"), names, st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps, st.sampled_from([0, 15_000, MANY]))
def test_its_answers_are_the_stores(
    play: Callable[..., None], steps: list[tuple[str, str, int, int]], bytes_max: int
) -> None:
    async def answer(call: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await call
        except AnabranchError as error:
            return error.code

    async def scene(stage: Stage) -> None:
        alone = MemoryStore()
        for turn, (what, name, first, second) in enumerate(steps):
            match what:
                case "put":
                    body = [bytes([turn]) * first]
                    expected = await answer(alone.put(name, body))
                    assert await answer(stage.cache.put(name, body)) == expected
                case "get":
                    start, length = first * 1_000, second * 1_000
                    expected = await answer(alone.get(name, start, length))
                    assert await answer(stage.get(name, start, length)) == expected
                case _:
                    await alone.delete([name])
                    await stage.cache.delete([name])
            assert stage.cache.gauges.bytes <= bytes_max

    play(scene, bytes_max)
