"""Lazy fronts of `anabranch up --processes`: their processes are killed, paused and told to end,
under load. What clients saw is judged by the rules in `core/history/lazy.py`.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from tests.integration.erwin.test_erwin_service import PATIENCE_S, cluster
from tests.integration.test_lazy_kills import Witness

from anabranch import aio
from anabranch.client.lazy_log import LazyLog
from anabranch.core.errors import AnabranchError
from anabranch.core.sequencing.protocol.messages import SequencingStatus

CLIENTS = 2
_LOOK_S = 0.1
_PORT = b"--port"


def process_at(address: str) -> int:
    """The front's process that listens there, by its number."""
    port = address.rpartition(":")[2].encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"sequencer" in words and _PORT in words and words[words.index(_PORT) + 1] == port:
            return int(entry.name)
    raise AssertionError(f"no process listens at {address}")


async def until(log: LazyLog, what: str, holds: Callable[[SequencingStatus], bool]) -> None:
    """Look until it is so."""
    found: SequencingStatus | None = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while found is None or not holds(found):
                await asyncio.sleep(_LOOK_S)
                try:
                    found = await log.status(timeout=2)
                except AnabranchError:
                    found = None
    except TimeoutError:
        raise AssertionError(f"waited in vain until {what}: {found}") from None


@contextmanager
def paused(address: str) -> Iterator[None]:
    """A process that stands still, and is taken for dead."""
    number = process_at(address)
    os.kill(number, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(number, signal.SIGCONT)


Story = Callable[[aio.Service, LazyLog, Witness], Awaitable[None]]


def under_load(url: str, durability: Literal["fsync", "memory"], story: Story) -> None:
    async def run() -> None:
        stop = asyncio.Event()
        witness = Witness("orders", stop)
        async with aio.connect(url, timeout=PATIENCE_S) as service:
            made = await service.create(
                "orders", append="lazy", sequencers=2, durability=durability, timeout=PATIENCE_S
            )
            assert isinstance(made, LazyLog)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(witness.read(service))
                for client in range(1, CLIENTS + 1):
                    tasks.create_task(witness.append(service, client))
                await witness.go_on()
                await story(service, made, witness)
                stop.set()
            await witness.judge(service)

    asyncio.run(run())


async def _leader(log: LazyLog) -> str:
    await until(log, "somebody leads", lambda status: bool(status.leader))
    return (await log.status()).leader


async def kill_the_leader(service: aio.Service, log: LazyLog, witness: Witness) -> None:
    """With a fork promoted meanwhile."""
    leader = await _leader(log)
    promoted = asyncio.create_task(witness.promote_a_fork(service, "during"))
    os.kill(process_at(leader), signal.SIGKILL)
    await witness.go_on()
    await until(log, f"{leader} is back", lambda status: len(status.members) == 2)
    await promoted


async def kill_and_pause(service: aio.Service, log: LazyLog, witness: Witness) -> None:
    """The leader, the other one, and the leader paused, with a fork promoted meanwhile."""
    leader = await _leader(log)
    others = [each for each in (await log.status()).members if each != leader]
    promoted = asyncio.create_task(witness.promote_a_fork(service, "during"))
    for victim in (leader, *others):
        os.kill(process_at(victim), signal.SIGKILL)
        await witness.go_on()
        await until(log, f"{victim} is back", lambda status: len(status.members) == 2)
    await promoted
    leader = await _leader(log)
    with paused(leader):
        await until(log, "another leads", lambda status: status.leader != leader)
        await witness.go_on()
    await until(log, "both are members", lambda status: len(status.members) == 2)
    await witness.go_on()


async def end_one_by_one(_: aio.Service, log: LazyLog, witness: Witness) -> None:
    """As a rollout does it: with what is in memory alone, none of it is lost."""
    for victim in (await log.status()).members:
        view = (await log.status()).view
        os.kill(process_at(victim), signal.SIGTERM)
        await until(log, f"{victim} is left out", lambda status, view=view: status.view > view)
        await witness.go_on()
        await until(log, f"{victim} is back", lambda status: len(status.members) == 2)
    assert (await log.status()).lost_views == ()


def test_a_front_survives_the_death_of_its_leader(tmp_path: Path) -> None:
    with cluster(tmp_path) as url:
        under_load(url, "fsync", kill_the_leader)


@pytest.mark.nightly
def test_a_front_survives_the_death_and_the_sleep_of_each_of_its_processes(tmp_path: Path) -> None:
    with cluster(tmp_path) as url:
        under_load(url, "fsync", kill_and_pause)


@pytest.mark.nightly
def test_processes_that_end_one_after_the_other_lose_nothing_in_memory(tmp_path: Path) -> None:
    with cluster(tmp_path) as url:
        under_load(url, "memory", end_one_by_one)


@pytest.mark.nightly
def test_a_front_goes_on_after_a_restart_and_ends_with_its_log(tmp_path: Path) -> None:
    async def use(url: str, *, first: bool) -> None:
        async with aio.connect(url, timeout=PATIENCE_S) as service:
            if first:
                log = await service.create("orders", append="lazy", timeout=PATIENCE_S)
                await log.append(b"before", timeout=PATIENCE_S)
                return
            log = await service.log("orders", timeout=PATIENCE_S)
            done = await log.append(b"after", timeout=PATIENCE_S)
            assert done.receipt is not None
            assert await done.receipt.position(timeout=PATIENCE_S) == 1
            assert [each.value async for each in log.read(0)] == [b"before", b"after"]
            await service.delete("orders", timeout=PATIENCE_S)

    with cluster(tmp_path) as url:
        asyncio.run(use(url, first=True))
    folder = tmp_path / "data" / "lazy"
    assert len(os.listdir(folder)) == 1
    with cluster(tmp_path) as url:
        asyncio.run(use(url, first=False))
        for _ in range(int(PATIENCE_S / _LOOK_S)):
            if not os.listdir(folder):
                break
            asyncio.run(asyncio.sleep(_LOOK_S))
        assert os.listdir(folder) == []
