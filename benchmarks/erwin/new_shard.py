"""Figure 16: a shard is added to a log in mode st under load, which doesn't notice."""

import asyncio
from dataclasses import dataclass
from statistics import fmean

from benchmarks.erwin.compare import ROUNDS
from benchmarks.erwin.deployment import Deployment, Setting, running
from benchmarks.erwin.workload import ErwinClient, Latencies, Load, Run, clients, on_loop
from benchmarks.report import Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import now

SETTING = Setting(mode="st", shards=2, copies=2, spare_shards=1, delay_us=500)
LOAD = Load(clients=6, rate=40.0, warm_s=1.0, run_s=5.0)
ADD_S = 2.5
"""After the beginning."""
BUCKET_S = 0.5
DIP_BAR = 0.95
_LOOK_S = 0.01


@dataclass(slots=True)
class _Course:
    found: Latencies
    added_s: float
    """When the log knew the shard, in the measured time."""
    records: int
    """On the new shard, in the end."""

    def rates(self) -> list[float]:
        """Appends a second, bucket by bucket."""
        count = int(LOAD.run_s / BUCKET_S)
        counts = [0] * count
        for at in self.found.ended:
            bucket = int(at / 1e9 / BUCKET_S)
            if bucket < count:
                counts[bucket] += 1
        return [each / BUCKET_S for each in counts]

    def dip(self) -> float:
        """The lowest rate of all buckets over their mean."""
        rates = self.rates()
        return min(rates) / fmean(rates)


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    courses = [_added() for _ in range(count)]
    rows = [
        row(
            "lowest rate in half a second, over the mean",
            [each.dip() for each in courses],
            "times",
            at_least=DIP_BAR,
        ),
        row("slowest append", [max(each.found.append) for each in courses], "ms"),
        row("records on the new shard in the end", [each.records for each in courses], "records"),
    ]
    course = courses[-1]
    points = [(number * BUCKET_S, rate) for number, rate in enumerate(course.rates())]
    chart = Chart(
        title=f"A shard is added after {course.added_s:.1f} s (figure 16)",
        x="seconds",
        y="appends/s",
        lines=[Line("appends", points)],
    )
    how = (
        f"mode st, {SETTING.shards} shards and one more, {SETTING.copies} replicas each, "
        f"durability {SETTING.durability}, {SETTING.delay_us} us one way; {LOAD.clients} closed "
        f"loops of at most {LOAD.rate:g} appends/s; {count} rounds. The new replicas are forked "
        "from a process that has imported everything: what Python needs to start isn't measured"
    )
    return Found(rows, [chart], [how, "the paper: no downtime, and throughput rises"])


def _added() -> _Course:
    with running(SETTING) as deployment:
        return on_loop(_grown(deployment))


async def _grown(deployment: Deployment) -> _Course:
    async with clients(deployment, LOAD.clients + 1, LOAD.record_bytes) as (observer, *appenders):
        assert isinstance(observer, ErwinClient)
        run = Run(appenders, LOAD, deployment.used)
        measured = asyncio.create_task(run.measured())
        await asyncio.sleep(ADD_S)
        await asyncio.to_thread(deployment.add_shard)
        await _known(observer)
        added = (now() - run.begins) / 1e9
        found = await measured
        status = await observer.log.status()
        return _Course(found, added, status.shards[-1].records)


async def _known(observer: ErwinClient) -> None:
    """Any node says how many shards it knows."""
    count = SETTING.shards
    while count <= SETTING.shards:
        await asyncio.sleep(_LOOK_S)
        count = len((await observer.log.directory()).shards)
