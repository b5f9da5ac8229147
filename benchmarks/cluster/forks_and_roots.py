"""What a root's appends through a broker lose by its forks, by many roots with forks, and while
forks are made (paper: figures 6 and 8).
"""

import asyncio
import gc
import time
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from anabranch.apps.processes.layout import Shape
from anabranch.client import aio
from anabranch.client.log import Log
from benchmarks import paper
from benchmarks.baselines import copy_metadata
from benchmarks.cluster import flood
from benchmarks.cluster.local import Cluster, running
from benchmarks.cluster.worker import at_work
from benchmarks.replicas import Replica, row_of
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import busy_seconds, interleaved, now

ROOTS = 32
EACH = 100
"""Forks of each of them; and made while the parent is appended to."""
ENTRIES = 1_000_000
"""Of the parent in the state machine: what a copy of its metadata has to copy."""
KEPT = 0.98
AT_ONCE = 64

_NS = 1_000_000_000


def run(size: Size) -> Found:
    counts = size.of([0, 10, 100, 1_000], [0, 3])
    roots, forks = size.of((ROOTS, EACH), (2, 2))
    with running(Shape(brokers=2, metadata=size.of(3, 1))) as cluster:
        one, many = asyncio.run(_planted(cluster, counts, roots, forks))
        rates = _rates(cluster, [[log] for log in one], size)
        whole = _rates(cluster, many, size)
        made, beside = _while_forked(cluster, forks, size)
    rows = [row("appends/s to a root without forks", rates[0], "1/s")]
    for forked, found in zip(counts[1:], rates[1:], strict=True):
        what = f"appends/s to a root with {forked:,} continuous forks"
        rows.append(versus(what, found, "1/s", "none", rates[0], at_least=KEPT))
    rows.append(row(f"appends/s to {roots} roots without forks", whole[0], "1/s"))
    what = f"appends/s to {roots} roots with {forks} continuous forks each"
    rows.append(versus(what, whole[1], "1/s", "none", whole[0], at_least=KEPT))
    what = f"appends/s to a root while it is forked {forks} times"
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


def _rates(cluster: Cluster, sets: Sequence[Sequence[Log]], size: Size) -> list[list[float]]:
    """Appends a second to each set of logs, by turns, there and back."""
    with ExitStack() as stack:
        floods = [
            stack.enter_context(at_work(flood.MODULE, _plan(cluster, logs, size), flood.Done))
            for logs in sets
        ]
        works = {
            str(number): lambda one=one: one.once().appends_per_s
            for number, one in enumerate(floods)
        }
        for work in works.values():
            work()  # the first ones warm up
        return list(interleaved(size.of(9, 1), works).values())


def _plan(cluster: Cluster, logs: Sequence[Log], size: Size, seconds: float = 1.0) -> flood.Plan:
    return flood.Plan(
        targets=[
            flood.Target(cluster.broker_of(log.description).pair.port, log.id) for log in logs
        ],
        connections=max(4, len(logs)),
        in_flight=16 if len(logs) == 1 else 4,
        seconds=size.of(seconds, 0.3),
        value_bytes=4_080,
        warm_s=size.of(0.25, 0.05),
    )


def _while_forked(cluster: Cluster, forks: int, size: Size) -> tuple[list[float], list[float]]:
    """Appends a second from the first of these forks to the last, and in as long before and
    after.
    """
    made: list[float] = []
    beside: list[float] = []
    with cluster.connect() as service:
        root = service.create("forked")
        plan = flood.Plan(
            targets=[flood.Target(cluster.broker_of(root.describe()).pair.port, root.id)],
            connections=4,
            in_flight=16,
            seconds=size.of(4.0, 1.0),
            value_bytes=4_080,
        )
        with at_work(flood.MODULE, plan, flood.Done) as worker:
            for _ in range(size.of(5, 1)):
                worker.begin()
                middle = now() + int((plan.warm_s + plan.seconds * 0.4) * _NS)
                time.sleep(max(0, middle - now()) / _NS)
                began = now()
                for _ in range(forks):
                    root.cfork()
                ended = now()
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
    commits = size.of(200, 2)

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
        size.of(7, 1),
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
    """The last three rows."""
    names = ("through a broker", "state machine", "state machine, copies")
    shares = [(name, one.ratio or 0.0) for name, one in zip(names, rows[-3:], strict=True)]
    return Chart(
        title=f"A root while it is forked {EACH} times",
        x="",
        y="of the undisturbed rate",
        lines=[Line("kept", list(shares))],
    )


_NOTES = [
    (
        "4 KiB records, one an append; one root: 4 clients with 16 in flight, many: one client a "
        "root with 4 in flight"
    ),
    "one broker serves all roots, another their forks; all processes share the machine's cores",
]
