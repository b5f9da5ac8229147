"""Figure 11: a reader as fast as it can be, by how much is appended: a slow writer's reader waits
for the order, and behind a fast writer everything is ordered long before it is read.
"""

import asyncio
from functools import partial
from statistics import median

from msgspec.structs import replace

from benchmarks.erwin.compare import ROUNDS
from benchmarks.erwin.deployment import Deployment, Setting, running
from benchmarks.erwin.workload import (
    Latencies,
    Load,
    MeasuredClient,
    Run,
    clients,
    count_reads,
    on_loop,
)
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size
from benchmarks.timing import interleaved, now

SETTING = Setting(delay_us=1_000, copies=2)
LOAD = Load(clients=4)
RATES_S = (50, 100, 200, 400)
"""Appends of all clients."""
MS = 1e6


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    rates = size.of(RATES_S, RATES_S[:1])
    found = interleaved(count, {str(rate): partial(_once, rate) for rate in rates})
    rows: list[Row] = []
    for rate, runs in found.items():
        rows += [
            row(f"{rate} appends/s: reads that waited", [_percent(each) for each in runs], "%"),
            row(f"{rate} appends/s: read, mean", [each.read_mean() for each in runs], "ms"),
            row(
                f"{rate} appends/s: appends that were ordered together",
                [each.records_pushed for each in runs],
                "records",
            ),
        ]
    points = [(float(rate), median(map(_percent, runs))) for rate, runs in found.items()]
    chart = Chart(
        title="Reads that waited, by the rate of appends (figure 11)",
        x="appends/s",
        y="% of reads",
        lines=[Line("a reader as fast as it can be", points)],
    )
    how = (
        f"one shard of {SETTING.copies} replicas, 3 sequencers, durability {SETTING.durability}, "
        f"{SETTING.delay_us} us one way; {LOAD.clients} closed loops; one reader that reads record "
        f"after record, at most some 400 a second at this distance; {count} rounds by turns"
    )
    paper = (
        "the paper: the reader's limit is 37,000/s; at 5,000 appends/s nearly all reads wait, at "
        "45,000 none, and more is ordered at once"
    )
    return Found(rows, [chart], [how, paper])


def _percent(each: Latencies) -> float:
    return 100 * each.slow_share()


def _once(rate: int) -> Latencies:
    with running(SETTING) as deployment:
        found = on_loop(_followed(deployment, rate))
        count_reads(deployment, found)
        return found


async def _followed(deployment: Deployment, rate: int) -> Latencies:
    load = replace(LOAD, rate=rate / LOAD.clients)
    async with clients(deployment, load.clients + 1, load.record_bytes) as (reader, *appenders):
        run = Run(appenders, load, deployment.used)
        start = await reader.tail()
        reading = asyncio.create_task(_read(reader, start, run))
        found = await run.measured()
        reading.cancel()
        return found


async def _read(reader: MeasuredClient, position: int, run: Run) -> None:
    while True:
        begun = now()
        await reader.read(position)
        if begun >= run.begins:
            run.found.read.append((now() - begun) / MS)
        position += 1
