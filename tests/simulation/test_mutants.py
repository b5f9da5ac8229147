"""The simulator sees what it must: the protocol broken by hand; `make mutants` breaks all of it."""

import pytest

from anabranch_sim.bolt.group_mutants import MUTINIES
from anabranch_sim.bolt.mutants import BREAKAGES
from anabranch_sim.mutants import hunt

ALL = [*BREAKAGES, *MUTINIES]
QUICK = ("a zombie's group is journaled", "a standby leaves out an entry", "nothing is said again")
"""Of a group's; each is found within a few seeds."""


def test_there_are_forty_mutants() -> None:
    assert len(ALL) >= 40
    assert len({breakage.name for breakage in ALL}) == len(ALL)


@pytest.mark.parametrize(
    "breakage",
    [*BREAKAGES[:4], *(each for each in MUTINIES if each.name in QUICK)],
    ids=lambda breakage: breakage.name,
)
def test_a_mutant_is_found(breakage: object) -> None:
    found = hunt(breakage, seeds_max=200)  # pyright: ignore[reportArgumentType]
    assert found.seed is not None, f"{found.mutant} survived {found.seeds} seeds"
