"""The simulator sees what it must: the protocol broken by hand; `make mutants` breaks all of it."""

import pytest

from anabranch_sim.breakages import BREAKAGES
from anabranch_sim.mutants import hunt


def test_there_are_twenty_mutants() -> None:
    assert len(BREAKAGES) >= 20
    assert len({breakage.name for breakage in BREAKAGES}) == len(BREAKAGES)


@pytest.mark.parametrize("breakage", BREAKAGES[:4], ids=lambda breakage: breakage.name)
def test_a_mutant_is_found(breakage: object) -> None:
    found = hunt(breakage, seeds_max=200)  # pyright: ignore[reportArgumentType]
    assert found.seed is not None, f"{found.mutant} survived {found.seeds} seeds"
