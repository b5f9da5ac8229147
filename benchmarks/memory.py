"""What forks take of the metadata's memory (paper: 6.5)."""

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial

from benchmarks.baselines import NaiveForks
from benchmarks.replicas import Replica
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size

MB = 1e6


def run(size: Size) -> Found:
    records, forks = size.of((1_000_000, 1_000), (1_000, 10))
    rows, bars = [], []
    # Of the naive variant a hundredth, for the whole doesn't fit everywhere.
    part = size.of(100, 1)
    for batch, at_most in ((16, 8), (1, 48)):
        taken = _bytes(partial(_replica, records, forks, batch)) / MB
        what = f"{forks:,} forks over {records:,} records, {batch} an extent"
        rows.append(row(what, taken, "MB", at_most=at_most))
        some = partial(_naive, records // part, forks, batch)
        naive = _bytes(some) * part / MB
        rows.append(versus(f"{what}: naive forks", naive, "MB", "Anabranch's", taken))
        bars += [(f"{batch} an extent", taken)]
        bars += [(f"{batch} an extent, naive", naive)]
    chart = Chart(
        title=f"Memory of {forks:,} continuous forks over {records:,} records",
        x="records",
        y="MB",
        lines=[Line("metadata", list(bars))],
        log_y=True,
    )
    return Found(rows, [chart])


def _bytes(make: Callable[[], object]) -> int:
    """What is allocated and not freed, by Python's own account."""
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        del made
    finally:
        tracemalloc.stop()
    return taken


def _replica(records: int, forks: int, batch: int) -> Replica:
    """Half of the records come before the forks, half after."""
    replica = Replica()
    root = replica.create("orders")
    for turn in range(records // batch):
        if turn == records // batch // 2:
            for _ in range(forks):
                replica.fork(root)
        replica.append(root, batch)
    return replica


def _naive(records: int, forks: int, batch: int) -> NaiveForks:
    naive = NaiveForks(forks)
    for _ in range(records // batch):
        naive.append(batch)
    return naive
