"""The applications of examples/belfast as the paper runs them: records from many sources, readers
that compute over whatever has come, each on a database of its own.

The computation is real, and stretched by a wait: T_ord is longer here than the paper's, and a
batch's computation is to be as long beside it as there.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from examples.belfast.application import Application, Ingested, Reader

from anabranch.client.belfast.events import Events
from anabranch.client.belfast.log import Log
from anabranch.client.belfast.speculator import BatchSpeculator
from anabranch.client.session.records import Confirm, Deliver, Event, Fail
from anabranch.core.types import Position
from benchmarks.belfast.workload import MS
from benchmarks.timing import now

_PATIENCE_S = 120.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is ingested, and how it is consumed."""

    rate: float = 600.0
    """Records a second, over all shards."""
    in_flight: int = 64
    readers: int = 2
    compute_ms: float
    """Of a batch, the real computation included."""
    warm_s: float = 3.0
    run_s: float = 5.0
    anywhere: bool = False
    """Appended to whichever shard takes it, and so to another where one fails; else each source
    has its shard, and waits for it.
    """


@dataclass(slots=True)
class Task:
    """One reader, and when everything was computed and confirmed; times in ns."""

    reader: Reader
    events: Events
    compute_ms: float
    computed: dict[Position, int] = field(default_factory=dict[Position, int])
    """When a record was computed last."""
    marks: list[tuple[Position, int]] = field(default_factory=list[tuple[Position, int]])
    """Everything below was confirmed then."""
    fails: list[tuple[Position, int]] = field(default_factory=list[tuple[Position, int]])
    """From where on, and when it was told."""
    rollback_ns: int = 0
    batches: int = 0
    busy_ns: int = 0
    """Of the real computation."""

    async def run(self) -> None:
        queue: deque[Event] = deque()
        ready = asyncio.Event()
        computing = asyncio.create_task(self._compute(queue, ready))
        try:
            while True:
                for event in await self.events.take():
                    if isinstance(event, Confirm):
                        self.marks.append((event.up_to, now()))
                    elif isinstance(event, Fail):
                        self.fails.append((event.since, now()))
                    elif not event.speculative:
                        self.marks.append((event.record.position + 1, now()))
                    queue.append(event)
                ready.set()
        finally:
            computing.cancel()

    async def _compute(self, queue: deque[Event], ready: asyncio.Event) -> None:
        speculator = BatchSpeculator(self.reader.do, self.reader.undo, self.reader.on_confirm)
        while True:
            await ready.wait()
            ready.clear()
            events = list(queue)
            queue.clear()
            begun = now()
            speculator.take(*events)
            took = now() - begun
            if any(isinstance(event, Fail) for event in events):
                self.rollback_ns += took
            positions = [each.record.position for each in events if isinstance(each, Deliver)]
            if not positions:
                continue
            self.batches += 1
            self.busy_ns += took
            await asyncio.sleep(max(0.0, self.compute_ms / 1_000 - took / 1e9))
            self.computed.update(dict.fromkeys(positions, now()))

    def ended(self, position: Position) -> int | None:
        """When it was computed and confirmed; None: one of both it wasn't."""
        computed = self.computed.get(position)
        at = bisect_right(self.marks, position, key=lambda mark: mark[0])
        if computed is None or at == len(self.marks):
            return None
        return max(computed, self.marks[at][1])


@dataclass(slots=True)
class Course:
    """How a run went."""

    began: int
    ingested: dict[Position, int]
    """When the append of each was begun."""
    tasks: list[Task]

    def end_to_end(self) -> list[tuple[int, float]]:
        """Of each record: when it was begun, in ns from the run's beginning, and ms from there."""
        found: list[tuple[int, float]] = []
        for position, begun in self.ingested.items():
            ends = [end for each in self.tasks if (end := each.ended(position)) is not None]
            if ends:
                found.append((begun - self.began, (min(ends) - begun) / MS))
        return found


class Play:
    """An application on a log that is there."""

    def __init__(self, log: Log, application: Application, shards: Sequence[str]) -> None:
        self._log = log
        self._application = application
        self._shards = list(shards)
        self._ingested: dict[Position, int] = {}

    async def run(self, work: Work, folder: Path, seed: int) -> Course:
        log, application = self._log, self._application
        start = (await log.directory()).confirmed
        with ExitStack() as stack:
            tasks: list[Task] = []
            for number, interest in enumerate(application.interests(self._shards, work.readers)):
                reader = application.reader(folder / f"{application.name}-{seed}-{number}")
                stack.callback(reader.close)
                events = log.subscribe(start, where=interest.where, shards=interest.shards)
                stack.callback(events.close)
                tasks.append(Task(reader, events, work.compute_ms))
            running = [asyncio.create_task(each.run()) for each in tasks]
            began = now()
            await self._ingest(work, application.records(Random(seed)))
            await self._read(tasks)
            for each in running:
                each.cancel()
            for ended in await asyncio.gather(*running, return_exceptions=True):
                if not isinstance(ended, asyncio.CancelledError):
                    raise AssertionError("a reader ended before its time") from ended
        return Course(began, self._ingested, tasks)

    async def _read(self, tasks: Sequence[Task]) -> None:
        """Until somebody has computed each record, and knows that it is confirmed."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _PATIENCE_S
        left = list(self._ingested)
        while left:
            assert loop.time() < end_s, f"{len(left)} records were never read"
            await asyncio.sleep(_LOOK_S)
            left = [each for each in left if all(task.ended(each) is None for task in tasks)]

    async def _ingest(self, work: Work, records: Iterator[Ingested]) -> None:
        """Each shard's appenders have a rate of their own, as the paper's."""
        if work.anywhere:
            await self._append_at(work, work.rate, records, None, work.in_flight)
            return
        ways = len(self._shards)
        feeds = zip(self._shards, _dealt(records, ways), strict=True)
        rate, room = work.rate / ways, max(1, work.in_flight // ways)
        await asyncio.gather(
            *(self._append_at(work, rate, feed, shard, room) for shard, feed in feeds)
        )

    async def _append_at(
        self,
        work: Work,
        rate: float,
        records: Iterator[Ingested],
        shard: str | None,
        in_flight: int,
    ) -> None:
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(in_flight)
        pending: set[asyncio.Task[None]] = set()
        due_s = loop.time()
        ends_s = due_s + work.warm_s + work.run_s
        while (at_s := loop.time()) < ends_s:
            if due_s > at_s:
                await asyncio.sleep(due_s - at_s)
            await room.acquire()
            task = asyncio.create_task(self._append(next(records), shard, room))
            pending.add(task)
            task.add_done_callback(pending.discard)
            due_s = max(due_s + 1 / rate, loop.time() - 1 / rate)
        await asyncio.gather(*pending)

    async def _append(self, each: Ingested, shard: str | None, room: asyncio.Semaphore) -> None:
        begun = now()
        try:
            position = await self._log.append(
                each.value, key=each.key, shard=shard, retry_unknown=True, timeout=_PATIENCE_S
            )
            self._ingested[position] = begun
        finally:
            room.release()


def _dealt(records: Iterator[Ingested], ways: int) -> list[Iterator[Ingested]]:
    """To each way the records of its sources, in their order."""
    waiting: list[deque[Ingested]] = [deque() for _ in range(ways)]

    def feed(way: int) -> Iterator[Ingested]:
        while True:
            while not waiting[way]:
                each = next(records)
                waiting[each.source % ways].append(each)
            yield waiting[way].popleft()

    return [feed(way) for way in range(ways)]
