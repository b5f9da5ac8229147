"""Healthy, degraded, unavailable, and back: by what was met with alone."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.health import (
    DEGRADED_AFTER,
    HEALTHY_AFTER,
    LOOK_MS,
    LOOK_MS_MAX,
    UNAVAILABLE_AFTER,
    Health,
    Standing,
)
from anabranch.core.types import MS


def unavailable(at: int = 0) -> Health:
    health = Health()
    for _ in range(UNAVAILABLE_AFTER):
        health.failed(at)
    return health


def test_a_failure_now_and_then_changes_nothing() -> None:
    health = Health()
    for turn in range(100):
        health.failed(turn)
        health.succeeded()
        assert health.standing is Standing.HEALTHY


def test_failures_in_a_row_degrade_and_then_end_it() -> None:
    health = Health()
    seen: list[Standing] = []
    for _ in range(UNAVAILABLE_AFTER):
        health.failed(0)
        seen.append(health.standing)
    assert seen.index(Standing.DEGRADED) == DEGRADED_AFTER - 1
    assert seen.index(Standing.UNAVAILABLE) == UNAVAILABLE_AFTER - 1
    assert health.failures == UNAVAILABLE_AFTER


def test_one_success_opens_the_door_and_some_more_in_a_row_heal() -> None:
    health = unavailable()
    assert health.wait(0) > 0
    health.succeeded()
    assert (health.standing, health.wait(0)) == (Standing.DEGRADED, 0)
    for _ in range(HEALTHY_AFTER - 2):
        health.succeeded()
    assert health.standing is Standing.DEGRADED
    health.failed(0)
    for _ in range(HEALTHY_AFTER - 1):
        health.succeeded()
    assert health.standing is Standing.DEGRADED
    health.succeeded()
    assert health.standing is Standing.HEALTHY


def test_while_it_is_unavailable_one_at_a_time_looks_ever_more_seldom() -> None:
    health = unavailable(at=5)
    now, waits = 5, list[int]()
    for _ in range(8):
        wait = health.wait(now)
        waits.append(wait // MS)
        now += wait
        assert health.wait(now) == 0, "it is time to look"
        assert health.wait(now) > 0, "somebody looks already"
        health.failed(now)
    assert waits == [LOOK_MS, 200, 400, 800, 1_600, 2_000, LOOK_MS_MAX, LOOK_MS_MAX]


@given(st.lists(st.one_of(st.none(), st.integers(0, 10**12))))
def test_nothing_ends_it_for_good(events: list[int | None]) -> None:
    """Whatever happened: it lets a call through within the longest interval, and one heals."""
    health = Health()
    now = 0
    for event in events:
        if event is None:
            health.succeeded()
        else:
            now = max(now, event)
            health.failed(now)
    wait = health.wait(now)
    assert wait <= LOOK_MS_MAX * MS
    if wait:
        assert health.wait(now + wait) == 0
    for _ in range(HEALTHY_AFTER):
        health.succeeded()
    assert health.standing is Standing.HEALTHY
