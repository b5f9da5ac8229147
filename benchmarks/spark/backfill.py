"""A backfill beside producers: what Spark's scan of a log costs those who append to it."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from urllib.request import urlopen

import uvloop

from anabranch.client import aio
from benchmarks.cluster.cores import pin
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.server import Server, running
from benchmarks.size import Size
from benchmarks.spark import session
from benchmarks.spark.read import scan
from benchmarks.spark.records import Shape, fill
from benchmarks.timing import now, percentile

SHAPE = Shape("1 KB", 1_008, 800_000_000)
ROUNDS = 5
APPENDS = 1_500
PACE_S = 0.004
METRIC = "anabranch_broker_bytes_read_total"

# As Spark does, it keeps a core busy and reads memory; it asks nothing of the service or the disk.
_BURNER = """
import google_crc32c
content = bytes(4 << 20)
print(flush=True)
while True:
    google_crc32c.value(bytes(bytearray(content)))
"""


def run(size: Size) -> Found:
    shape = size.of(SHAPE, SHAPE.small())
    appends = size.of(APPENDS, 20)
    alone: list[float] = []
    beside: list[float] = []
    burning: list[float] = []
    through: list[float] = []
    with running(http=True) as server, session.running() as spark:
        # The service has a core of its own, as it has machines of its own.
        pin(server.pid, 0)
        pin(session.jvm(spark), 1)
        with server.connect() as service:
            fill(service.create(shape.log), shape)
        session.touched(scan(spark, server, shape))
        for _ in range(size.of(ROUNDS, 1)):
            alone.append(_p99(server, appends))
            before = _read_bytes(server)
            with _scanning(spark, server, shape):
                beside.append(_p99(server, appends))
            through.append(_read_bytes(server) - before)
            with _burning():
                burning.append(_p99(server, appends))
    rows = [
        row("data bytes that went through the broker", through, "bytes", at_most=0),
        versus("append, p99, while Spark reads the log", beside, "ms", "alone", alone, at_most=1.1),
        versus(
            "append, p99, while a process only burns Spark's core", burning, "ms", "alone", alone
        ),
        versus(
            "append, p99, while Spark reads the log, over that",
            beside,
            "ms",
            "burning the core",
            burning,
        ),
    ]
    lines = [
        Line("alone", list(enumerate(alone, 1))),
        Line("while Spark reads", list(enumerate(beside, 1))),
        Line("while Spark's core burns", list(enumerate(burning, 1))),
    ]
    chart = Chart(title="Appends beside a backfill", x="round", y="p99, ms", lines=lines)
    notes = [
        "The server runs on one core and Spark on the other; the disk is shared.",
        "Who appends is the benchmark itself, on whichever core is free: on two cores none is.",
    ]
    return Found(rows, [chart], notes)


@contextmanager
def _scanning(spark: "session.SparkSession", server: Server, shape: Shape) -> Generator[None]:
    """Scan again and again until the block ends."""
    enough = threading.Event()

    def scans() -> None:
        while not enough.is_set():
            session.touched(scan(spark, server, shape))

    thread = threading.Thread(target=scans)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@contextmanager
def _burning() -> Generator[None]:
    """Keep Spark's core busy until the block ends."""
    command = [sys.executable, "-c", _BURNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pin(process.pid, 1)
        try:
            yield
        finally:
            process.kill()


def _p99(server: Server, appends: int) -> float:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_paced(server, appends))


async def _paced(server: Server, appends: int) -> float:
    """ms; one append at a time at a steady pace, to another log than the one that is read."""
    took: list[float] = []
    async with aio.connect(server.url) as service:
        log = await service.ensure("beside")
        for _ in range(appends):
            began = now()
            await log.append(bytes(100))
            took.append((now() - began) / 1e6)
            await asyncio.sleep(PACE_S)
    return percentile(sorted(took), 99)


def _read_bytes(server: Server) -> float:
    """Bytes of records that the broker has sent to readers."""
    with urlopen(f"http://{server.http}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(METRIC)]
    if not values:
        raise AssertionError(f"there is no {METRIC}")
    return sum(values)
