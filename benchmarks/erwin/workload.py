"""Clients as the paper's: closed loops with a limit of their rate, and readers that follow them.

Each client has connections of its own, so no two clients' records share a batch. Latencies are in
ms, from the call of append or read.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, Protocol, TypeVar

import msgspec
import uvloop

from anabranch.client.erwin.log import SequencedLog
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.types import MS, Position
from benchmarks.erwin.corfu.client import CorfuLog
from benchmarks.erwin.deployment import CORFU, ERWIN, Deployment, Usage
from benchmarks.timing import now, percentile

_PATIENCE_S = 60.0

T = TypeVar("T")


class Load(msgspec.Struct, frozen=True, kw_only=True):
    clients: int = 4
    """All together, each with one append under way."""
    rate: float = 25.0
    """Appends a second of each client, at most."""
    record_bytes: int = 4_096
    warm_s: float = 0.5
    """Left out."""
    run_s: float = 2.0
    lag_ms: float | None = None
    """A reader reads each record so long after its append was acknowledged; None: nobody reads."""
    read_records: int = 1
    """It reads so many at a time, so long after the last of them; only of Erwin more than one."""


class MeasuredClient(Protocol):
    async def append(self) -> Position | None:
        """None: the position isn't known yet."""
        ...

    async def tail(self) -> Position: ...

    async def read(self, position: Position, count: int = 1) -> None:
        """Wait until so many records lie there, and decode them."""
        ...


class ErwinClient:
    def __init__(self, log: SequencedLog, record_bytes: int) -> None:
        self.log, self._value = log, bytes(record_bytes)

    async def append(self) -> Position | None:
        return (await self.log.append(self._value)).position

    async def tail(self) -> Position:
        return await self.log.tail()

    async def read(self, position: Position, count: int = 1) -> None:
        found = [each async for each in self.log.read(position, count, wait=_PATIENCE_S)]
        assert len(found) == count, f"{len(found)} of {count} records were read from {position} on"


class CorfuClient:
    def __init__(self, log: CorfuLog, record_bytes: int) -> None:
        self._log, self._record = log, Record(bytes(record_bytes))

    async def append(self) -> Position | None:
        # Erwin's client makes a batch for each append, too.
        return await self._log.append(encode([self._record], now=now() // MS))

    async def tail(self) -> Position:
        return 0

    async def read(self, position: Position, count: int = 1) -> None:
        assert count == 1, "Corfu's positions are read one by one"
        while not (batch := await self._log.read(position)):
            """It is granted, and its append is still on the way."""
        decode(batch)  # Erwin's client hands out records, too


@dataclass(slots=True)
class Latencies:
    """After the warm-up."""

    append: list[float] = field(default_factory=list[float])
    read: list[float] = field(default_factory=list[float])
    ended: list[int] = field(default_factory=list[int])
    """When each append was acknowledged, in ns since the measured time began."""
    usage: Usage | None = None
    reads: int = 0
    slow_reads: int = 0
    """As Erwin's shards count them, over the whole run: those that waited there, and those that
    came too early and were answered with nothing.
    """
    records_pushed: float = 0.0
    """Records that Erwin's leader ordered together, on average."""

    def mean(self) -> float:
        return fmean(self.append)

    def p99(self) -> float:
        return percentile(sorted(self.append), 99)

    def read_mean(self) -> float:
        return fmean(self.read)

    def read_median(self) -> float:
        return median(self.read)

    def slow_share(self) -> float:
        return self.slow_reads / max(1, self.reads)


class Run:
    """All clients, for as long as the load says."""

    def __init__(self, clients: Sequence[MeasuredClient], load: Load, used: Callable[[], Usage]):
        self._clients, self._load, self._used = clients, load, used
        self._next: Position = 0
        """So many positions were read, or are going to be."""
        self._acknowledged = 0
        self._reads: set[asyncio.Task[None]] = set()
        self.begins = 0
        """When what is measured begins, in ns."""
        self.found = Latencies()

    async def measured(self, reader: MeasuredClient | None = None) -> Latencies:
        load = self._load
        loop = asyncio.get_running_loop()
        if reader is not None:
            self._next = await reader.tail()
        self.begins = now() + int(load.warm_s * 1e9)
        ends_s = loop.time() + load.warm_s + load.run_s
        before = asyncio.create_task(self._later(load.warm_s))
        await asyncio.gather(
            *(
                self._append(each, ends_s, number / len(self._clients), reader)
                for number, each in enumerate(self._clients)
            )
        )
        self.found.usage = self._used() - await before
        await asyncio.gather(*self._reads)
        return self.found

    async def _later(self, after_s: float) -> Usage:
        await asyncio.sleep(after_s)
        return self._used()

    async def _append(
        self,
        client: MeasuredClient,
        ends_s: float,
        phase: float,
        reader: MeasuredClient | None,
    ) -> None:
        """One after the other, at this rate or as fast as they are acknowledged."""
        loop, pause_s = asyncio.get_running_loop(), 1 / self._load.rate
        due_s = loop.time() + phase * pause_s
        while loop.time() < ends_s:
            if due_s > loop.time():
                await asyncio.sleep(due_s - loop.time())
            begun = now()
            position = await client.append()
            ended = now()
            if begun >= self.begins:
                self.found.append.append((ended - begun) / MS)
                self.found.ended.append(ended - self.begins)
            self._acknowledged += 1
            whole = self._acknowledged % self._load.read_records == 0
            if reader is not None and self._load.lag_ms is not None and whole:
                task = asyncio.create_task(self._follow(reader, position, self._load.lag_ms))
                self._reads.add(task)
                task.add_done_callback(self._reads.discard)
            due_s = max(due_s + pause_s, loop.time() - pause_s)

    async def _follow(
        self, reader: MeasuredClient, position: Position | None, lag_ms: float
    ) -> None:
        count = self._load.read_records
        if position is None:
            # As many records are durable, and so as many positions are bound or will be.
            position = self._next
            self._next += count
        await asyncio.sleep(lag_ms / 1_000)
        begun = now()
        await reader.read(position, count)
        if begun >= self.begins:
            self.found.read.append((now() - begun) / MS)


@asynccontextmanager
async def clients(
    deployment: Deployment, count: int, record_bytes: int
) -> AsyncGenerator[list[MeasuredClient]]:
    """So many, connected to all nodes."""
    async with AsyncExitStack() as stack:
        made: list[MeasuredClient] = []
        for _ in range(count):
            if deployment.setting.system == CORFU:
                log = await stack.enter_async_context(deployment.corfu())
                made.append(CorfuClient(log, record_bytes))
            else:
                erwin = await stack.enter_async_context(deployment.erwin())
                made.append(ErwinClient(erwin, record_bytes))
        yield made


def measure(deployment: Deployment, load: Load) -> Latencies:
    """One run on a log that is there."""

    async def run() -> Latencies:
        async with clients(deployment, load.clients + 1, load.record_bytes) as (reader, *made):
            run = Run(made, load, deployment.used)
            return await run.measured(None if load.lag_ms is None else reader)

    found = on_loop(run())
    if deployment.setting.system == ERWIN:
        count_reads(deployment, found)
    return found


def count_reads(deployment: Deployment, found: Latencies) -> None:
    """As Erwin's shards and its leader have counted them by now."""
    shards = [shard[0].counters() for shard in deployment.shards]
    found.reads = sum(each.reads for each in shards)
    found.slow_reads = sum(each.slow_reads + each.short_reads for each in shards)
    leader = max((each.counters() for each in deployment.sequencers), key=lambda each: each.records)
    found.records_pushed = leader.records / max(1, leader.groups)


def on_loop(work: Coroutine[Any, Any, T]) -> T:
    """On the loop that servers run on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
