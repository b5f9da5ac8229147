"""Planning a scan of very many extents, as Spark's driver does it."""

import asyncio
import subprocess
import sys

import msgspec
import uvloop

from anabranch.client import aio
from benchmarks.report import Chart, Found, Line, row
from benchmarks.server import Server, running
from benchmarks.size import Size

EXTENTS = 100_000
ROUNDS = 5
LOG = "many"

# In a process of its own, as Spark has it: the peak of its memory is the plan's.
_DRIVER = """
import json, resource, sys, time
from pyspark.sql.types import BinaryType, StructField, StructType
from anabranch_spark.source.batch_reader import batch_reader
schema = StructType([StructField(name, BinaryType()) for name in ("key", "value")])
options = {"service": sys.argv[1], "log": sys.argv[2], "partitionBytes": "4096"}
reader = batch_reader(options, schema)
began = time.perf_counter()
parts = reader.partitions()
took = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"took_s": took, "peak": peak, "parts": len(parts)}))
"""


class Planned(msgspec.Struct):
    took_s: float
    peak: int
    """Kilobytes of the whole process, pyspark and all."""
    parts: int


def run(size: Size) -> Found:
    extents = size.of(EXTENTS, 50)
    with running(memory=True) as server:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_fill(server, extents))
        found = [_planned(server) for _ in range(size.of(ROUNDS, 1))]
    megabytes = [each.peak / 1024 for each in found]
    times = [each.took_s for each in found]
    rows = [
        row(f"a plan of {extents:,} extents", times, "s", at_most=1),
        row("the process that plans, at its peak", megabytes, "MB", at_most=200),
        row("partitions", [each.parts for each in found], "partitions"),
    ]
    chart = Chart(
        title=f"Planning a scan of {extents:,} extents",
        x="round",
        y="s",
        lines=[Line("plan", list(enumerate(times, 1)))],
    )
    return Found(rows, [chart])


async def _fill(server: Server, extents: int) -> None:
    """One append after the other: each is in an object of its own, and so is an extent."""
    async with aio.connect(server.url) as service:
        log = await service.create(LOG)
        for _ in range(extents):
            await log.append(b"x")


def _planned(server: Server) -> Planned:
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, server.url, LOG], check=True, capture_output=True
    )
    return msgspec.json.decode(done.stdout, type=Planned)
