"""The quota of a log whose machines know none, as the server in front of them enforces it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.shell.nodes import Client, Node, run, until
from tests.unit.shell.server.test_belfast_connections import acknowledge
from tests.unit.shell.server.test_belfast_rights import House

from anabranch.core.belfast.protocol.messages import Append, Appended
from anabranch.core.errors import QuotaExceeded
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Requests
from anabranch.core.quota import Quota
from anabranch.core.records import batch as batches
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS
from anabranch.shell.server.append_limits import REMEMBERED, AppendLimits

LIMITS = Limits()
SECOND = 1_000 * MS


class Clock:
    def __init__(self) -> None:
        self.now = 5 * SECOND

    def __call__(self) -> int:
        return self.now


def batch(records: int, value: bytes = b"x") -> bytes:
    return encode([Record(value)] * records, now=0)


def limits(quota: Quota | None, clock: Clock) -> AppendLimits:
    made = AppendLimits("ticks", LIMITS, clock)
    made.set(quota)
    return made


def test_without_a_quota_everything_passes() -> None:
    made = limits(None, Clock())
    assert not made.active
    assert all(made.refuse(batch(1_000)) is None for _ in range(100))


def test_what_is_over_is_refused_with_the_time_to_wait() -> None:
    clock = Clock()
    made = limits(Quota(append_records_per_s=10, burst_ms=1_000), clock)
    assert made.refuse(batch(15)) is None, "a log without debt may overdraw once"
    refused = made.refuse(batch(1))
    assert isinstance(refused, QuotaExceeded)
    assert refused.facts == {
        "log": "ticks",
        "quota": "append_records_per_s",
        "limit": 10,
        "used": 15,
        "retry_after_ms": 500,
    }
    clock.now += 500 * MS
    assert made.refuse(batch(1)) is None, "whoever waited as long as was asked passes"


def test_bytes_are_those_of_the_batch_as_it_is_sent() -> None:
    clock = Clock()
    size = len(batch(1, b"y" * 900))
    made = limits(Quota(append_bytes_per_s=size, burst_ms=1), clock)
    assert made.refuse(batch(1, b"y" * 900)) is None
    refused = made.refuse(batch(1))
    assert refused is not None
    assert refused.facts["quota"] == "append_bytes_per_s"
    assert refused.facts["retry_after_ms"] == 999


def test_the_same_quota_set_again_forgives_nothing() -> None:
    made = limits(Quota(append_records_per_s=1), Clock())
    made.refuse(batch(100))
    made.set(Quota(append_records_per_s=1))
    assert made.refuse(batch(1)) is not None
    made.set(Quota(append_records_per_s=2))
    assert made.refuse(batch(1)) is None, "another quota begins anew"
    made.set(Quota())
    assert not made.active


@pytest.mark.parametrize("count", [-1, 0, LIMITS.batch_records_max + 1, 2**31 - 1])
def test_a_batch_that_lies_about_its_records_uses_up_nothing(count: int) -> None:
    made = limits(Quota(append_records_per_s=1), Clock())
    lie = bytearray(batch(1))
    lie[57:61] = count.to_bytes(4, "big", signed=True)
    assert batches.measure(lie)[1] == count
    assert made.refuse(bytes(lie)) is None
    assert made.refuse(b"no batch") is None
    assert made.refuse(batch(1)) is None, "nothing was owed"


@given(
    st.integers(1, 50),
    st.integers(1, 3_000),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 40)), max_size=60),
)
def test_no_stretch_of_time_gets_more_than_burst_and_rate(
    rate: int, burst_ms: int, appends: list[tuple[int, int]]
) -> None:
    clock = Clock()
    made = limits(Quota(append_records_per_s=rate, burst_ms=burst_ms), clock)
    passed: list[tuple[int, int]] = []
    for pause_ms, records in appends:
        clock.now += pause_ms * MS
        refused = made.refuse(batch(records))
        if refused is None:
            passed.append((clock.now, records))
        else:
            wait = refused.facts["retry_after_ms"]
            assert isinstance(wait, int)
            assert wait > 0
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            span = passed[last][0] - passed[first][0]
            taken = sum(records for _, records in passed[first:last])
            assert taken * SECOND <= rate * (span + burst_ms * MS)


def test_a_connection_refuses_what_is_over_and_the_machine_never_sees_it() -> None:
    async def scene() -> None:
        made = AppendLimits("ticks", LIMITS, Clock())
        node = Node(append_limits=made)
        node.puppet.rule = acknowledge
        async with node.alive():
            client = await Client.of(node)
            client.line.send(1, Append(batch(3)))
            await until(lambda: len(client.told) == 1)
            made.set(Quota(append_records_per_s=5))
            for request in (2, 3, 4):
                client.line.send(request, Append(batch(6)))
            await until(lambda: len(client.told) == 4)
            told = dict(client.told)
            assert [type(told[n]) for n in (1, 2, 3, 4)] == [Appended, Appended, Refused, Refused]
            refused = told[3]
            assert isinstance(refused, Refused)
            assert (refused.code, refused.facts["log"]) == ("quota-exceeded", "ticks")
            made.set(None)
            client.line.send(3, Append(batch(1)))
            await until(lambda: len(client.told) == 5)
            assert isinstance(client.told[4][1], Appended), "its number is free again"
            seen = [each for each in node.puppet.events if isinstance(each, Requests)]
            assert sum(len(each.messages) for each in seen) == 3
            assert node.server.counters.over_quota == 2
            client.line.close()

    run(scene())


def test_two_connections_of_one_log_share_its_quota() -> None:
    async def scene() -> None:
        made = AppendLimits("ticks", LIMITS, Clock())
        made.set(Quota(append_records_per_s=5))
        node = Node(append_limits=made)
        node.puppet.rule = acknowledge
        async with node.alive():
            first, second = await Client.of(node), await Client.of(node)
            first.line.send(1, Append(batch(6)))
            await until(lambda: len(first.told) == 1)
            second.line.send(1, Append(batch(1)))
            await until(lambda: len(second.told) == 1)
            assert isinstance(second.told[0][1], Refused)
            first.line.close()
            second.line.close()

    run(scene())


def test_an_append_whose_right_was_asked_for_first_is_counted_once() -> None:
    async def scene() -> None:
        made = AppendLimits("ticks", LIMITS, Clock())
        made.set(Quota(append_records_per_s=5))
        house = House(append_limits=made)
        async with house.client() as client:
            for request in (1, 2, 3):
                client.line.send(request, Append(batch(5)))
            await until(lambda: len(client.told) == 3)
            told = dict(client.told)
            assert [type(told[n]) for n in (1, 2, 3)] == [Appended, Appended, Refused]

    run(scene())


def numbered(sequence: int, records: int = 1) -> bytes:
    values = [Record(b"x")] * records
    return encode(values, producer_id=7, producer_epoch=1, base_sequence=sequence, now=0)


def test_copies_of_a_batch_count_once_and_are_decided_alike() -> None:
    clock = Clock()
    made = AppendLimits("audit", LIMITS, clock, copies=True)
    made.set(Quota(append_records_per_s=10, burst_ms=1_000))
    assert [made.refuse(numbered(0, 15)) for _ in range(3)] == [None] * 3
    refused = made.refuse(numbered(15))
    assert isinstance(refused, QuotaExceeded)
    assert refused.facts["used"] == 15
    clock.now += refused.retry_after_ms * MS - 1
    assert made.refuse(numbered(15)) is refused, "another node's copy, a little later"
    clock.now += 1
    assert made.refuse(numbered(15)) is None, "its client tries again"
    clock.now += 60 * SECOND
    assert made.refuse(numbered(0, 15)) is None


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 4))
def test_a_log_with_copies_has_the_quota_of_one_without(ids: list[int], copies: int) -> None:
    """Whatever is sent, and however often: the first copies are decided as if they were all."""
    quota = Quota(append_records_per_s=3, burst_ms=1_000)
    several = AppendLimits("audit", LIMITS, Clock(), copies=True)
    alone = limits(quota, Clock())
    several.set(quota)
    decided: dict[int, bool] = {}
    for id in ids:
        if id not in decided:
            decided[id] = alone.refuse(numbered(id)) is None
        for _ in range(copies):
            assert (several.refuse(numbered(id)) is None) == decided[id]


def test_only_so_many_decisions_are_remembered() -> None:
    made = AppendLimits("audit", LIMITS, Clock(), copies=True)
    made.set(Quota(append_records_per_s=2 * REMEMBERED, burst_ms=1_000))
    for id in range(REMEMBERED + 1):
        assert made.refuse(numbered(id)) is None
    made.refuse(numbered(0, REMEMBERED))
    assert made.refuse(numbered(REMEMBERED + 1)) is not None, "the oldest was counted again"


def test_a_batch_that_is_announced_is_decided_as_its_data_is() -> None:
    made = AppendLimits("audit", LIMITS, Clock(), copies=True)
    made.set(Quota(append_records_per_s=10, burst_ms=1_000))
    assert made.refuse_announced((7, 1, 0), len(numbered(0, 15)), 15) is None
    assert made.refuse(numbered(0, 15)) is None, "it was counted"
    refused = made.refuse_announced((7, 1, 15), len(numbered(15)), 1)
    assert isinstance(refused, QuotaExceeded)
    assert made.refuse(numbered(15)) is refused


@pytest.mark.parametrize(("size", "records"), [(1, 0), (1, 1 << 40), (-1, 1), (1 << 40, 1)])
def test_an_announced_batch_that_no_machine_takes_uses_up_nothing(size: int, records: int) -> None:
    made = AppendLimits("audit", LIMITS, Clock(), copies=True)
    made.set(Quota(append_bytes_per_s=1, append_records_per_s=1, burst_ms=1))
    assert made.refuse_announced((7, 1, 0), size, records) is None
    assert made.refuse_announced((7, 1, 1), 1, 1) is None, "nothing was owed"


def test_a_small_batch_does_not_pay_for_a_large_one_under_the_same_id() -> None:
    made = AppendLimits("audit", LIMITS, Clock(), copies=True)
    made.set(Quota(append_records_per_s=10, burst_ms=1_000))
    assert made.refuse(numbered(0)) is None
    assert made.refuse_announced((7, 1, 1), 1, 1) is None
    assert made.refuse(numbered(0, 1_000)) is None, "the log has no debt yet"
    assert made.refuse(numbered(0, 1_001)) is not None
    assert made.refuse(numbered(1, 1_000)) is not None, "less was announced"


def test_what_was_taken_without_being_counted_is_made_up_for() -> None:
    clock = Clock()
    made = AppendLimits("audit", LIMITS, clock, copies=True)
    made.charge(1 << 40, 1_000)
    made.set(Quota(append_records_per_s=10, burst_ms=1_000))
    made.charge(0, 30)
    refused = made.refuse(numbered(0))
    assert isinstance(refused, QuotaExceeded)
    clock.now += 2 * SECOND
    assert made.refuse(numbered(0)) is None
