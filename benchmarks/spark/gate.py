"""A gate over a fork of a million records, as a job of its own, and the memory of its workers."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder

import anabranch
from benchmarks.report import SCRATCH, Chart, Found, Line, row
from benchmarks.server import Server, running
from benchmarks.size import Size
from benchmarks.spark import session
from benchmarks.spark.processes import Peaks, watched
from benchmarks.spark.read import scan
from benchmarks.spark.records import Shape, fill

OWN, INHERITED = 1_000_000, 200_000
ROUNDS = 3
IN_A_BATCH = 2_000
SHAPES = (Shape("1 KB", 1_008, 800_000_000), Shape("100 B", 100, 400_000_000))
_SEED = 7
EXPECTATIONS = """\
version: 1
value:
  format: json
  schema: "id bigint, user string, item string, price double, at timestamp"
expectations:
  - {name: there is something to promote, expect: row_count, min: 1}
  - {name: prices are sound, expect: range, column: price, min: 0, max: 1000}
  - {name: users are named, expect: not_null, column: user}
  - {name: items are known, expect: in, column: item, values: [apple, pear, plum, fig]}
  - {name: users look like users, expect: regex, column: user, pattern: "^user-[0-9]+$"}
  - {name: ids are new, expect: unique, columns: [id]}
"""


class Judged(NamedTuple):
    """One run of the job."""

    clock_s: float
    cpu_s: float
    """Of the JVM and its Python workers."""
    worker_mb: float


def run(size: Size) -> Found:
    own, inherited = size.of(OWN, 4_000), size.of(INHERITED, 2_000)
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder, running() as server:
        expectations = Path(folder) / "orders.yaml"
        expectations.write_text(EXPECTATIONS, encoding="utf-8")
        with server.connect() as service:
            orders = service.create("orders")
            _fill(orders, 0, inherited)
            fork = orders.cfork("import", promotable=True)
            _fill(fork, inherited, own)
        found = [_judged(server, fork.name, expectations) for _ in range(size.of(ROUNDS, 1))]
        memory = _memory_of_scans(server, size)
    clocks = [each.clock_s for each in found]
    rows = [
        row(f"a fork of {own:,} records judged, by the clock", clocks, "s", at_most=45),
        row("the same, of the processor", [each.cpu_s for each in found], "s"),
        row("a Python worker of the gate, at its peak", [each.worker_mb for each in found], "MB"),
        *(
            row(f"a Python worker that reads {name}, at its peak", peak, "MB", at_most=256)
            for name, peak in memory.items()
        ),
    ]
    chart = Chart(
        title=f"A gate on {own:,} records",
        x="round",
        y="s",
        lines=[Line("start to exit", list(enumerate(clocks, 1)))],
    )
    notes = [
        "The job is a process of its own, from its start to its exit, Java and session included.",
        f"One of its six expectations is judged over {inherited:,} inherited records, too.",
    ]
    return Found(rows, [chart], notes)


def _judged(server: Server, fork: str, expectations: Path) -> Judged:
    command = [sys.executable, "-m", "anabranch_spark.gate", str(expectations), "--log", fork]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--service", server.url, "--master", "local[2]"],
        env={**os.environ, "SPARK_LOCAL_DIRS": str(SCRATCH / "spark")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with watched(process.pid) as peaks:
        _, said = process.communicate()
    if process.returncode:
        raise AssertionError(said[-2_000:])
    return Judged(time.perf_counter() - began, peaks.cpu_s, peaks.largest_mb)


def _memory_of_scans(server: Server, size: Size) -> dict[str, float]:
    """Megabytes that the largest worker had, for each size of record in a session of its own."""
    found: dict[str, float] = {}
    for each in SHAPES:
        shape = size.of(each, each.small())
        with server.connect() as service:
            fill(service.create(shape.log), shape)
        with session.running() as spark:
            peaks = Peaks()
            for _ in range(size.of(3, 1)):
                session.touched(scan(spark, server, shape))
                peaks.look(session.jvm(spark))
            if not peaks.workers:
                raise AssertionError("no Python worker was seen")
        found[shape.name] = peaks.largest_mb
    return found


def _fill(log: anabranch.Log, first: int, count: int) -> None:
    for start in range(first, first + count, IN_A_BATCH):
        log.append_batch(_batch(start, min(IN_A_BATCH, first + count - start)))


def _batch(first: int, count: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, value in enumerate(_values(first, count)):
        builder.append(offset, 1_700_000_000_000 + first + offset, None, value, headers=[])
    return bytes(builder.build())


def _values(first: int, count: int) -> Iterator[bytes]:
    chance = random.Random(_SEED + first)
    for number in range(first, first + count):
        order = {
            "id": number,
            "user": f"user-{chance.randrange(100_000)}",
            "item": chance.choice(("apple", "pear", "plum", "fig")),
            "price": chance.randrange(100_000) / 100,
            "at": f"2026-11-20T10:{number // 60 % 60:02}:{number % 60:02}Z",
        }
        yield json.dumps(order).encode()
