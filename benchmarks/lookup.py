"""Looking up where a record is, on forks of forks of forks (paper: figure 10)."""

import gc
import random
from collections.abc import Callable
from statistics import median

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.lineage import descend, locate
from anabranch.core.bolt.protocol.queries import Resolve, Resolved
from anabranch.core.types import LogId
from benchmarks.replicas import Replica
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size
from benchmarks.timing import busy, busy_seconds, interleaved


class _Tower:
    """A root, and forks of forks down to a depth; every log has extents of its own."""

    def __init__(self, depths: list[int], root_extents: int, own_extents: int) -> None:
        self.replica = Replica()
        self.logs: dict[int, LogId] = {0: self.replica.create("orders")}
        self.replica.fill(self.logs[0], root_extents, 16)
        log = self.logs[0]
        for depth in range(1, max(depths) + 1):
            log = self.replica.fork(log)
            for _ in range(own_extents):
                self.replica.append(log, 16)
            if depth in depths:
                self.logs[depth] = log

    def log(self, depth: int) -> Log:
        return self.replica.log(self.logs[depth])

    def positions(self, depth: int, count: int) -> list[int]:
        tail = self.replica.state.replica.forest.tail(self.log(depth))
        chance = random.Random(depth)
        return [chance.randrange(tail) for _ in range(count)]


def run(size: Size) -> Found:
    depths = size.of([0, 7, 100, 500], [0, 7])
    tower = _Tower(depths, *size.of((62_500, 100), (100, 2)))
    lookups, rounds = size.of((20_000, 15), (100, 2))
    gc.collect()
    gc.freeze()
    first = {depth: _first(tower, depth) for depth in depths}
    queries = interleaved(rounds, {str(d): _asked(tower, d, lookups) for d in depths})
    warm = interleaved(rounds, {str(d): _warm(tower, d, lookups) for d in depths})
    cold = interleaved(3, {str(d): _cold(tower, d, max(20, lookups // (d + 1))) for d in depths})
    gc.unfreeze()
    bars = {7: 1.1, 100: 1.2, 500: 1.5}
    rows = [row("one read's look-up on a root", queries["0"], "us")]
    for depth in depths[1:]:
        what, there = f"one read's look-up at depth {depth}", queries[str(depth)]
        rows.append(versus(what, there, "us", "a root's", queries["0"], at_most=bars[depth]))
    rows.append(row("locating one record of a root", warm["0"], "us"))
    for depth in depths[1:]:
        what, there = f"locating one record at depth {depth}, warm", warm[str(depth)]
        rows.append(versus(what, there, "us", "a root's", warm["0"], at_most=bars[depth]))
    for depth in depths[1:]:
        what, there = f"locating one record at depth {depth}, cold", cold[str(depth)]
        rows.append(versus(what, there, "us", "a root's", cold["0"]))
    rows += (
        row(f"flattening the lineage at depth {depth}, once", first[depth], "us")
        for depth in depths[1:]
    )
    lines = [
        Line("a read's look-up", [(d, median(queries[str(d)])) for d in depths]),
        Line("locating, warm", [(d, median(warm[str(d)])) for d in depths]),
        Line("locating, cold: the paper's recursion", [(d, median(cold[str(d)])) for d in depths]),
    ]
    chart = Chart(
        title="Looking up one record, by the depth of its fork",
        x="depth",
        y="microseconds",
        lines=lines,
        log_y=True,
    )
    return Found(rows, [chart])


def _first(tower: _Tower, depth: int) -> float:
    """The look-up that flattens the lineage."""
    forest, log = tower.replica.state.replica.forest, tower.log(depth)
    log.lineage = None
    began = busy()
    locate(forest, log, 0)
    return (busy() - began) / 1e3


def _warm(tower: _Tower, depth: int, count: int) -> Callable[[], float]:
    forest, log = tower.replica.state.replica.forest, tower.log(depth)
    positions = tower.positions(depth, count)

    def work() -> None:
        for position in positions:
            owner, there = locate(forest, log, position)
            owner.index.at_or_before(there)

    return lambda: busy_seconds(work) / count * 1e6


def _cold(tower: _Tower, depth: int, count: int) -> Callable[[], float]:
    log, positions = tower.log(depth), tower.positions(depth, count)

    def work() -> None:
        for position in positions:
            descend(log, position)

    return lambda: busy_seconds(work) / count * 1e6


def _asked(tower: _Tower, depth: int, count: int) -> Callable[[], float]:
    """The query that a broker sends for a read of one record."""
    answer, id = tower.replica.state.answer, tower.logs[depth]
    queries = [Resolve(id, position, 1, 1 << 20) for position in tower.positions(depth, count)]
    assert isinstance(answer(queries[0]), Resolved)

    def work() -> None:
        for query in queries:
            answer(query)

    return lambda: busy_seconds(work) / count * 1e6
