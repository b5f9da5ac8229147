"""A shard against a naive account, whatever leader, controller and clients do (E4, E5, E9)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.erwin.shard.random_leader import Scene

from anabranch.core.erwin.protocol.rows import Mode


@pytest.mark.parametrize("mode", list(Mode))
@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 80))
def test_what_is_stable_is_shown_for_good_and_all_of_it(mode: Mode, seed: int, steps: int) -> None:
    Scene(seed, mode).run(steps)
