"""Lazy appends of a Bolt log beside direct ones, before a store of 100 ms a PUT (99%: 195 ms).

Both kinds of log are on one server, by turns. Latency is of one append at a time; end to end is
until a subscriber has the record. Throughput is of many appends at once, until all are in the log.
"""

import asyncio
import time
from statistics import median
from typing import Literal

from anabranch.client import aio
from anabranch.client.bolt.log import Log
from anabranch.client.session.records import Deliver
from anabranch.core.limits import KIB
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.server import running
from benchmarks.size import Size

PUT_MS = "100/195"
VALUE = bytes(KIB)
KINDS: tuple[Literal["direct", "fsync", "memory"], ...] = ("direct", "fsync", "memory")


async def _log(service: aio.Service, kind: Literal["direct", "fsync", "memory"]) -> Log:
    if kind == "direct":
        return await service.ensure(kind)
    return await service.ensure(kind, append="lazy", durability=kind)


async def _latency(log: Log, appends: int) -> tuple[list[float], list[float]]:
    """In ms, of each append: until it was acknowledged, and until a subscriber had it."""
    acknowledged: list[float] = []
    arrived: list[float] = []
    async with log.subscribe() as events:
        for _ in range(appends):
            began = time.perf_counter()
            await log.append(VALUE)
            acknowledged.append((time.perf_counter() - began) * 1e3)
            async for event in events:
                if isinstance(event, Deliver):
                    break
            arrived.append((time.perf_counter() - began) * 1e3)
    return acknowledged, arrived


async def _throughput(log: Log, records: int) -> float:
    """Records a second, until all are in the log."""
    began = time.perf_counter()
    done = await log.append_many(VALUE for _ in range(records))
    last = done[-1]
    if last.receipt is not None:
        await last.receipt.position()
    return records / (time.perf_counter() - began)


async def _measure(url: str, size: Size) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {
        kind: {"acknowledged": [], "arrived": [], "rate": []} for kind in KINDS
    }
    async with aio.connect(url) as service:
        for kind in KINDS:
            await (await _log(service, kind)).append(VALUE)
        for _ in range(size.of(5, 2)):
            for kind in KINDS:
                log = await _log(service, kind)
                acknowledged, arrived = await _latency(log, size.of(20, 3))
                rates = found[kind]
                rates["acknowledged"].append(median(acknowledged))
                rates["arrived"].append(median(arrived))
                rates["rate"].append(await _throughput(log, size.of(20_000, 500)))
    return found


def run(size: Size) -> Found:
    with running(put_ms=PUT_MS) as server:
        found = asyncio.run(_measure(server.url, size))
    direct = found["direct"]
    rows: list[Row] = [
        row("append to a direct log, acknowledged", direct["acknowledged"], "ms"),
        row("append to a direct log, at a subscriber", direct["arrived"], "ms"),
        row("appends to a direct log", direct["rate"], "records/s"),
    ]
    for kind, most in (("memory", 2.0), ("fsync", None)):
        of = found[kind]
        what = f"to a lazy log ({kind})"
        rows.append(row(f"append {what}, acknowledged", of["acknowledged"], "ms", at_most=most))
        rows.append(
            versus(
                f"append {what}, at a subscriber",
                of["arrived"],
                "ms",
                "a direct log",
                direct["arrived"],
                at_most=1.1,
            )
        )
        rows.append(
            versus(
                f"appends {what}",
                of["rate"],
                "records/s",
                "a direct log",
                direct["rate"],
                at_least=0.9,
            )
        )
    chart = Chart(
        title="One append before a store of 100 ms a PUT",
        x="",
        y="ms until acknowledged",
        lines=[Line("append", [(kind, median(found[kind]["acknowledged"])) for kind in KINDS])],
    )
    return Found(rows, [chart])
