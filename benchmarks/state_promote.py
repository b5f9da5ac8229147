"""Promoting a fork with 10 to 100,000 records after its point (AgileLog, 5.6)."""

import gc

from anabranch.core.bolt.commands import Promote
from benchmarks.rows import Row, at_most, beside, median
from benchmarks.state_world import World, settle

BATCH = 16


def run(
    records: tuple[int, ...] = (10, 1_000, 100_000), prefix: int = 1_000_000, rounds: int = 9
) -> list[Row]:
    """Half of the records come to the fork, half to the parent, in turns: the most to merge.

    The shortest shows what a promotion costs at least, the others what each extent adds.
    """
    world = World()
    parent = world.root("root")
    world.fill(parent, prefix, BATCH)
    _promoted(world, records[1])  # warm
    settle()
    took: list[list[float]] = [[] for _ in records]
    for _ in range(rounds):
        for turn, count in enumerate(records):
            took[turn].append(_promoted(world, count))
    gc.unfreeze()
    rows: list[Row] = []
    for count, times in zip(records, took, strict=True):
        what = f"promote with {count:,} records after the fork point"
        rows.append(beside(what, median(times), "us"))
        if count > records[0]:
            more = (median(times) - rows[0].value) / (_extents(count) - _extents(records[0]))
            rows.append(at_most(f"{what}, each extent", more, "us", 2))
    return rows


def _extents(records: int) -> int:
    return max(2, records // BATCH)


def _promoted(world: World, records: int) -> float:
    """Microseconds that the promotion takes of a fork made and filled for it."""
    parent = next(iter(world.state.replica.forest.logs))
    fork = world.fork(parent, promotable=True)
    for turn in range(_extents(records)):
        world.append(fork if turn % 2 else parent, min(BATCH, records))
    return world.timed(Promote(fork)) / 1e3
