"""`anabranch up` is killed again and again under logs whose appends are lazy: what clients saw is
judged by the rules in `core/history/lazy.py`.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import monotonic_ns
from typing import Any

from tests.integration.server_process import Process

from anabranch import aio
from anabranch.core.errors import AnabranchError, ReadBlocked
from anabranch.core.history.calls import Verdict
from anabranch.core.history.lazy import (
    LazyAppend,
    LazyCall,
    LazyHistory,
    Redemption,
    StableRead,
    judge_lazy,
)

PORT = 7420
PATIENCE_S = 30.0
CLIENTS = 3
KILLS = 3
MORE = 100
"""Records that each log acknowledges between two kills."""
LOGS: dict[str, dict[str, Any]] = {
    "lazy": {"append": "lazy", "sequencers": 2},
    "erwin-m": {"engine": "erwin", "mode": "m", "shards": 2},
    "erwin-st": {"engine": "erwin", "mode": "st", "shards": 2, "sequencers": 2},
}


class Witness:
    """Clients of one log, and what they saw."""

    def __init__(self, name: str, stop: asyncio.Event) -> None:
        self.name = name
        self.history = LazyHistory(calls=[], lost=set())
        self._acknowledged = asyncio.Semaphore(0)
        self._stop = stop
        self._records = count(1)

    async def go_on(self) -> None:
        """Return when more records are acknowledged than before."""
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(MORE):
                await self._acknowledged.acquire()

    async def append(self, service: aio.Service, client: int) -> None:
        """One record after the other; now and then a receipt is redeemed."""
        log = await service.log(self.name)
        while not self._stop.is_set():
            number = next(self._records)
            call = LazyAppend(client=client, invoked=monotonic_ns(), records=[number])
            self.history.calls.append(call)
            try:
                receipt = (await log.append(b"%d" % number, timeout=PATIENCE_S)).receipt
            except AnabranchError:
                continue  # It may be in the log or not.
            _done(call)
            self._acknowledged.release()
            assert receipt is not None
            if number % 10 == 0:
                found = Redemption(client=client, invoked=monotonic_ns(), record=number)
                found.position = await receipt.position(timeout=PATIENCE_S)
                _done(found)
                self.history.calls.append(found)

    async def read(self, service: aio.Service) -> None:
        """Everything that is there, again and again."""
        log = await service.log(self.name)
        while not self._stop.is_set():
            try:
                call = await _everything(log)
            except ReadBlocked:
                continue
            self.history.calls.append(call)
            await asyncio.sleep(0.1)

    async def promote_a_fork(self, service: aio.Service, name: str) -> None:
        """The fork's record is in the log from then on."""
        log = await service.log(self.name, engine="bolt")
        fork = await log.cfork(name, promotable=True)
        number = next(self._records)
        # Lazy appends that are acknowledged by now may come later: a fork's own are direct.
        call = LazyAppend(client=0, invoked=0, records=[number])
        self.history.calls.append(call)
        await fork.append(b"%d" % number)
        await fork.promote()
        _done(call)

    async def judge(self, service: aio.Service) -> None:
        log = await service.log(self.name)
        last = (await log.append(b"%d" % (number := next(self._records)))).receipt
        self.history.calls.append(LazyAppend(client=0, invoked=monotonic_ns(), records=[number]))
        assert last is not None
        position = await last.position(timeout=PATIENCE_S)
        self.history.final = await _everything(log)
        assert self.history.final.upto == position + 1
        assert judge_lazy(self.history) == [], self.name


def test_kills_cost_no_lazy_log_anything_that_was_acknowledged(tmp_path: Path) -> None:
    # An address of its own: no other process takes the port while nobody listens.
    host = f"127.70.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}"

    async def story(kill: Callable[[], None]) -> None:
        stop = asyncio.Event()
        witnesses = [Witness(name, stop) for name in LOGS]
        async with aio.connect(f"anabranch://{host}:{PORT}", timeout=PATIENCE_S) as service:
            for name, settings in LOGS.items():
                await service.create(name, **settings)
            async with asyncio.TaskGroup() as tasks:
                for witness in witnesses:
                    tasks.create_task(witness.read(service))
                    for client in range(1, CLIENTS + 1):
                        tasks.create_task(witness.append(service, client))
                for number in range(KILLS):
                    fork = witnesses[0].promote_a_fork(service, f"fork-{number}")
                    promoted = tasks.create_task(fork)
                    for witness in witnesses:
                        await witness.go_on()
                    await asyncio.to_thread(kill)
                    await promoted
                stop.set()
            for witness in witnesses:
                await witness.judge(service)

    servers = [Process(tmp_path, "--host", host, "--port", str(PORT))]

    def kill() -> None:
        servers[-1].end(signal.SIGKILL)
        servers.append(Process(tmp_path, "--host", host, "--port", str(PORT)))

    try:
        asyncio.run(story(kill))
    finally:
        servers[-1].end(signal.SIGKILL)


async def _everything(log: aio.AnyLog) -> StableRead:
    call = StableRead(client=0, invoked=monotonic_ns(), start=0, upto=0)
    async for each in log.read(0, timeout=PATIENCE_S):
        call.positions.append(each.position)
        call.records.append(int(each.value or b""))
        call.upto = each.position + 1
    _done(call)
    return call


def _done(call: LazyCall) -> None:
    call.returned, call.verdict = monotonic_ns(), Verdict.OK
