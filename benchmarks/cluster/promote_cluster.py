"""A promotion through the cluster, beside a copy of as many records through Kafka (paper: figure
11).
"""

import asyncio
from itertools import count
from pathlib import Path
from statistics import median

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from anabranch.apps.processes.layout import Shape
from anabranch.client import aio
from anabranch.core.records.record import Record, encode
from benchmarks import paper
from benchmarks.cluster.local import Cluster, running, scratch
from benchmarks.peers.kafka.server import Kafka
from benchmarks.peers.kafka.server import running as kafka_running
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size
from benchmarks.timing import now

VALUE = bytes(256)
BATCH = 100
BATCH_BYTES = 1 << 18
LINGER_MS = 5
TIMES = 100
"""The bar: so many times faster than the copy."""

_TEMPORARY, _MAIN = "temporary-{}", "main-{}"


def run(size: Size) -> Found:
    counts = size.of([100, 1_000, 10_000, 100_000], [100])
    with running(Shape(brokers=2, metadata=size.of(3, 1))) as cluster:
        promoted = asyncio.run(_promotions_us(cluster, counts, size.of(7, 1)))
    with scratch() as folder:
        copied = _copies_us(folder / "kafka", counts, size.of(3, 1))
    rows = []
    for records in counts:
        rows.append(row(f"promote of {records:,} records", promoted[records], "us"))
        took = median(promoted[records])
        at_least = TIMES if records == counts[-1] else None
        what = f"copy of {records:,} records through Kafka"
        each = copied[records]
        against = [took] * len(each)
        rows.append(versus(what, each, "us", "the promotion", against, at_least=at_least))
    lines = [
        Line("promote", [(n, median(promoted[n])) for n in counts]),
        Line("copy through Kafka", [(n, median(copied[n])) for n in counts]),
        Line("the paper's promote, about", [(n, paper.PROMOTE_US) for n in counts]),
    ]
    chart = Chart(
        title="A fork's records into its parent",
        x="records of the fork",
        y="microseconds",
        lines=lines,
        log_x=True,
        log_y=True,
    )
    return Found(rows, [chart], _NOTES)


async def _promotions_us(
    cluster: Cluster, counts: list[int], rounds: int
) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {records: [] for records in counts}
    async with aio.connect(cluster.url, timeout=60) as service:
        for turn in range(rounds):
            for records in counts:
                root = await service.create(f"root-{records}-{turn}")
                await root.append(VALUE)
                fork = await root.cfork(promotable=True)
                await asyncio.gather(*(fork.append_batch(each) for each in _batches(records)))
                began = now()
                done = await fork.promote(timeout=60)
                found[records].append((now() - began) / 1e3)
                assert done.records == records, (done, records)
    return found


def _batches(records: int) -> list[bytes]:
    batch = encode(
        [Record(VALUE)] * BATCH, producer_id=-1, producer_epoch=-1, base_sequence=-1, now=0
    )
    return [batch] * (records // BATCH)


def _copies_us(folder: Path, counts: list[int], rounds: int) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {records: [] for records in counts}
    names = count()
    with kafka_running(folder) as kafka:
        for _ in range(rounds):
            for records in counts:
                number = next(names)
                kafka.create(_TEMPORARY.format(number))
                kafka.create(_MAIN.format(number))
                found[records].append(asyncio.run(_copy_us(kafka, number, records)))
    return found


async def _copy_us(kafka: Kafka, number: int, records: int) -> float:
    """What an agent appended to a log of its own, read from it and appended to the main one."""
    temporary, main = _TEMPORARY.format(number), _MAIN.format(number)
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka.address,
        acks="all",
        linger_ms=LINGER_MS,
        max_batch_size=BATCH_BYTES,
    )
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.address, auto_offset_reset="earliest")
    await producer.start()
    await consumer.start()
    try:
        await asyncio.gather(*[await producer.send(temporary, VALUE) for _ in range(records)])
        await producer.send_and_wait(main, VALUE)
        consumer.assign([TopicPartition(temporary, 0)])
        began, left = now(), records
        sent: list[asyncio.Future[object]] = []
        while left:
            for found in (await consumer.getmany(timeout_ms=1_000)).values():
                sent += [await producer.send(main, record.value) for record in found]
                left -= len(found)
        await asyncio.gather(*sent)
        return (now() - began) / 1e3
    finally:
        await consumer.stop()
        await producer.stop()


_NOTES = [
    f"records of {len(VALUE)} B; the paper's have 4 KiB, which only a copy would feel",
    "the copy is aiokafka's: acks=all, no compression; Kafka acknowledges from the page cache",
]
