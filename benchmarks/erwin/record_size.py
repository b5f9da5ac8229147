"""Figure 12: appends by record size; and small ones beside Belfast's and Bolt's."""

from functools import partial
from statistics import median

import anabranch.aio
from anabranch.apps.processes.local_log import LocalLog
from benchmarks import server
from benchmarks.belfast import deployment as belfast
from benchmarks.belfast.workload import connected
from benchmarks.erwin.compare import ROUNDS
from benchmarks.erwin.deployment import ERWIN, Deployment, Setting, Usage, running
from benchmarks.erwin.flood import RUN_S, Flood, flooded
from benchmarks.erwin.scalog import used as belfast_used
from benchmarks.erwin.workload import on_loop
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size
from benchmarks.timing import interleaved, now

SIZES = (100, 512, 1_024, 4_096, 8_192)
SETTING = Setting(copies=2, delay_us=0)
BESIDE = belfast.Setting(shards=1, copies=2, delay_us=0, durability="memory")
BELFAST, BOLT = "Belfast", "Bolt"
SMALL_BYTES = 100


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    sizes = size.of(SIZES, SIZES[:1])
    run_s = size.of(RUN_S, 0.5)
    by_size: dict[str, list[list[Flood]]] = interleaved(
        count, {ERWIN: partial(_erwin, sizes, run_s)}
    )
    beside = interleaved(count, {BELFAST: partial(_belfast, run_s), BOLT: partial(_bolt, run_s)})
    rows: list[Row] = []
    points: list[tuple[float, float]] = []
    for number, record_bytes in enumerate(sizes):
        floods = [each[number] for each in by_size[ERWIN]]
        rows += _rows(f"{ERWIN}-m, {record_bytes} bytes", floods)
        points.append((record_bytes, median(each.records_s for each in floods)))
    for name, floods in beside.items():
        rows += _rows(f"{name}, {SMALL_BYTES} bytes", floods)
    chart = Chart(
        title="Appends by record size (figure 12)",
        x="bytes of a record",
        y="records/s",
        lines=[Line(f"{ERWIN}-m", points)],
    )
    how = (
        f"one client, whose batches are as large as they come (at most 256 KiB, 8 under way); one "
        f"shard of {SETTING.copies} replicas, no delay, durability memory; {ERWIN} with 3 "
        f"sequencers, {BELFAST} with 3 and T_ord {BESIDE.t_ord_ms} ms, {BOLT} one process that "
        f"keeps its records in memory; {count} rounds. The client and all processes share two "
        "cores, of which each record of Erwin-m crosses five processes"
    )
    paper = "the paper: about a million records/s of 100 bytes on 5 shards, and fewer larger ones"
    return Found(rows, [chart], [how, paper])


def _rows(what: str, floods: list[Flood]) -> list[Row]:
    return [
        row(f"{what}: appended", [each.records_s for each in floods], "records/s"),
        row(f"{what}: processor time", [each.cpu_us for each in floods], "us/record"),
    ]


def _erwin(sizes: tuple[int, ...], run_s: float) -> list[Flood]:
    with running(SETTING) as deployment:
        return on_loop(_all_sizes(deployment, sizes, run_s))


async def _all_sizes(deployment: Deployment, sizes: tuple[int, ...], run_s: float) -> list[Flood]:
    async with deployment.erwin() as log:
        return [await flooded(log, each, deployment.used, run_s) for each in sizes]


def _belfast(run_s: float) -> Flood:
    with belfast.running(BESIDE) as local:
        return on_loop(_flooded_belfast(local, run_s))


async def _flooded_belfast(local: LocalLog, run_s: float) -> Flood:
    async with connected(local.layout.url, BESIDE.delay_us) as log:
        return await flooded(log, SMALL_BYTES, partial(belfast_used, local), run_s)


def _bolt(run_s: float) -> Flood:
    with server.running(memory=True) as running_server:
        return on_loop(_flooded_bolt(running_server, run_s))


async def _flooded_bolt(bolt: server.Server, run_s: float) -> Flood:
    async with anabranch.aio.connect(bolt.url) as service:
        log = await service.create("flooded")
        return await flooded(log, SMALL_BYTES, lambda: Usage(now(), bolt.cpu_s(), 0.0), run_s)
