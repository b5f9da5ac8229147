"""What goes into the client and comes out of it: addresses, records, batches."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.session.endpoint import Address, Endpoint, address, endpoint
from anabranch.client.session.records import batches, cut, milliseconds, record
from anabranch.core.errors import BadRequest, CorruptBatch
from anabranch.core.records.origins import Run, deliveries
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId
from anabranch.shell.net.tls import TlsSettings
from anabranch.shell.runtime.randomness import randbits


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("anabranch://log.example:99", Endpoint((Address("log.example", 99),))),
        ("anabranch://log.example", Endpoint((Address("log.example", 7420),))),
        ("localhost:1", Endpoint((Address("localhost", 1),))),
        ("anabranch://secret@host/", Endpoint((Address("host", 7420),), "secret")),
        ("anabranch://[::1]:5", Endpoint((Address("::1", 5),))),
        (
            "anabranch://s@a:1,[::1],c",
            Endpoint((Address("a", 1), Address("::1"), Address("c")), "s"),
        ),
        ("anabranchs://a,b", Endpoint((Address("a"), Address("b")), None, TlsSettings())),
        (
            "anabranchs://a?ca=/my%20ca.pem&cert=c&key=k",
            Endpoint((Address("a"),), None, TlsSettings(ca="/my ca.pem", cert="c", key="k")),
        ),
        ("a,b?token_file=/t", Endpoint((Address("a"), Address("b")), token_file="/t")),
        (
            "anabranchs://a?token_file=t&server_name=b.c",
            Endpoint((Address("a"),), None, TlsSettings(), "t", "b.c"),
        ),
    ],
)
def test_addresses(url: str, found: Endpoint) -> None:
    assert endpoint(url) == found
    assert endpoint(str(found)) == found._replace(token=None)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://host",
        "anabranch://",
        "anabranch://host:port",
        "host:70000",
        "host/path",
        "a,,b",
        "a,b:x",
        "host?ca=x",
        "anabranchs://host?cafile=x",
        "anabranchs://host?ca",
        "host?server_name=x",
        "token@host?token_file=x",
    ],
)
def test_addresses_that_name_nothing_are_refused(url: str) -> None:
    with pytest.raises(BadRequest):
        endpoint(url)


@pytest.mark.parametrize("text", ["", "a b:x", "t@a:1", "a/b", "a:1,b:2", "anabranch://a"])
def test_what_a_broker_is_advertised_as_is_one_address(text: str) -> None:
    assert address("[::1]:7") == Address("::1", 7)
    with pytest.raises(BadRequest):
        address(text)


def test_a_records_parts() -> None:
    made = record(b"v", b"k", {"a": b"1", "b": None}, datetime(1970, 1, 2, tzinfo=UTC))
    assert made == Record(b"v", b"k", (("a", b"1"), ("b", None)), 86_400_000)
    assert record(None).timestamp == Record().timestamp


@pytest.mark.parametrize(
    "parts",
    [
        ("text",),
        (bytearray(b"x"),),
        (b"", "key"),
        (b"", None, {1: b""}),
        (b"", None, [("a", "b")]),
        (b"", None, (), datetime(2024, 1, 1)),  # noqa: DTZ001
        (b"", None, (), -5),
        (b"", None, (), 1 << 63),
    ],
)
def test_parts_that_couldnt_be_encoded_are_refused(parts: Sequence[Any]) -> None:
    with pytest.raises(BadRequest):
        record(*parts)


def test_milliseconds_are_since_1970() -> None:
    assert milliseconds(5) == 5
    assert milliseconds(datetime.fromtimestamp(1, UTC) + timedelta(milliseconds=2)) == 1_002


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
def test_batches_mean_what_deliveries_mean(counts: list[int], data: st.DataObject) -> None:
    """Batch by batch and lazily, the same records at the same places, wherever a fork cuts."""
    contents = [
        encode([Record(b"%d %d" % (number, index)) for index in range(count)], now=1)
        for number, count in enumerate(counts)
    ]
    skip = data.draw(st.integers(0, sum(counts) - 1))
    count = data.draw(st.integers(1, sum(counts) - skip))
    runs = [Run(100, count, skip, LogId(3), 40, sum(map(len, contents)))]
    found = [each for batch in batches(runs, contents) for each in batch.records()]
    expected = list(deliveries(runs, contents))
    assert [(each.position, *each.origin, each.value) for each in found] == [
        (position, log, there, kept.value) for position, log, there, kept in expected
    ]
    first = next(iter(batches(runs, contents)))
    assert [each.value for each in cut(first, 1).records()] == [expected[0][3].value]


def test_a_damaged_batch_is_refused_before_it_is_decoded() -> None:
    content = bytearray(encode([Record(b"value")], now=1))
    content[-1] ^= 1
    with pytest.raises(CorruptBatch):
        next(batches([Run(0, 1, 0, LogId(1), 0, len(content))], [content]))


def test_random_bits_are_so_many() -> None:
    assert {randbits(1) for _ in range(100)} == {0, 1}
    assert max(randbits(63) for _ in range(100)) < 1 << 63
    assert len({randbits(128) for _ in range(100)}) == 100
