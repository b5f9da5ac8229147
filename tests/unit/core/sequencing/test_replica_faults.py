"""Whatever is lost, repeated, late or restarted: what was acknowledged is in the log once, in an
order that agrees with real time, and what was read never changes (LazyLog, 4; E1 to E4, E6, E7).
"""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.sequencing.world import World

from anabranch.core.limits import Limits

NAMES = ("a", "b", "c")
WEIGHTS = {
    "deliver": 16,
    "any": 4,
    "write": 9,
    "append": 6,
    "repeat": 2,
    "partly": 2,
    "order": 9,
    "settle": 5,
    "restart": 3,
    "change": 2,
    "wait": 2,
    "start": 2,
    "lose": 1,
    "crash": 1,
    "attempt": 1,
    "seal": 1,
    "prepare": 1,
    "configure": 1,
    "tail": 1,
}
"""How often each of them comes."""

STEP = st.tuples(
    st.sampled_from([what for what, weight in WEIGHTS.items() for _ in range(weight)]),
    st.integers(0, 41),
    st.integers(0, 41),
)
STEPS = st.lists(STEP, max_size=120)


def some(number: int) -> list[str]:
    """One, two or three of the nodes."""
    first = number % 3
    return [NAMES[(first + each) % 3] for each in range(number % 4 or 3)]


def step(world: World, what: str, which: int, other: int) -> None:
    name = NAMES[which % 3]
    match what:
        case "deliver":
            world.deliver(0, kept=False)
        case "any":
            world.deliver(which, kept=other % 4 == 0)
        case "write":
            world.write(name)
        case "append":
            world.append(1 + which % 2)
        case "repeat":
            world.append(1 + which % 2, repeat=other)
        case "partly":
            world.append(1 + which % 2, without=name)
        case "order":
            world.order(name, 1 + other % 3)
        case "lose":
            world.lose(which)
        case "crash":
            world.crash(name, kept=other % 2 == 0)
        case "restart":
            world.restart(name)
        case "wait":
            world.group.wait((20, 100, 2_000)[which % 3])
        case "tail":
            world.ask_tail()
        case _:
            change(world, what, which, other)
    world.check()


def change(world: World, what: str, which: int, other: int) -> None:
    """What the controller does, or what everybody does."""
    match what:
        case "attempt":
            world.attempt_view()
        case "seal":
            world.seal()
        case "prepare":
            world.prepare(which, some(other))
        case "configure":
            world.configure(which)
        case "start":
            world.start()
        case "settle":
            world.settle()
        case "change":
            world.attempt_view()
            world.settle()
            world.prepare(which, some(other))
            world.settle()
            world.configure(other)
        case _:
            raise AssertionError(what)


def run(world: World, steps: list[tuple[str, int, int]]) -> None:
    for what, which, other in steps:
        step(world, what, which, other)
    world.recover()


@given(STEPS)
def test_with_journals(steps: list[tuple[str, int, int]]) -> None:
    run(World(NAMES, fsync=True), steps)


@given(STEPS)
def test_with_small_snapshots_and_rings(steps: list[tuple[str, int, int]]) -> None:
    limits = Limits(
        snapshot_bytes=300,
        batch_bytes_max=500,
        ring_bytes_max=1_000,
        ring_unstable_max=3,
        producer_appends_max=100,
    )
    run(World(NAMES, fsync=True, limits=limits), steps)


@given(STEPS)
def test_in_memory(steps: list[tuple[str, int, int]]) -> None:
    run(World(NAMES, fsync=False), steps)


@given(STEPS)
def test_with_data_on_shards(steps: list[tuple[str, int, int]]) -> None:
    run(World(NAMES, fsync=True, data_on_shards=True), steps)


@pytest.mark.parametrize("fsync", [True, False], ids=["fsync", "memory"])
def test_for_longer(fsync: bool) -> None:
    """Long runs, in which faults come now and then."""
    kinds = [what for what, weight in WEIGHTS.items() for _ in range(weight)]
    for seed in range(100):
        random = Random(seed)
        steps = [
            (random.choice(kinds), random.randrange(42), random.randrange(42)) for _ in range(200)
        ]
        run(World(NAMES, fsync=fsync), steps)
