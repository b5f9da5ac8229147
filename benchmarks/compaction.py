"""A scan of a log of many small extents, each in an object of its own, before and after they were
copied together.
"""

import asyncio
import re
import shutil
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median

from anabranch.client import aio
from benchmarks.load import Plan, put
from benchmarks.report import SCRATCH, Chart, Found, Line, row, versus
from benchmarks.server import Server, running
from benchmarks.size import Size
from benchmarks.timing import now

VALUE_BYTES = 256
OFF = {"compact_extents_min": 0}
COLD = {"cache_bytes": 1}
"""Every extent comes from the store."""
ON = {"compact_age_ms": 0, "gc_interval_ms": 100}
DEADLINE_S = 300.0


def run(size: Size) -> Found:
    extents, rounds = size.of((10_000, 9), (60, 2))
    SCRATCH.mkdir(exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="compaction-", dir=SCRATCH))
    try:
        with running(data=data, limits=OFF) as server:
            _fill(server, extents)
        before, gets_before = _scans(data, rounds)
        with running(data=data, limits=ON, http=True) as server:
            left, seconds, cpu_s = _compact(server, extents)
        after, gets_after = _scans(data, rounds)
    finally:
        shutil.rmtree(data)
    what = f"of {extents:,} extents of one record of {VALUE_BYTES} B"
    rows = [
        row(f"a scan before {what}", before, "records/s"),
        versus("a scan after", after, "records/s", "before", before, at_least=2),
        row("GETs of a scan before", gets_before, "GETs"),
        versus("GETs of a scan after", gets_after, "GETs", "before", gets_before, at_most=0.05),
        row("extents left", left, "extents"),
        row("extents copied in a second, waits included", extents / seconds, "1/s"),
        row("CPU of the server for each extent copied", cpu_s / extents * 1e6, "us"),
    ]
    bars = [("before", median(before)), ("after", median(after))]
    chart = Chart(
        title="A scan of a log of small extents, from the store",
        x="",
        y="records a second",
        lines=[Line("scan", list(bars))],
    )
    return Found(rows, [chart])


def _fill(server: Server, extents: int) -> None:
    """One append in flight, so that each is an object."""
    with server.connect() as service:
        log = service.create("orders")
    plan = Plan(
        port=server.port,
        log=log.id,
        connections=1,
        in_flight=1,
        appends=extents,
        value_bytes=VALUE_BYTES,
    )
    put(plan)


def _scans(data: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Records a second, and GETs, of each scan."""
    rates, gets = list[float](), list[float]()
    with running(data=data, limits=OFF | COLD, http=True) as server:
        for _ in range(rounds):
            had = _count(server, "broker_gets_total")
            began = now()
            records = asyncio.run(_scan(server))
            rates.append(records / (now() - began) * 1e9)
            gets.append(_count(server, "broker_gets_total") - had)
    return rates, gets


async def _scan(server: Server) -> int:
    records = 0
    async with aio.connect(server.url) as service:
        log = await service.log("orders", engine="bolt")
        async for page in log.pages():
            records += sum(batch.count for batch in page)
    return records


def _compact(server: Server, extents: int) -> tuple[int, float, float]:
    """Until no copy was made for a second: extents left, how long it took, and what of the CPU."""
    began = last = time.monotonic()
    used = server.cpu_s()
    copied, cpu_s = -1.0, 0.0
    with server.connect() as service:
        while time.monotonic() - began < DEADLINE_S:
            seen = _count(server, "broker_copies_total")
            if seen != copied:
                copied, last, cpu_s = seen, time.monotonic(), server.cpu_s() - used
            elif copied > 0 and time.monotonic() - last > 1:
                return service.survey().extents, last - began, cpu_s
            time.sleep(0.05)
    raise RuntimeError(f"{extents} extents were not copied in {DEADLINE_S:g} s")


def _count(server: Server, name: str) -> float:
    url = f"http://127.0.0.1:{server.http_port}/metrics"
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    found = re.search(rf"^anabranch_{name} ([0-9.e+]+)$", text, re.MULTILINE)
    assert found is not None, name
    return float(found[1])
