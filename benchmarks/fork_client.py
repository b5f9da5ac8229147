"""A fork as a client has it, durable, beside one append of the same client."""

import asyncio
from statistics import median

from anabranch.client import aio
from anabranch.client.bolt.log import Log
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.server import running
from benchmarks.size import Size
from benchmarks.timing import now, percentile

VALUE = bytes(256)


def run(size: Size) -> Found:
    each, rounds = size.of((200, 9), (5, 2))
    with running() as server:
        found = asyncio.run(_measured(server.url, each, rounds, size.of(10_000, 20)))
    appends, cforks, sforks, promotable = found
    rows = [row("one append, p50", appends, "us")]
    for what, took in (
        ("one continuous fork, p50", cforks),
        ("one severed fork from a past position, p50", sforks),
        ("one promotable fork, p50", promotable),
    ):
        rows.append(versus(what, took, "us", "one append's p50", appends, at_most=2))
    names = ("append", "continuous fork", "severed fork", "promotable fork")
    bars = [(name, median(took)) for name, took in zip(names, found, strict=True)]
    chart = Chart(
        title="One call through the client on loopback, durable",
        x="",
        y="p50, microseconds",
        lines=[Line("p50", list(bars))],
    )
    return Found(rows, [chart])


async def _measured(url: str, each: int, rounds: int, records: int) -> list[list[float]]:
    """Medians of rounds, and in each round the four calls by turns."""
    found: list[list[float]] = [[], [], [], []]
    async with aio.connect(url) as service:
        log = await service.create("orders")
        await log.append_many([VALUE] * records)
        for _ in range(rounds):
            took: list[list[int]] = [[], [], [], []]
            for _ in range(each):
                for times, one in zip(took, await _turn(log), strict=True):
                    times.append(one)
            for medians, times in zip(found, took, strict=True):
                medians.append(percentile(sorted(times), 50) / 1e3)
    return found


async def _turn(log: Log) -> tuple[int, int, int, int]:
    """What each call took; forks are squashed, untimed."""
    began = now()
    await log.append(VALUE)
    appended = now()
    fork = await log.cfork()
    forked = now()
    await fork.squash()
    severing = now()
    severed = await log.sfork(past=10)
    cut = now()
    await severed.squash()
    promising = now()
    promotable = await log.cfork(promotable=True)
    promised = now()
    await promotable.squash()
    return appended - began, forked - appended, cut - severing, promised - promising
