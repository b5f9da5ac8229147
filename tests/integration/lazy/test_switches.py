"""Appends of a log become lazy, and direct again, under load: nothing is lost or doubled."""

import asyncio
import os
import signal
from itertools import count
from pathlib import Path
from time import monotonic_ns

import pytest
from tests.integration.erwin.test_erwin_service import PATIENCE_S, cluster
from tests.integration.lazy.test_front_processes import process_at

from anabranch import aio
from anabranch.client.lazy_log import LazyLog
from anabranch.core.errors import AnabranchError, LazyAppendsOnly
from anabranch.core.history.calls import Verdict
from anabranch.core.history.lazy import LazyAppend, LazyHistory, StableRead, judge_lazy

WRITERS = 3
MORE = 60
"""Appends that are acknowledged between two events."""


class Load:
    """Writers that open the log anew whenever an append fails."""

    def __init__(self, service: aio.Service) -> None:
        self.history = LazyHistory(calls=[], lost=set())
        self.stop = asyncio.Event()
        self._service = service
        self._numbers = count(1)
        self._acknowledged = asyncio.Semaphore(0)

    async def write(self, client: int) -> None:
        log = await self._service.log("orders", engine="bolt")
        while not self.stop.is_set():
            number = next(self._numbers)
            call = LazyAppend(client=client, invoked=monotonic_ns(), records=[number])
            self.history.calls.append(call)
            try:
                done = await log.append(b"%d" % number, timeout=10)
            except AnabranchError as error:
                if isinstance(error, LazyAppendsOnly):
                    call.returned, call.verdict = monotonic_ns(), Verdict.REFUSED
                log = await self._service.log("orders", engine="bolt")
                continue
            call.returned, call.verdict = monotonic_ns(), Verdict.OK
            call.position = done.position
            self._acknowledged.release()

    async def go_on(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(MORE):
                await self._acknowledged.acquire()

    async def judge(self) -> None:
        log = await self._service.log("orders", engine="bolt")
        final = StableRead(client=0, invoked=monotonic_ns(), start=0, upto=0)
        async for each in log.read(0, timeout=PATIENCE_S):
            final.positions.append(each.position)
            final.records.append(int(each.value or b""))
            final.upto = each.position + 1
        final.returned, final.verdict = monotonic_ns(), Verdict.OK
        self.history.final = final
        assert judge_lazy(self.history) == []


async def switch_there_and_back(url: str) -> None:
    async with aio.connect(url, timeout=PATIENCE_S) as service:
        await service.create("orders", timeout=PATIENCE_S)
        load = Load(service)
        async with asyncio.TaskGroup() as tasks:
            for client in range(1, WRITERS + 1):
                tasks.create_task(load.write(client))
            await load.go_on()
            lazy = await service.set_appends("orders", "lazy", sequencers=2, timeout=PATIENCE_S)
            assert isinstance(lazy, LazyLog)
            await load.go_on()
            leader = (await lazy.status(timeout=PATIENCE_S)).leader
            switched = tasks.create_task(
                service.set_appends("orders", "direct", timeout=PATIENCE_S)
            )
            os.kill(process_at(leader), signal.SIGKILL)
            assert not isinstance(await switched, LazyLog)
            await load.go_on()
            load.stop.set()
        await load.judge()


@pytest.mark.nightly
def test_a_log_is_made_lazy_and_direct_again_under_load(tmp_path: Path) -> None:
    with cluster(tmp_path) as url:
        asyncio.run(switch_there_and_back(url))
        folder = tmp_path / "data" / "lazy"
        for _ in range(int(PATIENCE_S / 0.1)):
            if not os.listdir(folder):
                return
            asyncio.run(asyncio.sleep(0.1))
        raise AssertionError(f"{os.listdir(folder)} is still there")
