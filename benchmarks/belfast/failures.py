"""Figure 17: fraud monitoring while replicas die, and while a whole shard does."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from examples.belfast.fraud import Fraud

from anabranch.apps.processes.local_log import LocalLog, Node
from benchmarks.belfast.deployment import FAIL_INTERVALS, SILENT_INTERVALS, Setting, running
from benchmarks.belfast.tasks import Course, Play, Task, Work
from benchmarks.belfast.timeline import Sampled, between, curve
from benchmarks.belfast.workload import MS, connected
from benchmarks.cluster.local import scratch
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import now

REPLICA = Setting(copies=3, rules={"first_quota": 4})
SHARD = Setting(copies=2, rules={"first_quota": 4})
WORK = Work(rate=400.0, compute_ms=2.2 * REPLICA.t_ord_ms, warm_s=4.0)
SETTLED_S = 1.0
"""After which a kill is over."""
DETECTION_MS = (FAIL_INTERVALS + SILENT_INTERVALS // 4) * SHARD.t_ord_ms
"""A lag that wasn't answered for so long, and the leader's next look."""
BAR_MS = DETECTION_MS + 100
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class _Case:
    setting: Setting
    work: Work
    kills_s: tuple[float, ...]
    """From the beginning."""
    whom: Callable[[LocalLog], list[Sequence[Node]]]
    """Of each of these kills."""

    @property
    def ends_s(self) -> float:
        return self.work.warm_s + self.work.run_s


@dataclass(frozen=True, slots=True)
class _Run:
    course: Course
    end_to_end: Sampled
    killed: list[int]

    def mean(self, low_s: float, high_s: float) -> float:
        return between(self.end_to_end, low_s, high_s)

    def records_s(self, low_s: float, high_s: float) -> float:
        begun = sum(low_s * 1e9 <= begun < high_s * 1e9 for begun, _ in self.end_to_end)
        return begun / (high_s - low_s)

    @property
    def fails(self) -> int:
        return sum(len(each.fails) for each in self.course.tasks)

    @property
    def failed_ms(self) -> float | None:
        """From the kill until the first reader is told; None if none had anything to take back."""
        told = [at for each in self.course.tasks for _, at in each.fails]
        return (min(told) - self.killed[0]) / MS if told else None

    @property
    def recovered_ms(self) -> float:
        """From the kill to the end of the longest time without a confirmation after it."""
        return (max(map(self._resumed, self.course.tasks)) - self.killed[0]) / MS

    def _resumed(self, task: Task) -> int:
        before = max((at for _, at in task.marks if at <= self.killed[0]), default=self.killed[0])
        after = [at for _, at in task.marks if at > self.killed[0]]
        gaps = [(at - last, at) for last, at in pairwise([before, *after])]
        return max(gaps)[1]

    @property
    def rollback_ms(self) -> float:
        """Of the reader that took longest."""
        return max(each.rollback_ns for each in self.course.tasks) / MS


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    replica, shard = _cases(size)
    replicas = [_ran(replica, seed) for seed in range(count)]
    shards = [_ran(shard, seed) for seed in range(count)]
    rows = [*_replica_rows(replicas, replica), *_shard_rows(shards, shard)]
    lines = [
        Line("a backup, then a primary", curve(replicas[-1].end_to_end, 0.25)),
        Line("a whole shard", curve(shards[-1].end_to_end, 0.25)),
    ]
    chart = Chart(
        title="Fraud monitoring under failures (figure 17)",
        x="seconds",
        y="end to end latency, ms",
        lines=lines,
    )
    return Found(rows, [chart], _notes(count))


def _cases(size: Size) -> tuple[_Case, _Case]:
    """A backup, and the other shard's primary; all of one shard."""
    warm_s, step_s = size.of((WORK.warm_s, 4.0), (1.0, 1.5))
    longer = replace(WORK, warm_s=warm_s, run_s=3 * step_s)
    anywhere = replace(WORK, warm_s=warm_s, run_s=step_s + 5.0, anywhere=True)
    once, twice = warm_s + step_s, warm_s + 2 * step_s
    return (
        _Case(REPLICA, longer, (once, twice), _two_replicas),
        _Case(SHARD, anywhere, (once,), _whole_shard),
    )


def _two_replicas(local: LocalLog) -> list[Sequence[Node]]:
    first, second = local.shards.values()
    return [first[-1:], second[:1]]


def _whole_shard(local: LocalLog) -> list[Sequence[Node]]:
    *_, last = local.shards.values()
    return [last]


def _ran(case: _Case, seed: int) -> _Run:
    with running(case.setting) as local, scratch() as folder:
        return asyncio.run(_struck(local, case, folder, seed))


async def _struck(local: LocalLog, case: _Case, folder: Path, seed: int) -> _Run:
    async with connected(local.layout.url, case.setting.delay_us) as log:
        play = Play(log, Fraud(), list(local.shards)).run(case.work, folder, seed)
        strikes = map(_strike, case.kills_s, case.whom(local))
        course, killed = await asyncio.gather(play, asyncio.gather(*strikes))
    return _Run(course, course.end_to_end(), killed)


async def _strike(at_s: float, nodes: Sequence[Node]) -> int:
    await asyncio.sleep(at_s)
    at = now()
    await asyncio.gather(*(asyncio.to_thread(node.kill) for node in nodes))
    return at


def _replica_rows(runs: list[_Run], case: _Case) -> list[Row]:
    warm_s, end_s = case.work.warm_s, case.ends_s
    backup_s, primary_s = case.kills_s
    before = [each.mean(warm_s, backup_s) for each in runs]
    flow = [each.records_s(warm_s, backup_s) for each in runs]
    spans = (
        ("a backup killed, from that moment on", backup_s, primary_s, 1.1),
        ("a primary killed, in the second after", primary_s, primary_s + SETTLED_S, None),
        ("a primary killed, a second later on", primary_s + SETTLED_S, end_s, 1.1),
    )
    rows: list[Row] = []
    for named, low_s, high_s, bar in spans:
        means = [each.mean(low_s, high_s) for each in runs]
        rates = [each.records_s(low_s, high_s) for each in runs]
        rows += [
            versus(f"{named}: end to end", means, "ms", "before", before, at_most=bar),
            versus(
                f"{named}: throughput",
                rates,
                "records/s",
                "before",
                flow,
                at_least=0.9 if bar else None,
            ),
        ]
    return [*rows, row("replicas killed: fails", [e.fails for e in runs], "fails", at_most=0)]


def _shard_rows(runs: list[_Run], case: _Case) -> list[Row]:
    warm_s, end_s = case.work.warm_s, case.ends_s
    (killed_s,) = case.kills_s
    again_s = killed_s + BAR_MS / 1_000 + SETTLED_S
    recovered = [each.recovered_ms for each in runs]
    told = [each.failed_ms for each in runs if each.failed_ms is not None]
    shares = [100 * each.rollback_ms / each.recovered_ms for each in runs]
    before = [each.mean(warm_s, killed_s) for each in runs]
    flow = [each.records_s(warm_s, killed_s) for each in runs]
    return [
        *([row("a shard killed: readers are told", told, "ms")] if told else []),
        row("a shard killed: confirmations flow again", recovered, "ms", at_most=BAR_MS),
        row("of that, rolling back", [each.rollback_ms for each in runs], "ms"),
        row("rolling back beside all of it", shares, "%"),
        row("a shard killed: fails", [each.fails for each in runs], "fails"),
        versus(
            "a shard killed, afterwards: end to end",
            [each.mean(again_s, end_s) for each in runs],
            "ms",
            "before",
            before,
            at_most=1.2,
        ),
        versus(
            "a shard killed, afterwards: throughput",
            [each.records_s(again_s, end_s) for each in runs],
            "records/s",
            "before",
            flow,
        ),
    ]


def _notes(count: int) -> list[str]:
    time = (
        f"T_ord {SHARD.t_ord_ms} ms; {SHARD.delay_us} us one way for every message; 2 shards, "
        f"{SHARD.sequencers} sequencers, durability {SHARD.durability}; fraud monitoring, "
        f"{WORK.rate:g} records/s, computing 2.2 T_ord a batch; {count} runs"
    )
    replicas = (
        "with three replicas a shard: a backup is killed, 4 s later the other shard's primary, "
        f"which is missed after {SILENT_INTERVALS * SHARD.t_ord_ms} ms; a takeover follows"
    )
    shards = (
        f"with two: both of one shard killed. Detection is {FAIL_INTERVALS} T_ord of silence "
        f"and at most {SILENT_INTERVALS // 4} until the leader looks: {DETECTION_MS} ms; the "
        "bar is that and 100 ms"
    )
    records = (
        "when a whole shard dies records are appended wherever there is room, and those that it "
        "had not acknowledged once more, by the client itself: measured from the first attempt. "
        "With replicas each branch has its shard"
    )
    paper = (
        "the paper: the loss of a replica isn't seen; of a whole shard's, most of the gap is its "
        "detection, and rolling back is marginal. Its artifact here, T_ord 10 ms: declared failed "
        "after 149 ms, clients told after 162 ms"
    )
    return [time, replicas, shards, records, paper]
