"""Figure 17: fraud monitoring while replicas die, and while a whole shard does."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from examples.belfast.fraud import Fraud

from anabranch.apps.processes.belfast import LocalBelfast, Node
from anabranch.core.belfast.rules import Rules
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.tasks import Course, Play, Task, Work
from benchmarks.belfast.timeline import Sampled, between, curve
from benchmarks.belfast.workload import MS, connected
from benchmarks.cluster.local import scratch
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import now

RULES = Rules()
REPLICA = Setting(copies=3, rules={"first_quota": 4})
SHARD = Setting(copies=2, rules={"first_quota": 4})
_COMPUTE_MS = 2.2 * REPLICA.t_ord_ms
REPLICA_WORK = Work(rate=400.0, compute_ms=_COMPUTE_MS, warm_s=4.0, run_s=12.0)
SHARD_WORK = Work(rate=400.0, compute_ms=_COMPUTE_MS, warm_s=4.0, run_s=9.0, anywhere=True)
BACKUP_S, PRIMARY_S, WHOLE_S = 4.0, 8.0, 4.0
"""When they are killed, after the warm-up."""
SETTLED_S = 1.0
"""After which a kill is over."""
DETECTION_MS = (RULES.fail_intervals + RULES.silent_intervals // 4) * SHARD.t_ord_ms
"""A lag that wasn't answered for so long, and the leader's next look."""
BAR_MS = DETECTION_MS + 100
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _Kill:
    at_s: float
    """From the beginning."""
    nodes: Sequence[Node]


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
        before = max(at for _, at in task.marks if at <= self.killed[0])
        after = [at for _, at in task.marks if at > self.killed[0]]
        gaps = [(at - last, at) for last, at in pairwise([before, *after])]
        return max(gaps)[1]

    @property
    def rollback_ms(self) -> float:
        """Of the reader that took longest."""
        return max(each.rollback_ns for each in self.course.tasks) / MS


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    replicas = [_ran(REPLICA, REPLICA_WORK, _replicas, seed) for seed in range(count)]
    shards = [_ran(SHARD, SHARD_WORK, _whole, seed) for seed in range(count)]
    rows = [*_replica_rows(replicas), *_shard_rows(shards)]
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


def _replicas(local: LocalBelfast) -> list[_Kill]:
    """One of each of two shards."""
    first, second = local.shards.values()
    warm_s = REPLICA_WORK.warm_s
    return [_Kill(warm_s + BACKUP_S, first[-1:]), _Kill(warm_s + PRIMARY_S, second[:1])]


def _whole(local: LocalBelfast) -> list[_Kill]:
    *_, last = local.shards.values()
    return [_Kill(SHARD_WORK.warm_s + WHOLE_S, last)]


def _ran(
    setting: Setting, work: Work, kills: Callable[[LocalBelfast], list[_Kill]], seed: int
) -> _Run:
    with running(setting) as local, scratch() as folder:
        return asyncio.run(_struck(local, setting, work, kills(local), folder, seed))


async def _struck(
    local: LocalBelfast,
    setting: Setting,
    work: Work,
    kills: list[_Kill],
    folder: Path,
    seed: int,
) -> _Run:
    async with connected(local.layout.url, setting.delay_us) as log:
        play = asyncio.create_task(Play(log, Fraud(), list(local.shards)).run(work, folder, seed))
        killed = [await _strike(kill) for kill in _in_turn(kills)]
        course = await play
    return _Run(course, course.end_to_end(), killed)


def _in_turn(kills: list[_Kill]) -> list[_Kill]:
    """Each with what is to be waited from the one before."""
    before = [0.0, *(kill.at_s for kill in kills)]
    return [_Kill(kill.at_s - at, kill.nodes) for kill, at in zip(kills, before, strict=False)]


async def _strike(kill: _Kill) -> int:
    await asyncio.sleep(kill.at_s)
    at = now()
    await asyncio.gather(*(asyncio.to_thread(node.kill) for node in kill.nodes))
    return at


def _replica_rows(runs: list[_Run]) -> list[Row]:
    warm_s = REPLICA_WORK.warm_s
    backup_s, primary_s, end_s = warm_s + BACKUP_S, warm_s + PRIMARY_S, warm_s + REPLICA_WORK.run_s
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


def _shard_rows(runs: list[_Run]) -> list[Row]:
    warm_s = SHARD_WORK.warm_s
    killed_s, end_s = warm_s + WHOLE_S, warm_s + SHARD_WORK.run_s
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
        f"{SHARD_WORK.rate:g} records/s, computing 2.2 T_ord a batch; {count} runs"
    )
    replicas = (
        f"with three replicas a shard: a backup killed after {BACKUP_S:g} s, the other shard's "
        f"primary after {PRIMARY_S:g} s; a primary is missed after "
        f"{RULES.silent_intervals * SHARD.t_ord_ms} ms, and a takeover follows"
    )
    shards = (
        f"with two: both of one shard killed. Detection is {RULES.fail_intervals} T_ord of silence "
        f"and at most {RULES.silent_intervals // 4} until the leader looks: {DETECTION_MS} ms; the "
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
