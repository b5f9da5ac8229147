"""Look-ups in deep forks, flattened and by descending (AgileLog, 5.5.1; 6, look-up at depth 7)."""

import gc
import random
from collections.abc import Callable
from time import thread_time_ns

from anabranch.core.bolt.commands import Resolve
from anabranch.core.bolt.lineage import descend, slices
from anabranch.core.types import LogId
from benchmarks.rows import Row, beside, median, ratio_at_most
from benchmarks.state_world import World, settle

BARS = ((7, 1.1), (100, 1.2), (500, 1.5))


def run(extents: int = 100_000, asked: int = 4_000, rounds: int = 15) -> list[Row]:
    """Random positions of the prefix and of what came after, asked of a root and of its forks."""
    world = World()
    root = world.root("root")
    world.fill(root, extents, 16)
    chain: list[LogId] = [root]
    for _ in range(BARS[-1][0]):
        chain.append(world.fork(chain[-1]))
        world.append(chain[-1], 1)
    world.append(root, 16)
    settle()
    positions = random.Random(1).sample(range(extents * 16), asked)
    logs = [root, *(chain[depth] for depth, _ in BARS)]
    rows: list[Row] = []
    for what, call in (("entry of a record", _entry), ("Resolve of one record", _resolve)):
        took = _rounds(world, logs, positions, rounds, call)
        rows.append(beside(f"{what} in a root", median(took[0]), "us"))
        for (depth, bar), mine in zip(BARS, took[1:], strict=True):
            ratio = median([this / of_root for this, of_root in zip(mine, took[0], strict=True)])
            title, value = f"{what} at depth {depth}", rows_root(rows, what).value * ratio
            rows.append(ratio_at_most(title, value, "us", rows_root(rows, what), bar))
    cold = _rounds(world, logs, positions[:200], 3, _descend)
    for (depth, _), mine in zip(BARS, cold[1:], strict=True):
        title = f"cold: descending from depth {depth}"
        rows.append(beside(title, median(mine), "us", rows_root(rows, "entry of a record")))
    gc.unfreeze()
    return rows


def rows_root(rows: list[Row], what: str) -> Row:
    return next(row for row in rows if row.what == f"{what} in a root")


Call = Callable[[World, LogId, list[int]], None]


def _rounds(
    world: World, logs: list[LogId], positions: list[int], rounds: int, call: Call
) -> list[list[float]]:
    """Microseconds a look-up, log by log; the first round only warms."""
    took: list[list[float]] = [[] for _ in logs]
    for turn in range(rounds + 1):
        for each, log in enumerate(logs):
            start = thread_time_ns()
            call(world, log, positions)
            if turn:
                took[each].append((thread_time_ns() - start) / 1e3 / len(positions))
    return took


def _entry(world: World, id: LogId, positions: list[int]) -> None:
    forest, log = world.state.replica.forest, world.log(id)
    for position in positions:
        slices(forest, log, position, position + 1, 1, 1)


def _descend(world: World, id: LogId, positions: list[int]) -> None:
    log = world.log(id)
    for position in positions:
        descend(log, position)


def _resolve(world: World, id: LogId, positions: list[int]) -> None:
    answer = world.state.answer
    for position in positions:
        answer(Resolve(id, position, 1, 1))
