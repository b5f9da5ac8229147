"""Spark's own Kafka source beside ours, on the same records."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.peers.kafka.server import Kafka
from benchmarks.peers.kafka.server import running as running_kafka
from benchmarks.peers.spark_kafka import jars
from benchmarks.report import SCRATCH, Chart, Found, Line, versus
from benchmarks.server import Server, cpu_s, running
from benchmarks.size import Size
from benchmarks.spark import session
from benchmarks.spark.read import scan
from benchmarks.spark.records import Shape, fill, fill_kafka
from benchmarks.spark.session import Cost
from benchmarks.timing import interleaved

SHAPES = (Shape("1 KB", 1_008, 800_000_000), Shape("100 B", 100, 400_000_000))
ROUNDS = 5
TOUCH, PARQUET = "touch", "to Parquet"
BARS = {TOUCH: 0.6, PARQUET: 0.8}
"""Our clock time over the Kafka source's, at most."""


def run(size: Size) -> Found:
    SCRATCH.mkdir(exist_ok=True)
    found: dict[str, list[Cost]] = {}
    brokers: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(dir=SCRATCH) as folder,
        running_kafka(Path(folder) / "kafka") as kafka,
        running() as server,
        session.running(jars()) as spark,
    ):
        for shape in SHAPES:
            works = _works(spark, server, kafka, size.of(shape, shape.small()), Path(folder))
            interleaved(size.of(2, 1), works)
            began = cpu_s(server.pid), cpu_s(kafka.pid)
            found |= interleaved(size.of(ROUNDS, 1), works)
            brokers[f"{shape.name}: ours"] = cpu_s(server.pid) - began[0]
            brokers[f"{shape.name}: Kafka"] = cpu_s(kafka.pid) - began[1]
    rows = [
        versus(
            f"{shape.name}, {what}: {unit}",
            [pick(each) for each in found[f"{shape.name} {what} ours"]],
            "s",
            "Spark's Kafka source",
            [pick(each) for each in found[f"{shape.name} {what} Kafka"]],
            at_most=bar if unit == "clock" else None,
        )
        for shape in SHAPES
        for what, bar in BARS.items()
        for unit, pick in _FIGURES.items()
    ]
    spent = "; ".join(f"{name} {each:.1f} s" for name, each in brokers.items())
    clocks = [each for each in rows if each.what.endswith("clock")]
    lines = [
        Line("ours", [(each.what, each.value) for each in clocks]),
        Line("Kafka's", [(each.what, each.value / (each.ratio or 1)) for each in clocks]),
    ]
    chart = Chart(title="Time of a query", x="", y="s", lines=lines)
    notes = [
        "The same records in the same batches, in one log and in a topic of one partition.",
        f"Beside Spark, the servers took this much of the processor in all rounds: {spent}.",
    ]
    return Found(rows, [chart], notes)


_FIGURES: dict[str, Callable[[Cost], float]] = {
    "clock": lambda cost: cost.clock_s,
    "processor": lambda cost: cost.cpu_s,
}


def _works(
    spark: SparkSession, server: Server, kafka: Kafka, shape: Shape, folder: Path
) -> dict[str, Callable[[], Cost]]:
    with server.connect() as service:
        _, total = fill(service.create(shape.log), shape)
    topic = shape.log
    # The records' times are years ago.
    kafka.create(topic, **{"retention.ms": "-1"})
    asyncio.run(fill_kafka(kafka.address, topic, shape))
    frames = {
        "ours": partial(scan, spark, server, shape),
        "Kafka": partial(_kafka_scan, spark, kafka, topic),
    }
    out = folder / "parquet"
    works: dict[str, Callable[[], Cost]] = {}
    for name, frame in frames.items():
        label = f"{shape.name} {TOUCH} {name}"
        works[label] = partial(session.cost, partial(_touch, frame, total))
        label = f"{shape.name} {PARQUET} {name}"
        works[label] = partial(_timed_write, frame, out)
    return works


def _touch(frame: Callable[[], DataFrame], total: int) -> None:
    found = session.touched(frame())
    if found != total:
        raise AssertionError(f"{found} bytes were read, not {total}")


def _timed_write(frame: Callable[[], DataFrame], out: Path) -> Cost:
    """To an empty folder; what was written is removed before the next clock starts."""
    shutil.rmtree(out, ignore_errors=True)
    return session.cost(lambda: frame().write.parquet(str(out)))


def _kafka_scan(spark: SparkSession, kafka: Kafka, topic: str) -> DataFrame:
    """Read the topic with one task a core."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.address)
    reader = reader.option("subscribe", topic).option("minPartitions", "2")
    return reader.option("startingOffsets", "earliest").load().select("key", "value", "timestamp")
