"""A root's metadata appends with up to 10,000 continuous forks (AgileLog, 5.5.2; figs. 9, 10)."""

import gc
from time import thread_time

from anabranch.core.bolt.commands import Entry
from anabranch.core.types import LogId
from benchmarks.baselines import EagerTails, NaiveTails
from benchmarks.rows import Row, at_least, beside, median, ratio_at_least
from benchmarks.state_world import World, settle

FORKS = (0, 10, 100, 1_000, 10_000)


def run(commits: int = 2_000, rounds: int = 15, forks: tuple[int, ...] = FORKS) -> list[Row]:
    """Worlds take turns, so that whatever else the machine does falls on all of them."""
    worlds: list[tuple[World, LogId]] = []
    for count in forks:
        world = World()
        root = world.root("root")
        for _ in range(count):
            world.fork(root)
        worlds.append((world, root))
    settle()
    rates: list[list[float]] = [[] for _ in forks]
    for _ in range(rounds):
        for turn, (world, root) in enumerate(worlds):
            rates[turn].append(_rate(world, root, commits))
    gc.unfreeze()
    rows = [beside("appends of a root without forks", median(rates[0]), "commits/s")]
    for count, rate in zip(forks[1:], rates[1:], strict=True):
        against = median([mine / none for mine, none in zip(rate, rates[0], strict=True)])
        what = f"appends of a root with {count:,} continuous forks"
        value = rows[0].value * against
        rows.append(ratio_at_least(what, value, "commits/s", rows[0], 0.97))
    for count in forks[1:]:
        for what, tails in (("eager tails", EagerTails()), ("naive cForks", NaiveTails())):
            rate = _of_variant(tails, count)
            rows.append(beside(f"{what}, {count:,} forks", rate, "commits/s", rows[0]))
    return rows


def throughput(logs: int = 64, commits: int = 1_500, rounds: int = 9) -> list[Row]:
    """Extents that one core commits in a second, in objects of one batch for each log."""
    rows: list[Row] = []
    for what, producers in (("without producers", False), ("with producers", True)):
        rates: list[float] = []
        for _ in range(rounds):
            world = World()
            ids = [world.root(f"root-{turn}") for turn in range(logs)]
            entries = [world.objects_of(ids, turn, producers=producers) for turn in range(commits)]
            settle()
            rates.append(logs * commits / _seconds(world, entries))
        rows.append(at_least(f"extents committed, {what}", median(rates), "extents/s", 300_000))
    gc.unfreeze()
    return rows


def _rate(world: World, root: LogId, commits: int) -> float:
    entries = [world.entry(world.commit_of([root], 16)) for _ in range(commits)]
    return commits / _seconds(world, entries)


def _seconds(world: World, entries: list[Entry]) -> float:
    apply = world.state.apply
    start = thread_time()
    for entry in entries:
        apply(entry)
    return thread_time() - start


def _of_variant(tails: EagerTails, forks: int, budget_s: float = 0.3) -> float:
    """As many commits as fit into a moment: the naive variant would fill the memory with more."""
    world = World(tails)
    root = world.root("root")
    for _ in range(forks):
        world.fork(root)
    entries, spent = 0, 0.0
    while spent < budget_s:
        spent += 1 / _rate(world, root, 1)
        entries += 1
    return entries / spent
