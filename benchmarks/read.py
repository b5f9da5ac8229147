"""Reads through the client, every checksum verified, records not decoded."""

import asyncio
from statistics import median

from anabranch.client import aio
from anabranch.client.bolt.log import Log
from benchmarks.append_frames import SHAPES
from benchmarks.load import put
from benchmarks.report import Chart, Found, Line, row
from benchmarks.server import Server, running
from benchmarks.size import Size
from benchmarks.timing import now

_NAMES = ("4 KiB records, one a batch", "256 B records, one a batch", "batches of 64 KiB")


def run(size: Size) -> Found:
    import uvloop
    from msgspec.structs import replace

    rounds = size.of(9, 2)
    rates: dict[str, list[float]] = {name: [] for name in _NAMES}
    with running() as server:
        with server.connect() as service:
            for name, shape in zip(_NAMES, SHAPES, strict=True):
                log = service.create(name.replace(" ", "-").replace(",", ""))
                appends = size.of(shape.plan.appends, 8)
                put(replace(shape.plan, port=server.port, log=log.id, appends=appends))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            for _ in range(rounds):
                for name in _NAMES:
                    rates[name].append(runner.run(_read(server, name)))
    rows = [
        row(
            f"read of {name}",
            rates[name],
            "MB/s",
            at_least=400 if name == _NAMES[-1] else None,
        )
        for name in _NAMES
    ]
    bars = [(name, median(rates[name])) for name in _NAMES]
    chart = Chart(
        title="Reads through the client, checksums verified",
        x="",
        y="MB/s",
        lines=[Line("read", list(bars))],
    )
    return Found(rows, [chart])


async def _read(server: Server, name: str) -> float:
    """MB a second, over the whole log."""
    async with aio.connect(server.url) as service:
        log = await service.log(name.replace(" ", "-").replace(",", ""), engine="bolt")
        began = now()
        size = await _size(log)
        return size / (now() - began) * 1e3


async def _size(log: Log) -> int:
    size = 0
    async for page in log.pages():
        for batch in page:
            size += len(batch.raw)
    return size
