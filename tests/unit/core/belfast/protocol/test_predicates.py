"""Filters of subscribers, applied to what a shard has."""

from anabranch.core.belfast.protocol.messages import Where
from anabranch.core.belfast.protocol.predicates import wanted
from anabranch.core.records.checksum import crc32c
from anabranch.core.records.record import BATCH_HEADERS_CEILING, Record, encode


def test_records_that_pass_are_told_in_parts_that_are_in_a_row() -> None:
    keys = (b"a1", b"a2", b"b1", b"a3", None)
    batch = encode([Record(b"", key) for key in keys], now=1)
    assert wanted(batch, 0, 5, Where(key_prefix=b"a")) == [(0, 2), (3, 1)]
    assert wanted(batch, 1, 4, Where(key_prefix=b"a")) == [(1, 1), (3, 1)]
    assert wanted(batch, 1, 3, None) == [(1, 3)]


def test_a_batch_that_costs_too_much_to_decode_is_left_to_the_subscriber() -> None:
    headers = (("", b""),) * (BATCH_HEADERS_CEILING + 1)
    poison = encode([Record(b"", headers=headers)] * 2, now=1)
    assert wanted(poison, 0, 2, Where(key_prefix=b"a")) == [(0, 2)]


def test_a_filter_looks_at_keys_and_headers() -> None:
    records = [
        Record(b"0", b"apple"),
        Record(b"1", b"apricot", (("kind", b"x"),)),
        Record(b"2", None, (("kind", b"y"),)),
        Record(b"3", b"banana"),
    ]
    batch = encode(records, now=0)
    assert wanted(batch, 1, 2, None) == [(1, 2)]
    assert wanted(batch, 0, 4, Where(key_prefix=b"ap")) == [(0, 2)]
    assert wanted(batch, 1, 3, Where(key_prefix=b"ap")) == [(1, 1)]
    assert wanted(batch, 0, 4, Where(header="kind")) == [(1, 2)]
    assert wanted(batch, 0, 4, Where(header="kind", header_value=b"y")) == [(2, 1)]
    assert wanted(batch, 0, 4, Where(key_prefix=b"a", header="none")) == []
    remainder = crc32c(b"banana") % 1009
    found = wanted(batch, 0, 4, Where(key_modulus=1009, key_remainder=remainder))
    assert (3, 1) in found
