"""Forks inside the state machine, of parents of 1 to 25 million entries (AgileLog, 5.4; fig. 5)."""

import gc
from time import thread_time_ns

from anabranch.core.bolt.commands import ForkLog, Squash
from anabranch.core.types import Kind, LogId
from benchmarks.baselines import copied
from benchmarks.rows import Row, at_least, at_most, beside, median, percentile, ratio_at_most
from benchmarks.state_world import World, settle

RECORDS = 16


def run(
    lengths: tuple[int, ...] = (1_000_000, 5_000_000, 25_000_000),
    alive: int = 10_000,
    forks: int = 20_000,
) -> list[Row]:
    """Forks are made and the oldest squashed in turn, so that `alive` are there all the time."""
    world = World()
    parents: list[LogId] = []
    living: dict[LogId, list[LogId]] = {}
    for turn, entries in enumerate(lengths):
        parent = world.root(f"root-{turn}")
        world.fill(parent, entries, RECORDS)
        parents.append(parent)
        living[parent] = [world.fork(parent) for _ in range(alive // len(lengths))]
    settle()
    took: dict[LogId, list[float]] = {parent: [] for parent in parents}
    for turn in range(forks):
        parent = parents[turn % len(parents)]
        command = ForkLog(parent, Kind.CONTINUOUS, by="bench", why="to be measured")
        took[parent].append(world.timed(command) / 1e3)
        world.apply(Squash(living[parent].pop(0)))
        living[parent].append(LogId(world.state.replica.next_id - 1))
    rows: list[Row] = []
    for parent, entries in zip(parents, lengths, strict=True):
        rows += _rows(entries, sorted(took[parent]), rows[0] if rows else None)
    rows += _copies(world, parents[-1], lengths[-1], rows[-2])
    gc.unfreeze()
    return rows


def _rows(entries: int, took: list[float], shortest: Row | None) -> list[Row]:
    what = f"fork of {entries:,} entries"
    rows = [
        at_most(f"{what}, p50", percentile(took, 50), "us", 20),
        at_most(f"{what}, p99", percentile(took, 99), "us", 80),
    ]
    if shortest is not None:
        flat = ratio_at_most(f"{what}, against the shortest", rows[0].value, "us", shortest, 1.2)
        return [flat, *rows]
    return rows


def _copies(world: World, parent: LogId, entries: int, fork: Row) -> list[Row]:
    """The metadata-copy variant, for the same parent."""
    index, took = world.log(parent).index, list[float]()
    for _ in range(3):
        start = thread_time_ns()
        copied(index)
        took.append((thread_time_ns() - start) / 1e3)
    copy = beside(f"metadata copy of {entries:,} entries", median(took), "us", fork)
    assert copy.ratio is not None
    return [copy, at_least("fork, times faster than the copy", copy.ratio, "x", 1_000)]
