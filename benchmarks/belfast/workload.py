"""Appenders and consumers as the paper's: an open loop bounded in flight, and computing on
whatever is queued. Latencies are of records, from the call of append.

A consumer's computation is a wait: in the paper it has a machine of its own, and here it would take
the two cores from both systems.
"""

import asyncio
import struct
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import fmean

import msgspec

from anabranch.client.belfast.log import Log
from anabranch.client.session.endpoint import belfast_endpoint
from anabranch.client.session.records import Confirm, Deliver
from anabranch.client.session.settings import Settings
from anabranch.core.errors import AnabranchError
from benchmarks.belfast.delayed_link import DelayedLink
from benchmarks.timing import now, percentile

_STAMP = struct.Struct("<q")
MS = 1_000_000
_CONNECT_S = 60.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    appenders: int = 2
    """Of each shard."""
    rate: float = 200.0
    """Records a second of each appender."""
    in_flight: int = 16
    """Unacknowledged, of each appender."""
    record_bytes: int = 4_096
    compute_ms: float = 30.0
    """Of a consumer, for whatever is queued."""
    warm_s: float = 6.0
    """Left out: until quotas have settled."""
    run_s: float = 8.0


@dataclass(slots=True)
class Sample:
    """One record, in ns since the benchmark's beginning of time."""

    begun: int
    delivered: int = 0
    computed: int = 0
    confirmed: int = 0

    @property
    def ended(self) -> int:
        return max(self.computed, self.confirmed)


@dataclass(slots=True)
class Latencies:
    """Of records appended after the warm-up, in ms."""

    append: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    delivery: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    end_to_end: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """Each with when it was begun, in ns from the run's beginning."""
    queue: list[float] = field(default_factory=list[float])
    waiting: list[float] = field(default_factory=list[float])
    """For the confirmation, once computed."""
    fails: int = 0
    refused: int = 0

    @staticmethod
    def mean(of: Sequence[tuple[int, float]]) -> float:
        return fmean(latency for _, latency in of)

    @staticmethod
    def at(of: Sequence[tuple[int, float]], percent: float) -> float:
        return percentile(sorted(latency for _, latency in of), percent)


class Run:
    """Appenders of every shard, and a consumer for each, for as long as the load says."""

    def __init__(self, log: Log, shards: Sequence[str], load: Load) -> None:
        self._log = log
        self._shards = list(shards)
        self._load = load
        self._value = bytes(load.record_bytes - _STAMP.size)
        self._began = 0
        self._ends_s = 0.0
        self.latencies = Latencies()

    async def measured(self, warm: Callable[[], None]) -> Latencies:
        """`warm` is called, in a thread, when what is measured begins."""
        load = self._load
        start = (await self._log.directory()).confirmed
        consumers = [asyncio.create_task(self._consume(shard, start)) for shard in self._shards]
        self._began = now()
        self._ends_s = asyncio.get_running_loop().time() + load.warm_s + load.run_s
        appenders = [
            asyncio.create_task(self._append(shard, self._ends_s, load.rate))
            for shard in self._shards
            for _ in range(load.appenders)
        ]
        await asyncio.sleep(load.warm_s)
        await asyncio.to_thread(warm)
        await asyncio.gather(*appenders)
        for consumer in consumers:
            consumer.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)
        for consumer in consumers:
            if not consumer.cancelled():
                await consumer
        return self.latencies

    async def burst(self, shard: str, records: int) -> None:
        """So many at once, beside the appenders; they are measured as well."""
        room = asyncio.Semaphore(records)
        for _ in range(records):
            await room.acquire()
        await asyncio.gather(*(self._append_one(shard, room) for _ in range(records)))

    async def join(self, shard: str, appenders: int, rate: float) -> None:
        """More appenders, for the rest of the run."""
        await asyncio.gather(*(self._append(shard, self._ends_s, rate) for _ in range(appenders)))

    async def _append(self, shard: str, ends_s: float, rate: float) -> None:
        """At this rate, as far as so many unacknowledged allow."""
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(self._load.in_flight)
        due_s = loop.time()
        pending: set[asyncio.Task[None]] = set()
        while (at_s := loop.time()) < ends_s:
            if due_s > at_s:
                await asyncio.sleep(due_s - at_s)
            await room.acquire()
            task = asyncio.create_task(self._append_one(shard, room))
            pending.add(task)
            task.add_done_callback(pending.discard)
            due_s = max(due_s + 1 / rate, loop.time() - 1 / rate)
        await asyncio.gather(*pending)

    async def _append_one(self, shard: str, room: asyncio.Semaphore) -> None:
        begun = now()
        try:
            await self._log.append(_STAMP.pack(begun) + self._value, shard=shard)
        except AnabranchError:
            self.latencies.refused += 1
        else:
            self._note(self.latencies.append, begun, now() - begun)
        finally:
            room.release()

    async def _consume(self, shard: str, start: int) -> None:
        """Compute over whatever is queued, while confirmations come in."""
        queue: deque[tuple[int, Sample]] = deque()
        unconfirmed: deque[tuple[int, Sample]] = deque()
        ready = asyncio.Event()
        computing = asyncio.create_task(self._compute(queue, ready))
        events = self._log.subscribe(start, shards=[shard])
        try:
            async for event in events:
                match event:
                    case Deliver(record, speculative):
                        (begun,) = _STAMP.unpack_from(record.value or b"")
                        at = now()
                        sample = Sample(begun, at, confirmed=0 if speculative else at)
                        self._note(self.latencies.delivery, begun, sample.delivered - begun)
                        queue.append((record.position, sample))
                        if speculative:
                            unconfirmed.append((record.position, sample))
                        ready.set()
                    case Confirm(up_to):
                        while unconfirmed and unconfirmed[0][0] < up_to:
                            self._confirmed(unconfirmed.popleft()[1])
                    case _:
                        self.latencies.fails += 1
                        queue.clear()
                        unconfirmed.clear()
        finally:
            computing.cancel()
            events.close()

    async def _compute(self, queue: "deque[tuple[int, Sample]]", ready: asyncio.Event) -> None:
        while True:
            await ready.wait()
            ready.clear()
            batch = [sample for _, sample in queue]
            queue.clear()
            taken = now()
            await asyncio.sleep(self._load.compute_ms / 1_000)
            computed = now()
            for sample in batch:
                self.latencies.queue.append((taken - sample.delivered) / MS)
                sample.computed = computed
                if sample.confirmed:
                    self._ended(sample)
            if queue:
                ready.set()

    def _confirmed(self, sample: Sample) -> None:
        sample.confirmed = now()
        if sample.computed:
            self.latencies.waiting.append((sample.confirmed - sample.computed) / MS)
            self._ended(sample)

    def _ended(self, sample: Sample) -> None:
        self._note(self.latencies.end_to_end, sample.begun, sample.ended - sample.begun)

    def _note(self, of: list[tuple[int, float]], begun: int, took: int) -> None:
        since = begun - self._began
        if since >= self._load.warm_s * 1e9:
            of.append((since, took / MS))


@asynccontextmanager
async def connected(url: str, delay_us: int) -> AsyncGenerator[Log]:
    """With the delay that the log's own processes have between them."""
    link = DelayedLink(belfast_endpoint(url), Settings(client="benchmark"), delay_us)
    link.start()
    log = Log(link)
    try:
        await log.directory(timeout=_CONNECT_S)
        yield log
    finally:
        link.close()


async def measure(
    url: str, shards: Sequence[str], load: Load, delay_us: int, warm: Callable[[], None]
) -> Latencies:
    """One run on a log that is there."""
    async with connected(url, delay_us) as log:
        return await Run(log, shards, load).measured(warm)
