"""Figure 10: a reader that looks from time to time, and reads all that there is by then."""

import asyncio
from functools import partial
from statistics import median

from benchmarks.erwin.compare import ROUNDS
from benchmarks.erwin.deployment import Deployment, Setting, running
from benchmarks.erwin.workload import (
    ErwinClient,
    Latencies,
    Load,
    Run,
    clients,
    count_reads,
    on_loop,
)
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size
from benchmarks.timing import interleaved, now

SETTING = Setting(delay_us=500, copies=2)
LOAD = Load(clients=4, rate=50.0)
PERIODS_MS = (2, 10, 50, 250)
MS = 1e6


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    periods = size.of(PERIODS_MS, PERIODS_MS[:2])
    found = interleaved(count, {str(each): partial(_once, each) for each in periods})
    rows: list[Row] = []
    for period, runs in found.items():
        rows += [
            row(f"every {period} ms: a record's part of a read", _means(runs), "ms"),
            row(
                f"every {period} ms: requests that waited or came too early",
                [100 * each.slow_share() for each in runs],
                "%",
            ),
        ]
    points = [(float(period), median(_means(runs))) for period, runs in found.items()]
    chart = Chart(
        title="Periodic reads (figure 10)",
        x="ms between reads",
        y="ms of reading, by record",
        lines=[Line(f"{LOAD.clients * LOAD.rate:g} appends/s", points)],
    )
    how = (
        f"one shard of {SETTING.copies} replicas, 3 sequencers, durability {SETTING.durability}, "
        f"{SETTING.delay_us} us one way; {LOAD.clients * LOAD.rate:g} appends/s; the reader asks "
        f"for the tail and reads up to it, and the time of that is shared by the records that it "
        f"read; {count} rounds by turns"
    )
    paper = "the paper: low at long intervals; at short ones many reads wait for the order"
    return Found(rows, [chart], [how, paper])


def _means(runs: list[Latencies]) -> list[float]:
    return [each.read_mean() for each in runs]


def _once(period_ms: int) -> Latencies:
    with running(SETTING) as deployment:
        found = on_loop(_looked(deployment, period_ms))
        count_reads(deployment, found)
        return found


async def _looked(deployment: Deployment, period_ms: int) -> Latencies:
    async with clients(deployment, LOAD.clients + 1, LOAD.record_bytes) as (reader, *appenders):
        assert isinstance(reader, ErwinClient)
        run = Run(appenders, LOAD, deployment.used)
        reading = asyncio.create_task(_look(reader, period_ms / 1_000, run))
        found = await run.measured()
        reading.cancel()
        return found


async def _look(reader: ErwinClient, period_s: float, run: Run) -> None:
    position = await reader.tail()
    while True:
        await asyncio.sleep(period_s)
        begun = now()
        tail = await reader.tail()
        count = tail - position
        if count:
            async for portion in reader.log.portions(position, count):
                position += len(portion)
            if begun >= run.begins:
                run.found.read.append((now() - begun) / MS / count)
