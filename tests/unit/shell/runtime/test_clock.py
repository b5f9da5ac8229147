"""The clock that machines are told: even, whatever the wall clock does."""

import time

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


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return install(monkeypatch)


def install(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(time, "monotonic_ns", lambda: clocks.monotonic)
    monkeypatch.setattr(time, "time_ns", lambda: clocks.wall)
    return clocks


def test_it_is_the_wall_clock(clocks: Clocks) -> None:
    clock = Clock()
    for _ in range(100):
        clocks.run(S // 3)
        assert clock.now() == clocks.wall


@pytest.mark.parametrize("step", [-5 * S, 5 * S])
def test_a_step_is_followed_slowly_and_to_the_end(clocks: Clocks, step: int) -> None:
    clock = Clock()
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
    with pytest.MonkeyPatch.context() as monkeypatch:
        clocks = install(monkeypatch)
        clock = Clock()
        before = clock.now()
        for span, step in turns:
            clocks.run(span)
            clocks.wall += step
            now = clock.now()
            assert abs((now - before) - span) <= span // 200 + 2
            before = now
