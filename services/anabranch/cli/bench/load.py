"""The loads of `anabranch bench`, each bounded in time and in count."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from anabranch.client.bolt.log import Log
from anabranch.core.limits import KIB
from anabranch.core.records.record import Record
from anabranch.shell.runtime.clock import Clock

CLIENTS = 64
CHUNK_RECORDS = 500
BATCH_BYTES = 64 * KIB
_READ_RECORDS = 10_000

_now = Clock().now


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one load did."""

    name: str
    what: str
    operations: int
    """Records, or forks."""
    bytes: int
    seconds: float
    latencies_ns: list[int]
    """Of what was waited for, in order of length."""

    @property
    def rate(self) -> float:
        return self.operations / self.seconds

    @property
    def bytes_rate(self) -> float:
        return self.bytes / self.seconds

    def percentile(self, of: int) -> float:
        """In seconds."""
        last = len(self.latencies_ns) - 1
        return self.latencies_ns[min(last, len(self.latencies_ns) * of // 100)] / 1e9


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how much, how large."""

    seconds: float
    count_max: int
    value_bytes: int


@dataclass(slots=True)
class Meters:
    """Counts while a load runs."""

    show: Callable[[float, float], None]
    """Told now and then how many seconds were spent, and how many operations a second done."""
    operations: int = 0
    bytes: int = 0
    latencies_ns: list[int] = field(default_factory=list[int])
    began: int = field(default_factory=_now)
    shown: int = 0

    async def timed(self, work: Awaitable[object], operations: int, size: int) -> None:
        began = _now()
        await work
        ended = _now()
        self.latencies_ns.append(ended - began)
        self.operations += operations
        self.bytes += size
        if ended - self.shown > 100_000_000:
            self.shown = ended
            spent = (ended - self.began) / 1e9
            self.show(spent, self.operations / spent)

    def more(self, plan: Plan) -> bool:
        return self.operations < plan.count_max and _now() - self.began < plan.seconds * 1e9


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    what: str
    run: Callable[[Log, Plan, Meters], Awaitable[None]]


async def measure(load: Load, log: Log, plan: Plan, meters: Meters) -> Measured:
    meters.began = _now()
    await load.run(log, plan, meters)
    seconds = (_now() - meters.began) / 1e9
    meters.latencies_ns.sort()
    return Measured(
        name=load.name,
        what=load.what,
        operations=meters.operations,
        bytes=meters.bytes,
        seconds=seconds,
        latencies_ns=meters.latencies_ns,
    )


async def _one_by_one(log: Log, plan: Plan, meters: Meters) -> None:
    value = bytes(plan.value_bytes)
    while meters.more(plan):
        await meters.timed(log.append(value), 1, len(value))


async def _at_once(log: Log, plan: Plan, meters: Meters) -> None:
    async with asyncio.TaskGroup() as clients:
        for _ in range(CLIENTS):
            clients.create_task(_one_by_one(log, plan, meters))


async def _pipelined(log: Log, plan: Plan, meters: Meters) -> None:
    """Two chunks on their way, so that the log never waits for this program."""
    records = [Record(bytes(plan.value_bytes))] * CHUNK_RECORDS
    size = CHUNK_RECORDS * plan.value_bytes

    async def stream() -> None:
        while meters.more(plan):
            await meters.timed(log.append_many(records), CHUNK_RECORDS, size)

    async with asyncio.TaskGroup() as streams:
        for _ in range(4):
            streams.create_task(stream())


async def _batched(log: Log, plan: Plan, meters: Meters) -> None:
    """Batches of 64 KiB, eight on their way."""
    from anabranch.core.records.record import encode

    each = max(1, plan.value_bytes)
    records = [Record(bytes(plan.value_bytes))] * max(1, BATCH_BYTES // each)
    batch = encode(records, now=_now() // 1_000_000)

    async def stream() -> None:
        while meters.more(plan):
            await meters.timed(log.append_batch(batch), len(records), len(batch))

    async with asyncio.TaskGroup() as streams:
        for _ in range(8):
            streams.create_task(stream())


async def _read(log: Log, plan: Plan, meters: Meters) -> None:
    """From the beginning, over and over; checksums are verified, records not decoded."""
    tail = await log.tail()
    if not tail:
        await log.append(bytes(plan.value_bytes))
        tail = 1
    while meters.more(plan):
        start = 0
        while start < tail and meters.more(plan):
            start += await _page(log, start, meters)


async def _page(log: Log, start: int, meters: Meters) -> int:
    records = size = 0

    async def page() -> None:
        nonlocal records, size
        async for batch in log.read_batches(start, _READ_RECORDS):
            records += batch.count
            size += len(batch.raw)

    await meters.timed(page(), 0, 0)
    meters.operations += records
    meters.bytes += size
    return records


async def _fork(log: Log, plan: Plan, meters: Meters) -> None:
    """Forks are squashed as they are made, out of the measured time."""
    while meters.more(plan):
        made: list[Log] = []

        async def make(made: list[Log] = made) -> None:
            made.append(await log.cfork())

        await meters.timed(make(), 1, 0)
        await made[0].squash()


LOADS = (
    Load("single", "append, one by one", _one_by_one),
    Load("concurrent", f"append, {CLIENTS} at once", _at_once),
    Load("pipelined", f"append, {CHUNK_RECORDS} in a call", _pipelined),
    Load("batched", "append, batches of 64 KiB", _batched),
    Load("read", f"read, {_READ_RECORDS:,} in a call", _read),
    Load("fork", "fork", _fork),
)
