"""Figure 15: a total order over Kafka's topics, and appends that don't wait for Kafka."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import uvloop
from aiokafka import AIOKafkaProducer
from msgspec.structs import replace

from anabranch.client import aio
from anabranch.client.erwin_log import ErwinLog
from anabranch.core.types import Position
from benchmarks import server
from benchmarks.erwin.deployment import Usage
from benchmarks.erwin.workload import Latencies, Load, MeasuredClient, Run
from benchmarks.peers.kafka.server import Kafka
from benchmarks.peers.kafka.server import running as running_kafka
from benchmarks.report import SCRATCH, Chart, Found, Line, Row, versus
from benchmarks.size import Size
from benchmarks.timing import interleaved

LOAD = Load(clients=4, rate=50.0, warm_s=1.0, run_s=3.0)
WARM = Load(clients=4, rate=200.0, warm_s=0.0, run_s=15.0)
"""Kafka's first seconds are ten times as slow as what follows."""
ROUNDS, SHARDS, LINGER_MS = 3, (1, 3), 5
BAR = 10.0


class Case(NamedTuple):
    """One system, as a round of it runs."""

    name: str
    shards: int
    linger_ms: int | None = None
    """Of Kafka's producers; None: Erwin over Kafka."""
    durability: str = ""


class KafkaClient:
    """Appends to one partition, as its own producer."""

    def __init__(self, producer: AIOKafkaProducer, topic: str, record_bytes: int) -> None:
        self._producer, self._topic, self._value = producer, topic, bytes(record_bytes)

    async def append(self) -> Position | None:
        await self._producer.send_and_wait(self._topic, self._value, partition=0)
        return None

    async def tail(self) -> Position:
        raise NotImplementedError

    async def read(self, position: Position, count: int = 1) -> None:
        raise NotImplementedError


class OrderedClient:
    """Appends to an Erwin log; the position comes later, and isn't waited for."""

    def __init__(self, log: ErwinLog, record_bytes: int) -> None:
        self._log, self._value = log, bytes(record_bytes)

    async def append(self) -> Position | None:
        return (await self._log.append(self._value)).position

    async def tail(self) -> Position:
        return await self._log.tail()

    async def read(self, position: Position, count: int = 1) -> None:
        raise NotImplementedError


def run(size: Size) -> Found:
    load = size.of(LOAD, replace(LOAD, warm_s=0.2, run_s=0.3))
    warm = size.of(WARM, replace(WARM, run_s=0.5))
    rows: list[Row] = []
    points: dict[str, list[tuple[float | str, float]]] = {}
    SCRATCH.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=SCRATCH) as folder,
        running_kafka(Path(folder) / "kafka") as kafka,
    ):
        _measure(kafka, Case("warm", 3, linger_ms=0), warm)
        for shards in size.of(SHARDS, SHARDS[:1]):
            works = {each.name: partial(_measure, kafka, each, load) for each in _cases(shards)}
            found = interleaved(size.of(ROUNDS, 1), works)
            rows += _rows(shards, found)
            for name, runs in found.items():
                mean = sum(each.mean() for each in runs) / len(runs)
                points.setdefault(name, []).append((f"{shards} topics", mean))
    chart = Chart(
        title="Append latency over Kafka (figure 15)",
        x="shards",
        y="mean append latency, ms",
        lines=[Line(name, each) for name, each in points.items()],
        log_y=True,
    )
    return Found(rows, [chart], _notes(load))


def _cases(shards: int) -> Sequence[Case]:
    return (
        Case("Kafka, linger 0", shards, linger_ms=0),
        Case(f"Kafka, linger {LINGER_MS} ms", shards, linger_ms=LINGER_MS),
        Case("Erwin, memory", shards, durability="memory"),
        Case("Erwin, fsync", shards, durability="fsync"),
    )


def _rows(shards: int, found: dict[str, list[Latencies]]) -> list[Row]:
    """At the same durability, memory, Kafka's latency is to be so many times Erwin's."""
    rows: list[Row] = []
    figures: tuple[tuple[str, Callable[[Latencies], float]], ...] = (
        ("mean", Latencies.mean),
        ("p99", Latencies.p99),
    )
    topics = f"{shards} topic" + ("s" if shards > 1 else "")
    for what, pick in figures:
        for kafkas in (name for name in found if name.startswith("Kafka")):
            for ours in (name for name in found if name.startswith("Erwin")):
                barred = what == "mean" and ours == "Erwin, memory"
                rows.append(
                    versus(
                        f"{topics}: append, {what}: {kafkas}, over {ours}",
                        list(map(pick, found[kafkas])),
                        "ms",
                        ours,
                        list(map(pick, found[ours])),
                        at_least=BAR if barred else None,
                    )
                )
    return rows


def _measure(kafka: Kafka, case: Case, load: Load) -> Latencies:
    """On new topics."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if case.linger_ms is not None:
            return runner.run(_measured(_producers(kafka, case, load), load))
        with server.running(memory=case.durability == "memory") as process:
            return runner.run(_measured(_erwin(kafka, process, case, load), load))


async def _measured(clients: "AsyncGenerator[list[MeasuredClient]]", load: Load) -> Latencies:
    async with asynccontextmanager(lambda: clients)() as made:
        return await Run(made, load, _nothing_counted).measured()


def _nothing_counted() -> Usage:
    """Kafka's threads serve both systems."""
    return Usage(0, 0.0, 0.0)


async def _producers(kafka: Kafka, case: Case, load: Load) -> AsyncGenerator[list[MeasuredClient]]:
    topics = [f"plain-{next(_NUMBERS)}" for _ in range(case.shards)]
    for topic in topics:
        await asyncio.to_thread(kafka.create, topic)
    async with AsyncExitStack() as stack:
        made: list[MeasuredClient] = []
        for topic in islice(cycle(topics), load.clients):
            producer = AIOKafkaProducer(
                bootstrap_servers=kafka.address, acks="all", linger_ms=case.linger_ms or 0
            )
            await producer.start()
            stack.push_async_callback(producer.stop)
            made.append(KafkaClient(producer, topic, load.record_bytes))
        yield made


async def _erwin(
    kafka: Kafka, process: server.Server, case: Case, load: Load
) -> AsyncGenerator[list[MeasuredClient]]:
    """Each client with connections of its own; one server on the machine of Kafka."""
    url = f"kafka://{kafka.address}/erwin-{next(_NUMBERS)}"
    async with AsyncExitStack() as stack:
        made: list[MeasuredClient] = []
        for _ in range(load.clients):
            service = await stack.enter_async_context(aio.connect(process.url))
            log = await service.ensure(
                "audit",
                engine="erwin",
                shards=case.shards,
                durability="memory" if case.durability == "memory" else "fsync",
                black_box=url,
            )
            made.append(OrderedClient(log, load.record_bytes))
            # Appends are taken as soon as the topics are there.
            await log.append_sync(b"", timeout=60)
        yield made


_NUMBERS = iter(range(1 << 30))


def _notes(load: Load) -> list[str]:
    durability = (
        "one Kafka broker, acks=all: an append is acknowledged from its page cache. `memory` of "
        "Erwin is the same promise: one sequencer, in the memory of one process. `fsync` "
        "syncs first"
    )
    how = (
        f"{load.clients} clients, each with connections of its own and one append of "
        f"{load.record_bytes} bytes under way, at most {load.rate:g} appends/s each; Kafka was "
        f"warmed for {WARM.run_s:g} s; Python clients on loopback, aiokafka and ours, on two cores"
    )
    paper = (
        "the paper: three orders of magnitude. Linger 0 is Kafka at its fastest, with nothing that "
        f"waits for a batch; {LINGER_MS} ms is what its own producers wait from version 4 on"
    )
    order = "Kafka's topics have no order among them; the Erwin log over them has one"
    return [durability, how, paper, order]
