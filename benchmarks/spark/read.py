"""Measures reading a log into Spark: the JVM, its Python workers and decoding included."""

from functools import partial

from pyspark.sql import DataFrame, SparkSession

from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.server import Server, running
from benchmarks.size import Size
from benchmarks.spark import session
from benchmarks.spark.records import Shape, fill
from benchmarks.spark.session import Cost
from benchmarks.timing import interleaved

SHAPES = (
    (Shape("1 KB", 1_008, 800_000_000), 350),
    (Shape("100 B", 100, 400_000_000), 200),
    (Shape("1 KB, zstd", 1_008, 800_000_000, "zstd"), 250),
)
"""Each with its bar: MB of keys and values read in a second of the processor."""
ROUNDS = 5


def run(size: Size) -> Found:
    rounds = size.of(ROUNDS, 1)
    with running() as server, session.running() as spark:
        sizes: dict[str, int] = {}
        for shape, _ in SHAPES:
            sizes[shape.name] = _filled(server, size.of(shape, shape.small()))
        works = {
            shape.name: partial(session.cost, partial(_touch, spark, server, shape, sizes))
            for shape, _ in SHAPES
        }
        # A session's first queries are several times slower: the JVM compiles what they run.
        interleaved(size.of(2, 1), works)
        found = interleaved(rounds, works)
    rows = [each for shape, bar in SHAPES for each in _rows(shape, bar, sizes, found[shape.name])]
    bars = [(each.what, each.value) for each in rows if each.unit == "MB/CPU-s"]
    chart = Chart(
        title="Records read into Spark, for each second of the processor",
        x="",
        y="MB of keys and values",
        lines=[Line("read and touch", list(bars))],
    )
    notes = [
        "Batches of 256 KiB on a folder; objects are in the page cache, so that no store is in it.",
        "The processor's time is that of the JVM and its Python workers. The server is apart.",
    ]
    return Found(rows, [chart], notes)


def _rows(shape: Shape, bar: int, sizes: dict[str, int], costs: list[Cost]) -> list[Row]:
    megabytes = sizes[shape.name] / 1e6
    return [
        row(
            f"{shape.name}: read and touched",
            [megabytes / each.cpu_s for each in costs],
            "MB/CPU-s",
            at_least=bar,
        ),
        row(f"{shape.name}: by the clock", [megabytes / each.clock_s for each in costs], "MB/s"),
    ]


def _filled(server: Server, shape: Shape) -> int:
    with server.connect() as service:
        return fill(service.create(shape.log), shape)[1]


def _touch(spark: SparkSession, server: Server, shape: Shape, sizes: dict[str, int]) -> None:
    found = session.touched(scan(spark, server, shape))
    if found != sizes[shape.name]:
        raise AssertionError(f"{found} bytes were read, not {sizes[shape.name]}")


def scan(spark: SparkSession, server: Server, shape: Shape) -> DataFrame:
    reader = spark.read.format("anabranch").option("service", server.url)
    return reader.option("log", shape.log).option("columns", "key,value,timestamp").load()
