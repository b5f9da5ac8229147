"""Promoting a fork with 10 to 100,000 records after its point (AgileLog, 5.6)."""

import gc

from anabranch.core.bolt.commands import Promote
from benchmarks.rows import Row, at_most, beside, median
from benchmarks.state_world import World, settle

BATCH = 16


def run(
    records: tuple[int, ...] = (10, 1_000, 100_000), prefix: int = 100_000, rounds: int = 7
) -> list[Row]:
    """Half of the records come to the fork, half to the parent, in turns: the most there is to merge."""
    rows: list[Row] = []
    for count in records:
        batch = min(BATCH, count)
        extents = max(2, count // batch)
        took: list[float] = []
        for _ in range(rounds):
            world = World()
            parent = world.root("root")
            world.fill(parent, prefix, BATCH)
            fork = world.fork(parent, promotable=True)
            for turn in range(extents):
                world.append(fork if turn % 2 else parent, batch)
            settle()
            took.append(world.timed(Promote(fork)) / 1e3)
        what = f"promote with {count:,} records after the fork point"
        rows.append(beside(what, median(took), "us"))
        if extents > 10:
            rows.append(at_most(f"{what}, an extent", median(took) / extents, "us", 2))
    gc.unfreeze()
    return rows
