"""A latency-critical workload: appends at a fixed rate, and a reader at the tail who hears them."""

import asyncio
import struct
from collections.abc import AsyncIterator
from statistics import fmean
from typing import Protocol

import msgspec

from benchmarks.cluster.worker import Tell, Turn
from benchmarks.timing import now, percentile

_NS = 1_000_000_000
_MOMENT = struct.Struct(">Q")
_LEAD_NS = _NS // 100
_LOOK_S = 0.2


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    """Of a cluster its URL; of Kafka host:port."""
    log: str
    per_s: int
    seconds: float
    value_bytes: int
    reads: bool = True
    """Otherwise it only appends, and what is said of the end is said of acknowledgements."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds from when each append was due."""

    append_mean_ms: float
    append_p99_ms: float
    mean_ms: float
    """End to end: until the reader at the tail had it."""
    p99_ms: float


class Stream(Protocol):
    async def append(self, value: bytes) -> object: ...

    def values(self) -> AsyncIterator[bytes]:
        """What comes at the tail, from now on."""
        ...


class _Reader:
    """Takes moments off what comes, and knows how long each was on its way."""

    def __init__(self) -> None:
        self.took: list[int] = []
        self._wanted = 0
        self._all = asyncio.Event()

    async def read(self, stream: Stream) -> None:
        async for value in stream.values():
            self.took.append(now() - _MOMENT.unpack_from(value)[0])
            if len(self.took) >= self._wanted:
                self._all.set()

    def expect(self, count: int) -> None:
        self.took = []
        self._wanted = count
        self._all.clear()

    async def all(self) -> list[int]:
        await self._all.wait()
        return self.took


async def carry_out(stream: Stream, plan: Plan, turn: Turn, tell: Tell) -> None:
    """Whenever it is told to."""
    count = round(plan.per_s * plan.seconds)
    if not plan.reads:
        while await turn():
            appended = await _appended(stream, plan, count)
            tell(_done(appended, appended))
        return
    reader = _Reader()
    reading = asyncio.create_task(reader.read(stream))
    while not reader.took:  # that it reads at the tail is sure when it has heard something
        await stream.append(_value(plan, now()))
        await asyncio.sleep(_LOOK_S)
    while await turn():
        reader.expect(count)
        appended = await _appended(stream, plan, count)
        tell(_done(appended, await reader.all()))
    reading.cancel()


async def _appended(stream: Stream, plan: Plan, count: int) -> list[int]:
    took: list[int] = []

    async def append(due: int) -> None:
        await stream.append(_value(plan, due))
        took.append(now() - due)

    began = now() + _LEAD_NS
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            due = began + number * _NS // plan.per_s
            await asyncio.sleep(max(0, due - now()) / _NS)
            tasks.create_task(append(due))
    return took


def _value(plan: Plan, due: int) -> bytes:
    return _MOMENT.pack(due).ljust(plan.value_bytes, b"\0")


def _done(appended: list[int], read: list[int]) -> Done:
    return Done(
        append_mean_ms=fmean(appended) / 1e6,
        append_p99_ms=percentile(sorted(appended), 99) / 1e6,
        mean_ms=fmean(read) / 1e6,
        p99_ms=percentile(sorted(read), 99) / 1e6,
    )
