"""The clock that machines are told: even, whatever the wall clock does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.shell.runtime.clock import Clock

S = 1_000_000_000


class Clocks:
    """The machine's two clocks, as a test wants them."""

    def __init__(self) -> None:
        self.monotonic = 7 * S
        self.wall = 1_000 * S

    def run(self, span: int) -> None:
        self.monotonic += span
        self.wall += span


def clock_of(clocks: Clocks) -> Clock:
    """Those of the process are left as they are: other threads live by them."""
    return Clock(steady=lambda: clocks.monotonic, wall=lambda: clocks.wall)


def test_it_is_the_wall_clock() -> None:
    clocks = Clocks()
    clock = clock_of(clocks)
    for _ in range(100):
        clocks.run(S // 3)
        assert clock.now() == clocks.wall


@pytest.mark.parametrize("step", [-5 * S, 5 * S])
def test_a_step_is_followed_slowly_and_to_the_end(step: int) -> None:
    clocks = Clocks()
    clock = clock_of(clocks)
    clocks.wall += step
    clock.now()
    clocks.run(10 * S)
    assert abs(clock.now() - (clocks.wall - step)) <= S // 10
    for _ in range(2_000):
        clocks.run(S)
        clock.now()
    assert abs(clock.now() - clocks.wall) <= 1_000_000


@given(
    st.lists(st.tuples(st.integers(1, 3 * S), st.integers(-9 * S, 9 * S)), min_size=2, max_size=50)
)
def test_it_never_goes_back_and_its_pace_is_even(turns: list[tuple[int, int]]) -> None:
    clocks = Clocks()
    clock = clock_of(clocks)
    before = clock.now()
    for span, step in turns:
        clocks.run(span)
        clocks.wall += step
        now = clock.now()
        assert abs((now - before) - span) <= span // 200 + 2
        before = now
