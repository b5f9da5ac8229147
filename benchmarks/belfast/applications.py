"""Figure 16: the three applications, on databases of their own."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from pathlib import Path

from examples.belfast.application import Application
from examples.belfast.fraud import Fraud
from examples.belfast.intrusion import Intrusion
from examples.belfast.trading import Trading

from anabranch.apps.processes.local_log import LocalLog
from benchmarks.belfast.compare import alternating, systems
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.tasks import Course, Play, Work
from benchmarks.belfast.workload import MS, connected
from benchmarks.cluster.local import scratch
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import mean, percentile

SETTING = Setting(rules={"first_quota": 6})
COMPUTE_T_ORD = {"intrusion": 1.4, "fraud": 2.2, "trading": 0.8}
"""Of a batch: the paper's 1.4, 2.2 and 0.8 ms at a T_ord of 1 ms (6.10)."""
APPLICATIONS: tuple[Callable[[], Application], ...] = (Intrusion, Fraud, Trading)
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class _Figures:
    end_to_end: float
    p99: float
    computing: float
    """Of a batch, without the wait that stretches it, in ms."""
    records_s: float
    fails: int

    @staticmethod
    def of(course: Course, work: Work) -> "_Figures":
        warm_ns = work.warm_s * 1e9
        took = sorted(each for begun, each in course.end_to_end() if begun >= warm_ns)
        batches = sum(each.batches for each in course.tasks)
        busy_ns = sum(each.busy_ns for each in course.tasks)
        return _Figures(
            end_to_end=mean(took),
            p99=percentile(took or [nan], 99),
            computing=busy_ns / max(1, batches) / MS,
            records_s=len(took) / work.run_s,
            fails=sum(len(each.fails) for each in course.tasks),
        )


def work_of(application: str, size: Size) -> Work:
    compute_ms = COMPUTE_T_ORD[application] * SETTING.t_ord_ms
    if size.smoke:
        return Work(compute_ms=compute_ms, warm_s=0.5, run_s=1.0)
    return Work(compute_ms=compute_ms, warm_s=5.0, run_s=4.0)


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    names = list(COMPUTE_T_ORD)
    found: dict[str, dict[str, list[_Figures]]] = {
        name: {each: [] for each in names} for name in systems(SETTING)
    }
    for name, setting in alternating(count, systems(SETTING)):
        with running(setting) as local, scratch() as folder:
            for each, figures in asyncio.run(_played(local, setting, size, folder)):
                found[name][each].append(figures)
    rows = [each for application in names for each in _rows(application, found)]
    chart = Chart(
        title="End to end latency of applications (figure 16)",
        x="application",
        y="Scalog's mean over Belfast's",
        lines=[Line("here", [(row.what.split(":")[0], row.ratio or 0.0) for row in rows[::6]])],
    )
    return Found(rows, [chart], _notes(size, count))


async def _played(
    local: LocalLog, setting: Setting, size: Size, folder: Path
) -> list[tuple[str, _Figures]]:
    """All three, one after the other."""
    found: list[tuple[str, _Figures]] = []
    async with connected(local.layout.url, setting.delay_us) as log:
        for seed, make in enumerate(APPLICATIONS):
            application = make()
            work = work_of(application.name, size)
            course = await Play(log, application, list(local.shards)).run(work, folder, seed)
            found.append((application.name, _Figures.of(course, work)))
    return found


def _rows(application: str, found: dict[str, dict[str, list[_Figures]]]) -> list[Row]:
    ours, theirs = found["Belfast"][application], found["Scalog"][application]
    return [
        versus(
            f"{application}: Scalog's end to end over Belfast's, mean",
            [each.end_to_end for each in theirs],
            "ms",
            "Belfast's",
            [each.end_to_end for each in ours],
            at_least=1.4,
        ),
        versus(
            f"{application}: Scalog's end to end over Belfast's, p99",
            [each.p99 for each in theirs],
            "ms",
            "Belfast's",
            [each.p99 for each in ours],
        ),
        row(f"{application}: Belfast's computing alone", [each.computing for each in ours], "ms"),
        row(f"{application}: Belfast's records", [each.records_s for each in ours], "/s"),
        row(f"{application}: Scalog's records", [each.records_s for each in theirs], "/s"),
        row(f"{application}: fails", [each.fails for each in ours], "fails"),
    ]


def _notes(size: Size, count: int) -> list[str]:
    work = work_of("fraud", size)
    time = (
        f"T_ord {SETTING.t_ord_ms} ms instead of the paper's 1 ms; {SETTING.delay_us} us one way "
        f"for every message; {SETTING.shards} shards of {SETTING.copies} replicas, "
        f"{SETTING.sequencers} sequencers, durability {SETTING.durability}, on both sides"
    )
    stretched = ", ".join(f"{name} {each:g}" for name, each in COMPUTE_T_ORD.items())
    computing = (
        "a batch's computation, on SQLite, is real and then stretched by a wait to what it is in "
        f"the paper beside a T_ord: {stretched} T_ord"
    )
    load = (
        f"{work.rate:g} records/s of the application's own size, each shard's share of them at a "
        f"rate of its own, {work.in_flight} unacknowledged, {work.readers} readers; the first "
        f"{work.warm_s:g} s left out, {work.run_s:g} s measured, the median of {count} "
        "runs of each, in turns"
    )
    paper = "the paper: 1.4x to 1.6x, the most for intrusion detection"
    return [time, computing, load, paper]
