"""Figure 7: appends of Erwin beside Scalog's, which is Belfast's free-will mode: records first, and
an order by cuts that all shards' reports lead to.
"""

from contextlib import AsyncExitStack
from functools import partial

from anabranch.apps.processes.local_log import LocalLog
from anabranch.client.belfast.log import Log
from anabranch.core.types import Position
from benchmarks.belfast import deployment as belfast
from benchmarks.belfast.workload import connected
from benchmarks.erwin.compare import ROUNDS, once
from benchmarks.erwin.deployment import ERWIN, Setting, Usage
from benchmarks.erwin.workload import Latencies, Load, Run, on_loop
from benchmarks.report import Chart, Found, Line, versus
from benchmarks.server import cpu_s
from benchmarks.size import Size
from benchmarks.timing import interleaved, now

SCALOG = "Scalog"
SETTING = Setting(copies=2, delay_us=1_000)
T_ORD_MS = 5
BESIDE = belfast.Setting(
    shards=1,
    copies=2,
    t_ord_ms=T_ORD_MS,
    delay_us=SETTING.delay_us,
    durability=SETTING.durability,
    free_will=True,
)
LOAD = Load(clients=4, rate=25.0, warm_s=2.0)
ROUND_TRIPS = 4.0
"""Of Scalog: to the primary and back, to a backup and back, to the sequencer and back, and among
the sequencers; Erwin has one."""


class _ScalogClient:
    def __init__(self, log: Log, shard: str, record_bytes: int) -> None:
        self._log, self._shard, self._value = log, shard, bytes(record_bytes)

    async def append(self) -> Position | None:
        return await self._log.append(self._value, shard=self._shard)

    async def tail(self) -> Position:
        return (await self._log.directory()).confirmed

    async def read(self, position: Position, count: int = 1) -> None:
        raise AssertionError("nobody reads in this figure")


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    works = {ERWIN: partial(once, SETTING, LOAD), SCALOG: _scalog}
    found = interleaved(count, works)
    rows = [
        versus(
            f"append, {what}: {SCALOG}'s over {ERWIN}'s",
            list(map(pick, found[SCALOG])),
            "ms",
            f"{ERWIN}'s",
            list(map(pick, found[ERWIN])),
            at_least=ROUND_TRIPS if what == "mean" else None,
        )
        for what, pick in (("mean", Latencies.mean), ("p99", Latencies.p99))
    ]
    lines = [
        Line(name, [("mean", runs[-1].mean()), ("p99", runs[-1].p99())])
        for name, runs in found.items()
    ]
    chart = Chart(title="Append latency (figure 7)", x="", y="ms", lines=lines)
    how = (
        f"one shard of {SETTING.copies} replicas, 3 sequencers each, durability "
        f"{SETTING.durability}, {SETTING.delay_us} us one way for every message; {LOAD.clients} "
        f"closed loops of at most {LOAD.rate:g} appends/s; {count} rounds by turns. {SCALOG} is "
        f"Belfast in free-will mode with T_ord {T_ORD_MS} ms, the shortest that leaves a core idle"
    )
    paper = (
        "the paper: mean and p99 two orders of magnitude lower at 34,000 and 140,000 appends/s, "
        "near the limit of Scalog's shards. Below the limit the round trips count: four and half "
        "an interval against one"
    )
    return Found(rows, [chart], [how, paper])


def _scalog() -> Latencies:
    with belfast.running(BESIDE) as local:
        return on_loop(_appended(local))


async def _appended(local: LocalLog) -> Latencies:
    async with AsyncExitStack() as stack:
        (shard,) = local.shards
        made = [
            _ScalogClient(
                await stack.enter_async_context(connected(local.layout.url, BESIDE.delay_us)),
                shard,
                LOAD.record_bytes,
            )
            for _ in range(LOAD.clients)
        ]
        return await Run(made, LOAD, partial(used, local)).measured()


def used(local: LocalLog) -> Usage:
    replicas = [replica for shard in local.shards.values() for replica in shard]
    return Usage(
        now(),
        sum(cpu_s(each.pid) for each in local.sequencers),
        sum(cpu_s(each.pid) for each in replicas),
    )
