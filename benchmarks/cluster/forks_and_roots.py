"""What a root's appends through a broker lose by its forks, by many roots with forks, and while
forks are made (paper: figures 6 and 8).
"""

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median

from anabranch.apps.processes.layout import Shape
from anabranch.client import aio
from anabranch.client.bolt.log import Log
from benchmarks import paper
from benchmarks.baselines import copy_metadata
from benchmarks.cluster import flood
from benchmarks.cluster.local import Cluster, running
from benchmarks.cluster.worker import Worker, at_work
from benchmarks.replicas import Replica, row_of
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.server import cpu_s
from benchmarks.size import Size
from benchmarks.timing import busy_seconds, interleaved, now

ROOTS = 32
EACH = 100
"""Forks of each of them; and made while the parent is appended to."""
ENTRIES = 1_000_000
"""Of the parent in the state machine: what a copy of its metadata has to copy."""
STEADY_PER_S = 2_000
"""A load that leaves the machine room for something else."""
KEPT = 0.98
AT_ONCE = 64

_NS = 1_000_000_000


def run(size: Size) -> Found:
    counts = size.of([0, 10, 100, 1_000], [0, 3])
    roots, forks = size.of((ROOTS, EACH), (2, 2))
    with running(Shape(brokers=2, metadata=size.of(3, 1))) as cluster:
        one, many = asyncio.run(_planted(cluster, counts, roots, forks))
        rates, cpu = _rates(cluster, [[log] for log in one], size)
        whole, _ = _rates(cluster, many, size)
        forked = {
            "steadily appended to": _while_forked(cluster, forks, size, per_s=STEADY_PER_S),
            "appended to as fast as it goes": _while_forked(cluster, forks, size),
        }
    rows = [row("appends/s to a root without forks", rates[0], "1/s")]
    rows.append(row("  CPU of its broker and the metadata leader", cpu[0], "us/append"))
    for count, found, used in zip(counts[1:], rates[1:], cpu[1:], strict=True):
        what = f"appends/s to a root with {count:,} continuous forks"
        rows.append(versus(what, found, "1/s", "none", rates[0], at_least=KEPT))
        rows.append(row("  CPU of its broker and the metadata leader", used, "us/append"))
    rows.append(row(f"appends/s to {roots} roots without forks", whole[0], "1/s"))
    what = f"appends/s to {roots} roots with {forks} continuous forks each"
    rows.append(versus(what, whole[1], "1/s", "none", whole[0], at_least=KEPT))
    for how, (made, beside) in forked.items():
        what = f"appends/s to a root, {how}, while it is forked {forks} times"
        rows.append(versus(what, made, "1/s", "before and after", beside, at_least=KEPT))
    rows += _in_the_state_machine(forks, size)
    return Found(rows, [_by_forks(counts, rates), _by_forking(rows)], _NOTES)


async def _planted(
    cluster: Cluster, counts: list[int], roots: int, forks: int
) -> tuple[list[Log], list[list[Log]]]:
    """One root of each count of forks; and so many roots without and with forks."""
    async with aio.connect(cluster.url, timeout=60) as service:
        one = [await _root(service, f"one-{count}", count) for count in counts]
        many = [
            [await _root(service, f"many-{count}-{turn}", count) for turn in range(roots)]
            for count in (0, forks)
        ]
    return one, many


async def _root(service: aio.Service, name: str, forks: int) -> Log:
    root = await service.create(name)
    for first in range(0, forks, AT_ONCE):
        await asyncio.gather(*(root.cfork() for _ in range(min(AT_ONCE, forks - first))))
    return root


def _rates(
    cluster: Cluster, sets: Sequence[Sequence[Log]], size: Size
) -> tuple[list[list[float]], list[list[float]]]:
    """Appends a second to each set of logs, by turns, there and back; and microseconds of the
    processor for each.
    """
    cpu: dict[str, list[float]] = {str(number): [] for number in range(len(sets))}
    leader = cluster.leader()
    assert leader is not None
    pids = [leader.pid, cluster.broker_of(sets[0][0].description).pid]

    def rate(name: str, one: Worker[flood.Done]) -> float:
        before = sum(map(cpu_s, pids))
        done = one.once()
        cpu[name].append((sum(map(cpu_s, pids)) - before) * 1e6 / done.all_records)
        return done.appends_per_s

    with ExitStack() as stack:
        works: dict[str, Callable[[], float]] = {}
        for number, logs in enumerate(sets):
            plan = _plan(cluster, logs, size)
            worker = stack.enter_context(at_work(flood.MODULE, plan, flood.Done))
            worker.once()  # the first one warms up
            works[str(number)] = partial(rate, str(number), worker)
        rates = interleaved(size.of(15, 1), works)
    return list(rates.values()), list(cpu.values())


def _plan(cluster: Cluster, logs: Sequence[Log], size: Size) -> flood.Plan:
    return flood.Plan(
        targets=[
            flood.Target(cluster.broker_of(log.description).pair.port, log.id) for log in logs
        ],
        connections=max(4, len(logs)),
        in_flight=64 if len(logs) == 1 else 8,
        seconds=size.of(0.5, 0.3),
        value_bytes=4_080,
        warm_s=size.of(0.15, 0.05),
    )


def _while_forked(
    cluster: Cluster, forks: int, size: Size, per_s: int = 0
) -> tuple[list[float], list[float]]:
    """Appends a second from the first of these forks on, one after the other, for at least a
    second; and in as long before and after.
    """
    made: list[float] = []
    beside: list[float] = []
    with cluster.connect() as service:
        root = service.create(f"forked-{per_s}")
        plan = flood.Plan(
            targets=[flood.Target(cluster.broker_of(root.describe()).pair.port, root.id)],
            connections=4,
            in_flight=64,
            seconds=size.of(5.0, 0.5),
            value_bytes=4_080,
            per_s=per_s,
        )
        with at_work(flood.MODULE, plan, flood.Done) as worker:
            for _ in range(size.of(5, 1)):
                worker.begin()
                middle = now() + int((plan.warm_s + plan.seconds * 0.35) * _NS)
                time.sleep(max(0, middle - now()) / _NS)
                began = now()
                for _ in range(forks):
                    root.cfork()
                ended = max(now(), began + size.of(_NS, 0))
                done = worker.heard()
                made.append(_rate(done, began, ended))
                before = _rate(done, began - (ended - began), began)
                beside.append((before + _rate(done, ended, ended + (ended - began))) / 2)
    return made, beside


def _rate(done: flood.Done, since: int, until: int) -> float:
    """Appends a second within the intervals that lie between."""
    width = flood.BUCKET_MS * 1_000_000
    first, last = (max(0, since - done.began) // width, (until - done.began) // width)
    found = done.buckets[first : last + 1]
    if not sum(found):  # on a machine so busy, that is as much as can be said
        found = done.buckets
    return sum(found) / (len(found) * flood.BUCKET_MS / 1_000)


def _in_the_state_machine(forks: int, size: Size) -> tuple[Row, Row]:
    """Commits a second while so many forks are made, beside forks that copy the metadata."""
    replica = Replica()
    root = replica.create("orders")
    replica.fill(root, size.of(ENTRIES, 1_000))
    commits = size.of(100, 2)

    def rate(*, forked: bool, copied: bool) -> float:
        rows = [row_of(root, 16)]
        turns = [[replica.commit(rows) for _ in range(commits)] for _ in range(forks)]

        def work() -> None:
            for entries in turns:
                for entry in entries:
                    replica.state.apply(entry)
                if forked:
                    replica.fork(root)
                if copied:
                    copy_metadata(replica.log(root).index)

        return forks * commits / busy_seconds(work)

    gc.collect()
    gc.freeze()
    found = interleaved(
        size.of(5, 1),
        {
            "undisturbed": lambda: rate(forked=False, copied=False),
            "forked": lambda: rate(forked=True, copied=False),
            "copied": lambda: rate(forked=True, copied=True),
        },
    )
    gc.unfreeze()
    what = f"commits/s in the state machine while a root of {size.of(ENTRIES, 1_000):,} entries"
    plain = found["undisturbed"]
    return (
        versus(f"{what} is forked {forks} times", found["forked"], "1/s", "undisturbed", plain),
        versus("  and each fork copies the metadata", found["copied"], "1/s", "undisturbed", plain),
    )


def _by_forks(counts: list[int], rates: list[list[float]]) -> Chart:
    none = median(rates[0])
    shares = [(forks, median(rate) / none) for forks, rate in zip(counts, rates, strict=True)]
    told = [(forks, paper.BOLT_WITH_FORKS) for forks in (0, 10, 100)]
    return Chart(
        title="Appends to a root through a broker, by its continuous forks",
        x="continuous forks",
        y="of the rate without",
        lines=[Line("Anabranch", list(shares)), Line("the paper's Bolt", list(told))],
        log_x=True,
    )


def _by_forking(rows: Sequence[Row]) -> Chart:
    """The last four rows."""
    names = ("steady load", "all there is", "state machine", "same, copied")
    shares = [(name, one.ratio or 0.0) for name, one in zip(names, rows[-4:], strict=True)]
    return Chart(
        title=f"A root while it is forked {EACH} times",
        x="",
        y="of the undisturbed rate",
        lines=[Line("kept", list(shares))],
    )


_NOTES = [
    (
        "4 KiB records, one an append; one root: 4 clients with 64 in flight, many: one client a "
        "root with 8 in flight"
    ),
    "one broker serves all roots, another their forks; all processes share the machine's cores",
]
