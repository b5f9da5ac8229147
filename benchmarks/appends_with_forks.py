"""What a root's appends cost in the metadata while it has forks (paper: figures 8a and 9)."""

import gc
from collections.abc import Callable
from functools import partial
from statistics import median

from benchmarks.baselines import EagerTails, LazyTails, NaiveForks
from benchmarks.replicas import Replica, row_of
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size
from benchmarks.timing import busy_seconds, interleaved


class _Root:
    """Commits to a root with so many continuous forks."""

    def __init__(self, forks: int, commits: int) -> None:
        self._replica = Replica()
        self._root = self._replica.create("orders")
        self._commits = commits
        for _ in range(forks):
            self._replica.fork(self._root)

    def rate(self) -> float:
        rows = [row_of(self._root, 16)]
        entries = [self._replica.commit(rows) for _ in range(self._commits)]
        apply = self._replica.state.apply

        def work() -> None:
            for entry in entries:
                apply(entry)

        return len(entries) / busy_seconds(work)


def run(size: Size) -> Found:
    counts = size.of([0, 10, 100, 1_000, 10_000], [0, 10])
    commits, rounds = size.of((10_000, 15), (100, 2))
    roots = {str(forks): _Root(forks, commits) for forks in counts}
    gc.collect()
    gc.freeze()
    rates = interleaved(rounds, {forks: root.rate for forks, root in roots.items()})
    others = interleaved(size.of(3, 1), _variants(counts, size))
    gc.unfreeze()
    rows = [row("commits/s of a root without forks", rates["0"], "1/s")]
    for forks in counts[1:]:
        what = f"commits/s of a root with {forks:,} continuous forks"
        rates_here = rates[str(forks)]
        rows.append(versus(what, rates_here, "1/s", "none", rates["0"], at_least=0.97))
    for name in ("lazy tails", "eager tails", "naive forks"):
        for forks in counts[1:]:
            what = f"{name} alone, {forks:,} forks: appends/s"
            here, none = others[f"{name} {forks}"], others[f"{name} 0"]
            rows.append(versus(what, here, "1/s", "none", none))
    lines = [Line("Anabranch, whole commits", [(n, median(rates[str(n)])) for n in counts])]
    for name in ("lazy tails", "eager tails", "naive forks"):
        points = [(n, median(others[f"{name} {n}"])) for n in counts]
        lines.append(Line(f"{name}, alone", points))
    chart = Chart(
        title="Appends to a root, by the number of its forks",
        x="continuous forks",
        y="appends a second in the metadata",
        lines=lines,
        log_x=True,
        log_y=True,
    )
    return Found(rows, [chart])


def _variants(counts: list[int], size: Size) -> dict[str, Callable[[], float]]:
    """The index and the tails alone, so that only what differs is compared."""
    works: dict[str, Callable[[], float]] = {}
    for forks in counts:
        appends = size.of(max(20, 200_000 // (forks + 10)), 10)
        for name, variant in (
            ("lazy tails", LazyTails),
            ("eager tails", EagerTails),
            ("naive forks", NaiveForks),
        ):
            works[f"{name} {forks}"] = partial(_rate, variant(forks), appends)
    return works


def _rate(variant: LazyTails | EagerTails | NaiveForks, appends: int) -> float:
    def work() -> None:
        for _ in range(appends):
            variant.append(16)

    return appends / busy_seconds(work)
