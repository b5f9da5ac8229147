"""Appends over HTTP beside the frames', and what FastAPI and uvicorn have of it."""

import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from benchmarks.append_frames import SHAPES
from benchmarks.http_load import Asked, ask
from benchmarks.load import Done, put
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.server import cpu_s, running
from benchmarks.size import Size

FRAMES, HTTP = "4 KiB over the frames", "4 KiB over HTTP"
BARE, FASTAPI = "the same request to a bare ASGI app on uvicorn", "to a FastAPI route on uvicorn"

Measured = tuple[Done, float]
"""And what the server took of the CPU for each, in us."""


def run(size: Size) -> Found:
    rounds, appends, requests = size.of((5, 600, 120), (1, 8, 4))
    with ExitStack() as stack:
        server = stack.enter_context(running(http=True))
        service = stack.enter_context(server.connect())
        log = service.create("orders")
        plan = replace(SHAPES[0].plan, port=server.port, log=log.id, appends=appends)
        asked = Asked(
            port=server.http_port,
            path="/v1/logs/orders/records",
            connections=plan.connections,
            requests=requests,
            body_bytes=plan.value_bytes,
        )
        bare = stack.enter_context(_floor("asgi"))
        framed = stack.enter_context(_floor("fastapi"))
        works: dict[str, Callable[[], Measured]] = {
            FRAMES: partial(_measured, server.pid, partial(put, plan)),
            HTTP: partial(_measured, server.pid, partial(ask, asked)),
            BARE: partial(_measured, bare[0], partial(ask, replace(asked, port=bare[1]))),
            FASTAPI: partial(_measured, framed[0], partial(ask, replace(asked, port=framed[1]))),
        }
        found = {name: [work() for _ in range(rounds)] for name, work in works.items()}
    rates = {n: [each.appends / each.seconds for each, _ in done] for n, done in found.items()}
    cpu = {name: [us for _, us in done] for name, done in found.items()}
    rows: list[Row] = []
    for name in works:
        rows.append(row(f"{name}, 64 clients", rates[name], "1/s"))
        rows.append(row("  p50", [each.p50_ms for each, _ in found[name]], "ms"))
        rows.append(row("  p99", [each.p99_ms for each, _ in found[name]], "ms"))
        rows.append(row("  CPU of the server", cpu[name], "us/append"))
    what = "an append over HTTP, CPU of the server"
    if not size.smoke:
        rows.append(versus(what, cpu[HTTP], "us", "one over the frames", cpu[FRAMES]))
        extra = [framed - bare for framed, bare in zip(cpu[FASTAPI], cpu[BARE], strict=True)]
        rows.append(row("of which is FastAPI itself", extra, "us"))
    bars = [(name, median(rates[name])) for name in works]
    chart = Chart(
        title="4 KiB appends by 64 clients, one in flight each",
        x="",
        y="requests a second",
        lines=[
            Line("requests", [(short, rate) for (_, rate), short in zip(bars, _SHORT, strict=True)])
        ],
    )
    return Found(rows, [chart])


_SHORT = ("frames", "HTTP", "bare ASGI\n(appends nothing)", "bare FastAPI\n(appends nothing)")


def _measured(pid: int, work: Callable[[], Done]) -> Measured:
    before = cpu_s(pid)
    done = work()
    return done, (cpu_s(pid) - before) / done.appends * 1e6


@contextmanager
def _floor(kind: str) -> Generator[tuple[int, int]]:
    """Its process and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.http_floor", kind],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()
