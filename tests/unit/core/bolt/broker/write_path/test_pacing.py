"""How long objects wait for company: told arrivals and PUTs, and nothing else."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.broker.write_path.pacing import Pacing
from anabranch.core.limits import Limits
from anabranch.core.types import MS, NEVER, Nanoseconds

BEGIN = 1_750_000_000_000 * MS


class Run:
    """A broker of one log as far as pacing matters: a store whose PUTs all take the same time."""

    def __init__(self, put_ms: float, **limits: int) -> None:
        self.limits = Limits(**limits)
        self.pacing = Pacing(self.limits)
        self.put_takes: Nanoseconds = int(put_ms * MS)
        self.now: Nanoseconds = BEGIN
        self.flying: list[Nanoseconds] = []
        self.put_at: list[Nanoseconds] = []
        self.waited: list[Nanoseconds] = []
        self.open: list[Nanoseconds] = []

    def appends(self, arrivals: Sequence[Nanoseconds]) -> None:
        for at in arrivals:
            self._until(at)
            self.now = at
            self.pacing.arrived(at, 1)
            self.open.append(at)
            self._close()
        self._until(arrivals[-1] + 60_000 * MS)

    def _until(self, until: Nanoseconds) -> None:
        """PUTs end, and what waits is closed when it may be."""
        while True:
            lands = self.flying[0] if self.flying else NEVER
            closes = self._close_at() if self._may_close else NEVER
            if min(lands, closes) > until:
                return
            self.now = max(self.now, min(lands, closes))
            if lands <= self.now:
                del self.flying[0]
                self.pacing.put_took(self.put_takes)
            self._close()

    @property
    def _may_close(self) -> bool:
        return bool(self.open) and len(self.flying) < self.limits.puts_in_flight_max

    def _close_at(self) -> Nanoseconds:
        return self.pacing.close_at(self.now, self.open[0], not self.flying)

    def _close(self) -> None:
        if self._may_close and self._close_at() <= self.now:
            self.pacing.put(self.now)
            self.put_at.append(self.now)
            self.flying.append(self.now + self.put_takes)
            self.waited += [self.now - at for at in self.open]
            self.open.clear()

    @property
    def mean_wait_ms(self) -> float:
        return sum(self.waited) / len(self.waited) / MS

    def puts_per_s(self) -> float:
        return len(self.put_at) / ((self.put_at[-1] - self.put_at[0]) / (1_000 * MS))


def every(ms: float, seconds: int = 4) -> list[Nanoseconds]:
    return [BEGIN + int(turn * ms * MS) for turn in range(int(seconds * 1_000 / ms))]


@pytest.mark.parametrize("put_ms", [0.5, 10, 50, 100])
@pytest.mark.parametrize("ms", [20, 50, 200])
def test_appends_that_come_one_by_one_wait_for_nobody(put_ms: float, ms: float) -> None:
    run = Run(put_ms)
    run.appends(every(ms))
    assert set(run.waited) == {0}
    assert len(run.put_at) == len(run.waited)


@pytest.mark.parametrize("put_ms", [10, 50, 75])
@pytest.mark.parametrize("ms", [0.05, 0.5, 2])
def test_on_a_slow_store_appends_gather_and_hardly_wait(put_ms: float, ms: float) -> None:
    run = Run(put_ms)
    run.appends(every(ms))
    assert max(run.waited) <= 5 * MS
    assert run.puts_per_s() <= 201


@pytest.mark.parametrize("ms", [0.05, 0.5, 5])
def test_on_a_fast_store_they_wait_no_longer_than_a_put_and_a_half(ms: float) -> None:
    run = Run(0.6)
    run.appends(every(ms))
    assert max(run.waited) <= 0.9 * MS


def test_without_linger_nothing_waits_while_there_is_room() -> None:
    run = Run(50, linger_ms=0, puts_in_flight_max=1_000)
    run.appends(every(0.5))
    assert set(run.waited) == {0}


def test_a_bound_on_requests_is_kept_and_appends_wait_for_it() -> None:
    run = Run(50, puts_per_s_max=10)
    run.appends(every(1, seconds=10))
    assert run.puts_per_s() == pytest.approx(10, rel=0.12)
    assert run.mean_wait_ms == pytest.approx(50, rel=0.2)


def test_a_bound_on_requests_does_not_slow_what_keeps_below_it() -> None:
    run = Run(50, puts_per_s_max=10)
    run.appends(every(150))
    assert set(run.waited) == {0}


gaps = st.lists(st.integers(0, 300), min_size=1, max_size=200)


@given(gaps, st.integers(1, 200), st.integers(0, 20), st.sampled_from([1, 30, 200]))
def test_no_window_holds_more_puts_than_are_paid_for(
    gaps_ms: list[int], puts_per_s_max: int, linger_ms: int, put_ms: int
) -> None:
    run = Run(put_ms, puts_per_s_max=puts_per_s_max, linger_ms=linger_ms)
    arrivals = [BEGIN + sum(gaps_ms[:turn]) * MS for turn in range(1, len(gaps_ms) + 1)]
    run.appends(arrivals)
    assert len(run.waited) == len(arrivals), "none waits for ever"
    for turn, first in enumerate(run.put_at):
        for more, last in enumerate(run.put_at[turn:], 1):
            paid = (last - first) / (1_000 * MS) * puts_per_s_max + puts_per_s_max + 1
            assert more <= paid + 1e-6


@given(gaps, st.integers(0, 20), st.sampled_from([1, 30, 200]))
def test_nothing_waits_longer_than_it_may(gaps_ms: list[int], linger_ms: int, put_ms: int) -> None:
    run = Run(put_ms, linger_ms=linger_ms, puts_in_flight_max=1_000)
    run.appends([BEGIN + sum(gaps_ms[:turn]) * MS for turn in range(1, len(gaps_ms) + 1)])
    assert max(run.waited) <= linger_ms * MS


@given(gaps, st.integers(1, 20))
def test_what_is_expected_is_what_came_lately(gaps_ms: list[int], linger_ms: int) -> None:
    pacing, now = Pacing(Limits(linger_ms=linger_ms)), BEGIN
    span = linger_ms * MS
    arrivals: list[Nanoseconds] = []
    for gap in gaps_ms:
        now += gap * MS // 10
        arrivals.append(now)
        pacing.arrived(now, 1)
        expected = pacing.expected(now, span)
        assert expected <= sum(at > now - 2 * span for at in arrivals)
        assert pacing.expected(now, span // 2) <= expected
        assert pacing.expected(now + 2 * span, span) == 0
        now += 2 * span if gap > 290 else 0
