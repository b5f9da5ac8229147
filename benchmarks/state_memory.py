"""What 1,000 continuous forks over a million records take (AgileLog, 6; spec 12.8).

Counted by tracemalloc: what the state's own objects take, without what the interpreter keeps spare.
"""

import gc
import tracemalloc

from benchmarks.baselines import NaiveTails
from benchmarks.rows import Row, at_most, beside
from benchmarks.state_world import World

MIB = 1 << 20
RECORDS = 1_000_000
FORKS = 1_000


def run(records: int = RECORDS, forks: int = FORKS) -> list[Row]:
    rows: list[Row] = []
    for batch, limit in ((16, 8), (1, 48)):
        gc.collect()
        tracemalloc.start()
        world = World()
        root = world.root("root")
        for turn in range(records // batch):
            world.append(root, batch)
            if turn % max(1, records // batch // forks) == 0:
                world.fork(root)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] / MIB
        tracemalloc.stop()
        what = f"{forks:,} continuous forks over {records:,} records, {batch} an extent"
        rows.append(at_most(what, taken, "MiB", limit))
    rows.append(_naive(records // 100, forks, rows[0]))
    return rows


def _naive(records: int, forks: int, ours: Row) -> Row:
    """A hundredth of it, scaled up: the whole doesn't fit into most machines."""
    gc.collect()
    tracemalloc.start()
    world = World(NaiveTails())
    root = world.root("root")
    for _ in range(forks):
        world.fork(root)
    for _ in range(records // 16):
        world.append(root, 16)
    taken = tracemalloc.get_traced_memory()[0] / MIB
    tracemalloc.stop()
    return beside("naive cForks in batches of 16, from a hundredth", taken * 100, "MiB", ours)
