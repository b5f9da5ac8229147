"""The bucket behind a quota against one that counts in fractions, drop by drop."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import BadRequest
from anabranch.core.quota import BURST_MS_MAX, RATE_MAX, Bucket, Quota
from anabranch.core.types import MS

SECOND = 1_000 * MS
START = 1_700_000_000 * SECOND

RATES = st.integers(1, RATE_MAX) | st.sampled_from([1, 7, 1_000, 1 << 20])
BURSTS = st.integers(1, BURST_MS_MAX)
PAUSES = st.integers(0, 10 * SECOND) | st.integers(0, 3)
AMOUNTS = st.integers(1, 1 << 22) | st.integers(1, 3)
TAKINGS = st.lists(st.tuples(PAUSES, AMOUNTS), max_size=40)


@given(RATES, BURSTS, TAKINGS)
def test_it_lets_pass_what_a_bucket_that_knows_fractions_does(
    rate: int, burst_ms: int, takings: list[tuple[int, int]]
) -> None:
    bucket = Bucket(rate, burst_ms)
    depth = level = Fraction(rate * burst_ms, 1_000)
    now = START
    for pause, amount in takings:
        now += pause
        level = min(depth, level + Fraction(pause * rate, SECOND))
        until = bucket.owes_until
        # It tells nanoseconds, and a part of one may still be owed.
        slack = Fraction(rate, SECOND)
        assert (until <= now) if level >= 0 else (level + slack >= 0 or until > now)
        assert abs(bucket.used(now) - (depth - level)) <= slack + 1
        if until <= now:
            bucket.take(now, amount)
            level -= amount


@given(RATES, BURSTS, TAKINGS)
def test_over_any_stretch_of_time_no_more_passes_than_the_quota_says(
    rate: int, burst_ms: int, takings: list[tuple[int, int]]
) -> None:
    bucket, now = Bucket(rate, burst_ms), START
    taken: list[tuple[int, int]] = []
    for pause, amount in takings:
        now += pause
        if bucket.owes_until <= now:
            bucket.take(now, amount)
            taken.append((now, amount))
    for first, (begin, _) in enumerate(taken):
        passed = 0
        for at, amount in taken[first:]:
            # Its last taking apart: who owes nothing may take as much as he needs.
            assert passed <= Fraction(rate * (burst_ms * MS + at - begin + 1), SECOND)
            passed += amount


@given(RATES, BURSTS, AMOUNTS)
def test_who_comes_when_told_is_let_pass(rate: int, burst_ms: int, amount: int) -> None:
    bucket = Bucket(rate, burst_ms)
    bucket.take(START, amount + rate * burst_ms // 1_000)
    until = bucket.owes_until
    assert until >= START
    bucket.take(until, amount)
    assert bucket.owes_until >= until


def test_a_bucket_not_drawn_from_is_full_and_no_fuller() -> None:
    bucket = Bucket(1_000, 500)
    for hours in (1, 2):
        now = START + hours * 3_600 * SECOND
        assert bucket.used(now) == 0
        bucket.take(now, 500)
        assert bucket.owes_until == now
        bucket.take(now, 1)
        assert bucket.owes_until == now + MS


@pytest.mark.parametrize(
    "quota",
    [
        Quota(append_bytes_per_s=0),
        Quota(append_records_per_s=RATE_MAX + 1),
        Quota(read_bytes_per_s=-1),
        Quota(1, burst_ms=0),
        Quota(1, burst_ms=BURST_MS_MAX + 1),
    ],
)
def test_a_quota_that_no_log_can_be_held_to_is_refused(quota: Quota) -> None:
    with pytest.raises(BadRequest, match="of orders: it lies between 1 and"):
        quota.check("orders")


def test_the_least_and_the_greatest_quota_are_granted() -> None:
    Quota(1, 1, 1, 1).check("orders")
    Quota(RATE_MAX, RATE_MAX, RATE_MAX, BURST_MS_MAX).check("orders")
    assert Quota().limits_nothing
    assert not Quota(read_bytes_per_s=1).limits_nothing
