"""A fork inside the state machine, whatever the length of its parent (paper: figure 5)."""

import gc
from collections.abc import Callable, Iterator
from statistics import median

from anabranch.core.bolt.protocol.commands import Entry, ForkLog, Squash
from anabranch.core.types import Kind, LogId
from benchmarks.baselines import copy_metadata
from benchmarks.replicas import AT, Replica
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size
from benchmarks.timing import busy_seconds, each, percentile

MILLION = 1_000_000


class _Parent:
    """A root of so many entries with so many forks alive."""

    def __init__(self, entries: int, alive: int) -> None:
        self.entries = entries
        self.replica = Replica()
        self.root = self.replica.create("orders")
        self.replica.fill(self.root, entries)
        for _ in range(alive):
            self.replica.fork(self.root)

    def forks(self, count: int) -> list[int]:
        """As many more, timed one by one and squashed afterwards."""
        replica, first = self.replica, self.replica.state.replica.next_id
        took = each(self._commands(count))
        for id in range(first, first + count):
            replica.do(Squash(LogId(id)))
        return took

    def copy_s(self) -> float:
        index = self.replica.log(self.root).index
        return busy_seconds(lambda: copy_metadata(index))

    def _commands(self, count: int) -> Iterator[Callable[[], object]]:
        apply, replica = self.replica.state.apply, self.replica
        for _ in range(count):
            command = ForkLog(self.root, Kind.CONTINUOUS, by="agent", why="what if")
            entry = Entry(AT, replica.request(), command)
            yield lambda entry=entry: apply(entry)


def run(size: Size) -> Found:
    lengths = size.of([MILLION, 5 * MILLION, 10 * MILLION, 25 * MILLION], [1_000, 25_000])
    alive, forks, rounds = size.of((10_000, 2_000, 9), (100, 50, 2))
    parents = [_Parent(length, alive) for length in lengths]
    # As a server does once it has recovered: what is there stays there.
    gc.collect()
    gc.freeze()
    p50: dict[int, list[float]] = {length: [] for length in lengths}
    p99: dict[int, list[float]] = {length: [] for length in lengths}
    copies: dict[int, list[float]] = {length: [] for length in lengths}
    for turn in range(rounds):
        for parent in parents if turn % 2 else reversed(parents):
            took = parent.forks(forks)
            p50[parent.entries].append(percentile(took, 50) / 1e3)
            p99[parent.entries].append(percentile(took, 99) / 1e3)
            copies[parent.entries].append(parent.copy_s() * 1e6)
    gc.unfreeze()
    shortest, longest = lengths[0], lengths[-1]
    rows = []
    for length in lengths:
        what = f"fork of {length:,} entries with {alive:,} forks alive"
        rows.append(row(f"{what}, p50", p50[length], "us", at_most=20))
        rows.append(row(f"{what}, p99", p99[length], "us", at_most=80))
    rows.append(
        versus(
            f"fork of {longest:,} entries, p50",
            p50[longest],
            "us",
            f"{shortest:,} entries'",
            p50[shortest],
            at_most=1.2,
        )
    )
    rows.append(
        versus(
            f"copy of the metadata of {longest:,} entries",
            copies[longest],
            "us",
            "a fork's p50",
            p50[longest],
            at_least=1_000,
        )
    )
    lines = [
        Line("Anabranch, p50", [(n, median(p50[n])) for n in lengths]),
        Line("Anabranch, p99", [(n, median(p99[n])) for n in lengths]),
        Line("copy of the metadata", [(n, median(copies[n])) for n in lengths]),
    ]
    chart = Chart(
        title="One fork, by the length of its parent",
        x="entries of the parent",
        y="microseconds",
        lines=lines,
        log_x=True,
        log_y=True,
    )
    return Found(rows, [chart])
