"""What requests cost, in all and by log."""

import pytest

from anabranch.core.types import LogId
from anabranch.shell.metrics import render
from anabranch.shell.s3 import meter
from anabranch.shell.s3.meter import Kind, Meter
from anabranch.shell.s3.settings import S3Settings

ROOT, FORK, QUIET = map(LogId, (1, 2, 3))


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


def test_an_objects_logs_bear_its_put_by_their_bytes(taxi: Meter) -> None:
    taxi.wrote([(ROOT, 300), (FORK, 100)])
    taxi.read([(FORK, 50)])
    shares = dict(taxi.by_log())
    assert (shares[ROOT].puts, shares[FORK].puts) == (0.75, 0.25)
    assert (shares[FORK].gets, shares[FORK].bytes_got) == (1.0, 50)
    total = sum(taxi.cost(share) for share in shares.values())
    assert total == pytest.approx(0.005 + 0.0005 + 50 * 2.0 / (1 << 30))


def test_the_log_that_was_idle_longest_joins_the_others(
    taxi: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "LOGS_MAX", 2)
    taxi.wrote([(QUIET, 10), (ROOT, 30)])
    taxi.read([(ROOT, 1)])
    taxi.wrote([(FORK, 5)])
    assert [log for log, _ in taxi.by_log()] == [ROOT, FORK]
    assert (taxi.others.puts, taxi.others.bytes_put) == (0.25, 10)
