"""A digest tells the repetition of a request from another request under the same id."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.records.batch import verify
from anabranch.core.records.codecs import Codec
from anabranch.core.records.digest import (
    UNKNOWN,
    digest_of,
    digest_of_records,
    matches,
    named_request,
    split_request,
)
from anabranch.core.records.record import UNSTAMPED, Record, encode

CONTENT = st.none() | st.binary(max_size=3)
RECORDS = st.lists(
    st.builds(
        Record,
        CONTENT,
        CONTENT,
        st.lists(st.tuples(st.text(max_size=2), CONTENT), max_size=2).map(tuple),
        st.sampled_from([UNSTAMPED, 5, 6]),
    ),
    min_size=1,
    max_size=3,
)


LEADER_EPOCH = slice(12, 16)


def request(records: list[Record], codec: Codec = Codec.NONE, now: int = 1_000) -> bytes:
    return encode(
        records, codec, producer_id=7, producer_epoch=REQUEST_EPOCH, base_sequence=0, now=now
    )


def digest_of_batch(batch: bytes) -> int:
    return digest_of_records(batch, verify(batch, ""))


def digest(records: list[Record], codec: Codec = Codec.NONE, now: int = 1_000) -> int:
    return digest_of_batch(request(records, codec, now))


def digest_of_before(records: list[Record]) -> int:
    """As clients of earlier versions send it, who say nothing of times."""
    batch = bytearray(request(records))
    batch[LEADER_EPOCH] = bytes(4)
    return digest_of_batch(bytes(batch))


@given(RECORDS, st.sampled_from([Codec.NONE, Codec.GZIP]), st.integers(0, 1 << 40))
def test_a_repetition_has_the_same_digest_whenever_and_however_it_is_sent(
    records: list[Record], codec: Codec, now: int
) -> None:
    assert digest(records) == digest(records, codec, now)


@given(RECORDS, RECORDS)
def test_other_records_have_another_digest(one: list[Record], other: list[Record]) -> None:
    def asked(records: list[Record]) -> list[object]:
        return [(each.value, each.key, each.headers, each.timestamp) for each in records]

    same = asked(one) == asked(other)
    assert matches(digest(one), digest(other)) == same
    assert (digest(one) == digest(other)) == same


@given(RECORDS, RECORDS)
def test_whoever_says_nothing_of_times_is_asked_for_the_rest(
    one: list[Record], other: list[Record]
) -> None:
    def asked(records: list[Record]) -> list[object]:
        return [(each.value, each.key, each.headers) for each in records]

    same = asked(one) == asked(other)
    assert matches(digest_of_before(one), digest(other)) == same
    assert matches(digest(one), digest_of_before(other)) == same
    assert matches(digest_of_before(one), digest_of_before(other)) == same


def test_what_is_unknown_matches_everything() -> None:
    assert matches(UNKNOWN, 7)
    assert matches(7, UNKNOWN)
    assert matches(7, 7)
    assert not matches(7, 8)
    assert not matches(1 << 40, 1 << 41)
    assert digest_of(b"") != UNKNOWN


def test_a_request_carries_its_digest_behind_its_id() -> None:
    identity = bytes(range(16))
    assert split_request(named_request(identity, b"asked")) == (identity, digest_of(b"asked"))
    for other in (identity, b"x", bytes(25), bytes(64)):
        assert split_request(other) == (other, UNKNOWN)
