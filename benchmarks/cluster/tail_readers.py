"""What readers at the tail of one log cost in GETs: many of one object should cost one."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

from anabranch.apps.processes.layout import Shape
from anabranch.client import aio
from anabranch.client.bolt.log import Log
from anabranch.client.session.records import Deliver
from benchmarks.cluster.local import Cluster, counted, running
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size

READERS = 20
VALUE = bytes(4_096)
GETS_MAX = 1.1
"""Of each object, in all."""


def run(size: Size) -> Found:
    appends, rounds = size.of((300, 3), (20, 1))
    rows: list[Row] = []
    lines: list[Line] = []
    uncompacted = {"ANABRANCH_COMPACT_EXTENTS_MIN": "0"}
    with running(Shape(brokers=2, metadata=size.of(3, 1)), uncompacted) as cluster:
        found = asyncio.run(_measured(cluster, appends, rounds))
    for where, gets in found.items():
        rows.append(row(f"{READERS} readers {where}", gets, "GETs", at_most=GETS_MAX))
        lines.append(Line(where, [(float(turn), each) for turn, each in enumerate(gets, 1)]))
    chart = Chart(
        title=f"{READERS} readers at the tail of one log",
        x="round",
        y="GETs an object",
        lines=lines,
    )
    notes = [
        f"GETs of all brokers over objects put; each reader got all {appends:,} appends",
        "compaction, which reads what the rounds before have written, is off",
    ]
    return Found(rows, [chart], notes)


async def _measured(cluster: Cluster, appends: int, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    async with AsyncExitStack() as stack:
        for where, forked in _WHERE.items():
            found[where] = []
            for turn in range(rounds):
                writer = await stack.enter_async_context(aio.connect(cluster.url, timeout=60))
                log = await writer.create(f"log-{forked:d}-{turn}")
                read = await log.cfork() if forked else log
                found[where].append(await _gets(cluster, log, read, appends))
    return found


_WHERE = {"of the log, at its broker": False, "of a fork, at another broker": True}


async def _gets(cluster: Cluster, log: Log, read: Log, appends: int) -> float:
    """For each object that was put while they read."""
    async with AsyncExitStack() as stack:
        services = [
            await stack.enter_async_context(aio.connect(cluster.url, timeout=60))
            for _ in range(READERS)
        ]
        logs = [await service.log(read.name, engine="bolt") for service in services]
        before = await asyncio.to_thread(_counted, cluster)
        readers = [asyncio.create_task(_read(each, appends)) for each in logs]
        for _ in range(appends):
            await log.append(VALUE)
        await asyncio.gather(*readers)
        after = await asyncio.to_thread(_counted, cluster)
    gets, puts = (b - a for a, b in zip(before, after, strict=True))
    return gets / puts


async def _read(log: Log, count: int) -> None:
    got = 0
    async with log.subscribe(0) as events:
        async for event in events:
            got += isinstance(event, Deliver)
            if got == count:
                return


def _counted(cluster: Cluster) -> tuple[float, float]:
    """GETs and PUTs of all brokers, as they ask the store."""
    found = list(_each(cluster))
    return sum(gets for gets, _ in found), sum(puts for _, puts in found)


def _each(cluster: Cluster) -> Iterator[tuple[float, float]]:
    for broker in cluster.local.brokers:
        numbers = counted(broker)
        yield numbers["s3_gets"], numbers["broker_puts"]
