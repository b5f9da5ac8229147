"""One Belfast log of `anabranch up` fails, or takes long; the process and its other logs don't."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.unit.shell.nodes import run, until

from anabranch import aio
from anabranch.apps.embedded import running_log
from anabranch.apps.erwin import engine
from anabranch.apps.http import build
from anabranch.apps.settings import Settings
from anabranch.apps.up import Endpoint, serve
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.errors import BlackBoxFailed, OutcomeUnknown, Unavailable
from anabranch.core.machine import Effects, Event, Requests
from anabranch.core.types import Nanoseconds

POISON = b"poison"


@pytest.fixture
def fragile() -> Iterator[None]:
    """Shards that meet a bug in some appends."""
    step = Shard.step

    def fails(self: Shard, now: Nanoseconds, event: Event) -> Effects:
        if isinstance(event, Requests):
            assert not any(POISON in each.batch for each in event.messages), "a bug"
        return step(self, now, event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shard, "step", fails)
        yield


@asynccontextmanager
async def up(data: Path) -> AsyncGenerator[Endpoint]:
    stop, found = asyncio.Event(), asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    settings = Settings(data=str(data), port=0, http_port=0)
    server = asyncio.create_task(serve(settings, found.set_result, app=build, stop=stop))
    try:
        yield await found
    finally:
        stop.set()
        await server


async def obstacle(endpoint: Endpoint) -> str:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://{endpoint.http}/readyz")
        return "" if answer.status_code == 200 else answer.json()["detail"]


async def until_obstacle(endpoint: Endpoint, expected: str) -> None:
    while expected not in (found := await obstacle(endpoint)) or (found and not expected):
        """Nobody tells when it has changed."""


@pytest.mark.usefixtures("fragile")
def test_a_machine_that_fails_stops_its_log_and_no_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def scene() -> None:
        async with up(tmp_path) as endpoint, aio.connect(f"anabranch://{endpoint.frames}") as here:
            bad = await here.create("bad", engine="belfast")
            good = await here.create("good", engine="belfast")
            bolt = await here.create("bolt")
            await bad.append(b"1")
            await good.append(b"1")
            with pytest.raises(OutcomeUnknown):
                await bad.append(POISON, timeout=2)
            await until_obstacle(endpoint, "log bad: /1/shard-0-0 failed")
            await good.append(b"2")
            await bolt.append(b"1")
            await here.delete("bad")
            await until_obstacle(endpoint, "")
            await until(lambda: not list((tmp_path / "belfast").glob("bad.*")))

    run(scene())
    lines = capfd.readouterr().err.splitlines()
    assert [line for line in lines if "can't serve a log" in line and "log=bad" in line]


def test_a_log_that_cannot_be_recovered_keeps_no_other_from_being_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def before() -> None:
        async with up(tmp_path) as endpoint, aio.connect(f"anabranch://{endpoint.frames}") as here:
            for name in ("bad", "good"):
                log = await here.create(name, engine="belfast")
                await log.append(b"1")

    def fails(self: Shard, snapshot: bytes | None) -> None:
        if self.config.node.startswith("/1/"):
            raise AssertionError("a bug")
        recover(self, snapshot)

    async def after() -> None:
        async with up(tmp_path) as endpoint, aio.connect(f"anabranch://{endpoint.frames}") as here:
            good = await here.log("good")
            await good.append(b"2")
            assert "log bad: it can't be started: AssertionError" in await obstacle(endpoint)

    run(before())
    recover = Shard.recover
    monkeypatch.setattr(Shard, "recover", fails)
    run(after())


def test_black_boxes_that_hang_take_no_thread_from_other_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, go_on = threading.Semaphore(0), threading.Event()

    def hangs(*_: Any) -> Any:
        hanging.release()
        assert go_on.wait(60)
        raise BlackBoxFailed("a black box", "it hung")

    monkeypatch.setattr(engine, "open_journal", hangs)

    async def scene() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        async with up(tmp_path) as endpoint, aio.connect(f"anabranch://{endpoint.frames}") as here:
            for number in range(3):
                box = f"anabranch://127.0.0.1:9/{number}"
                await here.create(f"hangs-{number}", engine="erwin", black_box=box)
            await until(lambda: hanging.acquire(blocking=False))
            other = await here.create("other", engine="erwin")
            await other.append(b"1", timeout=20)
            go_on.set()

    run(scene())


def test_a_client_of_a_log_that_is_starting_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_journal, go_on = running_log.node_journal, threading.Event()

    def slow(*args: Any) -> Any:
        assert go_on.wait(60)
        return node_journal(*args)

    monkeypatch.setattr(running_log, "node_journal", slow)

    async def scene() -> None:
        async with up(tmp_path) as endpoint, aio.connect(f"anabranch://{endpoint.frames}") as here:
            log = await here.create("ticks", engine="belfast")
            with pytest.raises(Unavailable, match=r"log ticks is not .* it is starting"):
                await log.append(b"1", timeout=1)
            assert "log ticks: it is starting" in await obstacle(endpoint)
            later = await here.create("tocks", engine="belfast")
            with pytest.raises(Unavailable, match=r"log tocks is not .* it is starting"):
                await later.append(b"1", timeout=1)
            gone = await here.create("gone", engine="belfast")
            await here.delete("gone")
            with pytest.raises(Unavailable, match=r"log gone is not .* it is starting"):
                await gone.append(b"1", timeout=1)
            go_on.set()
            await log.append(b"2")
            await later.append(b"2")
            with pytest.raises(Unavailable, match="no such node is served here now"):
                await gone.append(b"1", timeout=1)

    run(scene())
