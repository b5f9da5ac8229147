"""Seeds in portions of one test each: the first few hundred for every change, all for the night."""

import pytest
from _pytest.mark import ParameterSet

IN_ONE_TEST = 20
FOR_A_CHANGE = 300


def chunks(seeds: int) -> list[ParameterSet]:
    """The first seed of each portion."""
    return [
        pytest.param(first, marks=() if first < FOR_A_CHANGE else pytest.mark.nightly)
        for first in range(0, seeds, IN_ONE_TEST)
    ]
