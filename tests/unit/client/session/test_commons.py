"""What the parts of a session share: room for appends, bounds of records, and pauses."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.session.stage import ENGINES

from anabranch.client.session.commons import HEED_MS_MAX, Commons, heed_ms
from anabranch.client.session.dialect import Greeting
from anabranch.client.session.effects import Roomy
from anabranch.client.session.settings import Settings
from anabranch.core.errors import (
    AnabranchError,
    BatchTooLarge,
    Overloaded,
    QuotaExceeded,
    RecordTooLarge,
    UnknownLog,
    restore,
)
from anabranch.core.records.record import Record, encode


def commons_with(**settings: Any) -> Commons[Any, Any, Any]:
    return Commons(ENGINES["bolt"].dialect, Settings(**settings), Random(7).getrandbits)


@given(
    least=st.integers(0, 1_000),
    most=st.integers(0, 100_000),
    tries=st.integers(0, 1_000),
    seed=st.integers(0, 100),
)
def test_a_pause_doubles_within_its_bound_and_is_never_nothing(
    least: int, most: int, tries: int, seed: int
) -> None:
    chosen = Settings(backoff_ms=least, backoff_ms_max=most)
    commons: Commons[Any, Any, Any] = Commons(
        ENGINES["bolt"].dialect, chosen, Random(seed).getrandbits
    )
    doubled = min(least * 2 ** max(tries - 1, 0), most)
    assert max(1, doubled // 2) <= commons.pause(tries) <= max(1, doubled)


def test_pauses_of_clients_that_failed_together_differ() -> None:
    commons = commons_with(backoff_ms=100, backoff_ms_max=100)
    assert len({commons.pause(1) for _ in range(100)}) > 20


@pytest.mark.parametrize(
    ("asked", "heeded"), [(50, 50), (10**9, HEED_MS_MAX), (0, 0), (-5_000, 0), ("soon", 0)]
)
def test_a_server_may_ask_for_a_pause_within_reason(asked: Any, heeded: int) -> None:
    assert heed_ms(restore("quota-exceeded", "it is used up", {"retry_after_ms": asked})) == heeded
    assert heed_ms(UnknownLog("orders")) == 0
    assert heed_ms(QuotaExceeded("orders", "records", 5, 5, 70)) == 70


@given(
    limit=st.integers(1, 2_000),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=40),
)
def test_what_is_held_is_bounded_and_room_is_announced_once_to_those_who_were_refused(
    limit: int, steps: list[tuple[bool, int]]
) -> None:
    """The model: what is held, and whether anybody was refused since room was announced."""
    commons = commons_with(pending_bytes_max=limit)
    held: list[int] = []
    waiting = False
    for add, size in steps:
        if add:
            cost = _admitted(commons, size)
            fits = not held or sum(held) + size <= limit - 32
            assert (cost is not None) == fits
            if cost is None:
                waiting = True
            else:
                held.append(cost)
                commons.pending_bytes += cost
        elif held:
            commons.released(held.pop(0))
            roomy = waiting and sum(held) <= limit // 2
            assert commons.effects == [Roomy()] * roomy
            waiting = waiting and not roomy
            commons.effects.clear()
        assert commons.pending_bytes == sum(held)


def _admitted(commons: Commons[Any, Any, Any], size: int) -> int | None:
    try:
        return commons.admit(Record(bytes(size)))
    except Overloaded:
        return None


def test_one_record_is_let_in_however_little_may_be_held() -> None:
    commons = commons_with(pending_bytes_max=1)
    assert commons.admit(Record(b"longer than that")) > 1


@given(
    st.lists(
        st.builds(
            Record,
            st.none() | st.binary(max_size=50),
            st.none() | st.binary(max_size=20),
            st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9))).map(tuple),
            st.integers(0, 1 << 62),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_records_are_counted_for_no_less_than_they_take_in_a_batch(records: list[Record]) -> None:
    """Else a batch that was let in would be too large for its server."""
    commons = commons_with()
    counted = sum(map(commons.admit, records))
    assert len(encode(records, now=1)) - len(encode([Record()], now=1)) <= counted


def test_limits_are_the_servers_once_it_has_said_them() -> None:
    commons = commons_with(batch_bytes=5_000)
    commons.check_record(101)
    commons.opened(Greeting("c", 100, 1_000, 10))
    assert commons.batch_bytes == 1_000
    commons.check_record(100)
    commons.check_batch(1_000, 10)
    with pytest.raises(RecordTooLarge):
        commons.check_record(101)
    with pytest.raises(RecordTooLarge):
        commons.admit(Record(bytes(101)))
    with pytest.raises(BatchTooLarge):
        commons.check_batch(1_001, 1)
    with pytest.raises(BatchTooLarge):
        commons.check_batch(1, 11)
    commons.opened(Greeting("c", 100, 9_000, 10))
    assert commons.batch_bytes == 5_000


def test_why_nobody_is_reached_is_said_of_every_server() -> None:
    commons = commons_with()
    assert commons.trouble == "no server has answered yet"
    commons.troubles |= {0: "a:1: refused", 1: "b:1: silent"}
    assert commons.trouble == "a:1: refused; b:1: silent"


def test_a_rejection_counts_until_a_server_lets_us_in() -> None:
    commons = commons_with()
    refused: AnabranchError = UnknownLog("it")
    assert commons.rejection is None
    commons.refusals[0] = refused
    assert commons.rejection is refused
    commons.opened(Greeting("c", 1, 1, 1))
    assert commons.rejection is None
