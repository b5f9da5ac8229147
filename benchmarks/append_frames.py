"""Appends over the binary frames: durable, one server process, load from another."""

import asyncio
from dataclasses import dataclass
from statistics import median

import msgspec

from anabranch.client import aio
from benchmarks.load import Done, Plan, put
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.server import Server, running
from benchmarks.size import Size

KIB = 1024


@dataclass(frozen=True, slots=True)
class _Shape:
    name: str
    plan: Plan
    at_least: float
    unit: str


_NOWHERE = Plan(port=0, log=0, connections=1, in_flight=1, appends=1, value_bytes=0)


def _shape(name: str, at_least: float, unit: str, **changes: int) -> _Shape:
    return _Shape(name, msgspec.structs.replace(_NOWHERE, **changes), at_least, unit)


SHAPES = (
    _shape(
        "4 KiB records, one an append, 64 clients with one in flight",
        25_000,
        "appends/s",
        connections=64,
        in_flight=1,
        appends=1_000,
        value_bytes=4 * KIB,
    ),
    _shape(
        "256 B records, one an append, pipelined: 4 clients with 512 in flight",
        150_000,
        "appends/s",
        connections=4,
        in_flight=512,
        appends=75_000,
        value_bytes=256,
    ),
    _shape(
        "batches of 64 KiB: 4 clients with 8 in flight",
        250,
        "MB/s",
        connections=4,
        in_flight=8,
        appends=1_500,
        value_bytes=4 * KIB - 16,
        records=16,
    ),
)


def run(size: Size) -> Found:
    rounds = size.of(7, 1)
    rows: list[Row] = []
    with running() as server:
        found = _rounds(server, rounds, size)
        coalesced = [_through_client(server, turn, size) for turn in range(rounds)]
    for shape, done in zip(SHAPES, found, strict=True):
        rates = [_rate(shape, each) for each, _ in done]
        rows.append(row(shape.name, rates, shape.unit, at_least=shape.at_least))
        rows.append(row("  p50", [each.p50_ms for each, _ in done], "ms"))
        rows.append(row("  p99", [each.p99_ms for each, _ in done], "ms"))
        rows.append(row("  CPU of the server", [us for _, us in done], "us/append"))
    what = "256 B records, pipelined through our client, which gathers them into batches"
    rows.append(row(what, coalesced, "records/s", at_least=150_000))
    return Found(rows, [_chart(found), _latencies(found)])


def _rounds(server: Server, rounds: int, size: Size) -> list[list[tuple[Done, float]]]:
    """Each shape by turns, on a log of its own each time; the first round only warms."""
    found: list[list[tuple[Done, float]]] = [[] for _ in SHAPES]
    with server.connect() as service:
        for turn in range(rounds + 1):
            for number, shape in enumerate(SHAPES):
                log = service.create(f"appends-{number}-{turn}")
                plan = msgspec.structs.replace(shape.plan, port=server.port, log=log.id)
                if size.smoke or not turn:
                    plan = msgspec.structs.replace(plan, appends=size.of(plan.appends // 8, 8))
                before = server.cpu_s()
                done = put(plan)
                used = (server.cpu_s() - before) / done.appends * 1e6
                if turn:
                    found[number].append((done, used))
    return found


def _through_client(server: Server, turn: int, size: Size) -> float:
    """Records a second of one client that never waits before the next."""
    records = size.of(200_000, 100)

    async def work() -> float:
        async with aio.connect(server.url) as service:
            log = await service.create(f"gathered-{turn}")
            values = [bytes(256)] * records
            return await _timed(log, values)

    async def _timed(log: aio.Log, values: list[bytes]) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await log.append_many(values)
        return len(values) / (loop.time() - began)

    return asyncio.run(work())


def _rate(shape: _Shape, done: Done) -> float:
    per_s = done.appends / done.seconds
    return done.bytes / done.seconds / 1e6 if shape.unit == "MB/s" else per_s


def _chart(found: list[list[tuple[Done, float]]]) -> Chart:
    shares = [
        (name, median(_rate(shape, each) for each, _ in done) / shape.at_least * 100)
        for name, shape, done in zip(_SHORT, SHAPES, found, strict=True)
    ]
    return Chart(
        title="Durable appends over the binary frames",
        x="",
        y="% of the bar",
        lines=[Line("reached", list(shares))],
    )


_SHORT = ("4 KiB, 64 clients", "256 B, pipelined", "64 KiB batches")


def _latencies(found: list[list[tuple[Done, float]]]) -> Chart:
    named = list(zip(_SHORT, found, strict=True))
    p50 = [(name, median(each.p50_ms for each, _ in done)) for name, done in named]
    p99 = [(name, median(each.p99_ms for each, _ in done)) for name, done in named]
    return Chart(
        title="and their latencies",
        x="",
        y="ms",
        lines=[Line("p99", list(p99)), Line("p50", list(p50))],
    )
