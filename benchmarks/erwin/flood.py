"""As many appends as a log takes from one client, whose batches are as large as they come."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from anabranch.core.records.record import Record
from benchmarks.erwin.deployment import Usage
from benchmarks.timing import now

CHUNK_BYTES = 1 << 20
CHUNK_RECORDS = 1_000
WARM_S, RUN_S = 0.5, 2.0


class _Log(Protocol):
    async def append_many(self, values: "list[bytes | Record]", /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Flood:
    records: int
    took_s: float
    usage: Usage

    @property
    def records_s(self) -> float:
        return self.records / self.took_s

    @property
    def cpu_us(self) -> float:
        """Of all processes of the log, for each record."""
        return 1e6 * (self.usage.sequencers_s + self.usage.shards_s) / max(1, self.records)


async def flooded(log: _Log, record_bytes: int, used: Callable[[], Usage], run_s: float) -> Flood:
    """Two chunks are under way at any time."""
    count = max(1, min(CHUNK_RECORDS, CHUNK_BYTES // record_bytes))
    chunk: list[bytes | Record] = [bytes(record_bytes)] * count
    appended, ends = 0, now() + int((WARM_S + run_s) * 1e9)

    async def pour() -> None:
        nonlocal appended
        while now() < ends:
            await log.append_many(chunk)
            appended += count

    pouring = asyncio.gather(pour(), pour())
    await asyncio.sleep(WARM_S)
    before, began, usage = appended, now(), used()
    await pouring
    return Flood(appended - before, (now() - began) / 1e9, used() - usage)
