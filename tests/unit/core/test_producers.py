"""Request ids of appends: the same for the same log and id, and for no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import BadRequest
from anabranch.core.producers import (
    REMEMBERED,
    REQUEST_EPOCH,
    REQUEST_ID_CHARS_MAX,
    Producer,
    is_request,
    request_identity,
)

names = st.text("abc-@/\n", min_size=1, max_size=8)
ids = st.text(min_size=1, max_size=8)


@given(names, ids, names, ids)
def test_two_requests_have_one_identity_just_if_they_are_the_same(
    name: str, request: str, other: str, another: str
) -> None:
    """`orders@fork` and `orders--fork` are one log; nothing else may be mistaken for another."""
    same = (name.replace("@", "--", 1), request) == (other.replace("@", "--", 1), another)
    assert (request_identity(name, request) == request_identity(other, another)) == same


@given(names, ids)
def test_an_identity_fits_a_producers_id_and_is_told_from_a_series(name: str, request: str) -> None:
    identity = request_identity(name, request)
    assert 0 <= identity < 1 << 63
    assert is_request(identity, REQUEST_EPOCH, 0)
    assert not is_request(identity, REQUEST_EPOCH - 1, 0)
    assert not is_request(identity, REQUEST_EPOCH, 1)
    assert not is_request(-1, REQUEST_EPOCH, 0)


@pytest.mark.parametrize(
    "request_id", ["", "x" * (REQUEST_ID_CHARS_MAX + 1), b"bytes", 7, None, ["a"]]
)
def test_what_is_no_request_id_is_refused(request_id: object) -> None:
    with pytest.raises(BadRequest, match="request_id"):
        request_identity("orders", request_id)  # pyright: ignore[reportArgumentType]


def test_half_a_character_may_stand_in_a_request_id() -> None:
    """Command lines and headers hand over bytes that aren't text."""
    assert request_identity("orders", "\udcff") != request_identity("orders", "\udcfe")


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_the_latest_batches_are_remembered_as_many_as_a_client_has_in_flight(
    counts: list[int],
) -> None:
    producer = Producer(0, 0)
    placed: list[tuple[int, int]] = []
    for count in counts:
        producer.note(producer.next, 10 * producer.next, 1)
        placed.append((producer.next, 10 * producer.next))
        producer.next += count
    for turn, (sequence, position) in enumerate(placed):
        known = turn >= len(placed) - REMEMBERED
        assert producer.place(sequence) == ((position, 1) if known else None)
    assert producer.place(producer.next) is None
