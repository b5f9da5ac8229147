"""What requests cost, in all and of one log's share."""

import pytest

from anabranch.core.usage import Share
from anabranch.shell.objects.s3.meter import Kind, Meter
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.telemetry.metrics import render


@pytest.fixture
def taxi() -> Meter:
    return Meter(S3Settings(bucket="logs", price_put=5.0, price_get=0.5, price_out=2.0))


def test_the_bill_is_requests_and_bytes_at_their_prices(taxi: Meter) -> None:
    for kind in Kind:
        taxi.asked(kind)
    taxi.put(1 << 30)
    taxi.got(1 << 29)
    counters = taxi.counters
    counted = (counters.puts, counters.parts, counters.lists, counters.gets, counters.heads)
    assert counted == (1, 1, 1, 1, 1)
    assert counters.deletes == 1
    assert counters.cost == pytest.approx(3 * 0.005 + 2 * 0.0005 + 1.0)
    assert b"anabranch_s3_cost_total 1.016" in render({"s3": counters}, {})


def test_a_share_costs_what_its_requests_and_bytes_do(taxi: Meter) -> None:
    half = Share(puts=0.5, gets=2.0, put_bytes=1 << 30, got_bytes=1 << 30)
    assert taxi.cost(half) == pytest.approx(0.0025 + 0.001 + 2.0)
