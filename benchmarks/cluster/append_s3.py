"""A durable append on the bucket beside one PUT of the same size, near and far.

Near is the S3 server on this machine. Far is the same behind a proxy that delays every request as
a store in the cloud does.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from statistics import median

from obstore import put_async

from anabranch.apps.processes.layout import Shape
from anabranch.client import aio
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.reads import Events
from anabranch.client.session.records import Deliver
from anabranch.core.limits import KIB, MIB, Limits
from anabranch.shell.objects.s3.clients import hot
from benchmarks.cluster.local import Cluster, Far, running
from benchmarks.cluster.slow_store import Latency
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size
from benchmarks.timing import now, percentile

FAR = Far(put=Latency(100, 195), get=Latency(63, 78))
SIZES = {"4 KiB": 4 * KIB, "64 KiB": 64 * KIB, "1 MiB": MIB - KIB}
_WARM = 2
OVER_MS = Limits().linger_ms


@dataclass(slots=True)
class _Times:
    """Milliseconds, turn by turn."""

    put: list[float] = field(default_factory=list[float])
    append: list[float] = field(default_factory=list[float])
    here: list[float] = field(default_factory=list[float])
    """To a subscriber of the log, at its broker."""
    there: list[float] = field(default_factory=list[float])
    """To a subscriber of a fork: another broker serves it, and gets the object for it."""


def run(size: Size) -> Found:
    near = _place(None, size.of(SIZES, {"4 KiB": 4 * KIB}), size.of(150, 3), size)
    few = {name: SIZES[name] for name in size.of(["4 KiB", "1 MiB"], ["4 KiB"])}
    far = _place(FAR, few, size.of(40, 3), size)
    rows: list[Row] = []
    for place, found in (("near", near), ("far", far)):
        for name, times in found.items():
            rows += _rows(f"{place}, {name}", times)
    charts = [_chart("near", near), _chart("far", far)]
    return Found(rows, charts, _NOTES)


def _place(far: Far | None, sizes: dict[str, int], each: int, size: Size) -> dict[str, _Times]:
    shape = Shape(brokers=2, metadata=size.of(3, 1))
    with running(shape, far=far) as cluster:
        return asyncio.run(_measured(cluster, sizes, each))


async def _measured(cluster: Cluster, sizes: dict[str, int], each: int) -> dict[str, _Times]:
    bucket, names = hot(cluster.bucket()), count()
    found: dict[str, _Times] = {}
    async with aio.connect(cluster.url, timeout=60) as service:
        for name, size in sizes.items():
            times = _Times()
            log = await service.create(f"appends-{size}")
            content = bytes(size)
            for turn in range(each + _WARM):
                if turn == _WARM:
                    times = found[name] = _Times()
                began = now()
                key = f"benchmark/{next(names)}"
                await put_async(bucket, key, content, mode="create", use_multipart=False)
                times.put.append(_ms_since(began))
                began = now()
                await log.append(content)
                times.append.append(_ms_since(began))
            # Not at the same time: what is delivered to this process keeps it from hearing.
            async with _subscribers(log) as (here, there):
                for _ in range(each):
                    await _delivered(log, content, times, here, there)
    return found


@asynccontextmanager
async def _subscribers(log: Log) -> AsyncIterator[tuple[Events, Events]]:
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(log.subscribe())
        fork = await log.cfork()
        there = await stack.enter_async_context(fork.subscribe())
        assert fork.description.address != log.description.address
        yield here, there
        await fork.squash()


async def _delivered(log: Log, content: bytes, times: _Times, here: Events, there: Events) -> None:
    began = now()

    async def heard(events: Events) -> float:
        while not isinstance(await anext(events), Deliver):
            pass
        return _ms_since(began)

    _, one, other = await asyncio.gather(log.append(content), heard(here), heard(there))
    times.here.append(one)
    times.there.append(other)


def _ms_since(began: int) -> float:
    return (now() - began) / 1e6


def _rows(what: str, times: _Times) -> list[Row]:
    put, append = _p50(times.put), _p50(times.append)
    return [
        row(f"{what}: one PUT, p50", put, "ms"),
        row("  p99", _p99(times.put), "ms"),
        row(f"{what}: durable append, p50", append, "ms"),
        row("  more than one PUT", append - put, "ms", at_most=OVER_MS),
        row("  p99", _p99(times.append), "ms"),
        row(f"{what}: end to end, at the log's broker, p50", _p50(times.here), "ms"),
        row("  p99", _p99(times.here), "ms"),
        row(f"{what}: end to end, through a fork at another broker, p50", _p50(times.there), "ms"),
        row("  p99", _p99(times.there), "ms"),
    ]


def _p50(times: list[float]) -> float:
    return median(times)


def _p99(times: list[float]) -> float:
    return percentile(sorted(times), 99)


def _chart(place: str, found: dict[str, _Times]) -> Chart:
    kinds = {
        "end to end, through a fork": lambda times: times.there,
        "end to end": lambda times: times.here,
        "durable append": lambda times: times.append,
        "one PUT": lambda times: times.put,
    }
    lines = [
        Line(kind, [(name, _p50(of(times))) for name, times in found.items()])
        for kind, of in kinds.items()
    ]
    return Chart(title=f"One append at a time, the bucket {place}", x="", y="p50, ms", lines=lines)


_NOTES = [
    "one append at a time, a PUT before each; linger as it is by default",
    (
        f"far: a PUT waits {FAR.put.p50_ms:g}/{FAR.put.p99_ms:g} ms, a GET {FAR.get.p50_ms:g}/"
        f"{FAR.get.p99_ms:g} ms (p50/p99), distributed log-normally"
    ),
    "the S3 server doesn't sync to its disk: only comparisons in one run mean anything",
]
