"""What a shard remembers of batches, against a naive list (decision 38)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.shard.duplicates import Known, Retries
from anabranch.core.errors import RequestReused
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.records.batch import peek
from anabranch.core.records.record import Record, encode
from anabranch.core.replication.entries import Item

REMEMBERED = 3

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 5)),
        st.tuples(st.just("cut"), st.integers(0, 4)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=40,
)


def batch(identity: int, value: bytes = b"x", now: int = 0) -> bytes:
    return encode(
        [Record(value)],
        producer_id=identity,
        producer_epoch=REQUEST_EPOCH,
        base_sequence=0,
        now=now,
    )


def found(retries: Retries, asked: bytes) -> tuple[int, int] | None:
    return retries.find(asked, peek(asked))


@given(steps)
def test_the_last_requests_are_known_by_their_ids_until_they_are_cut_back(
    program: list[tuple[str, int]],
) -> None:
    retries, log, kept = Retries("a", REMEMBERED), list[int](), list[int]()
    for what, which in program:
        if what == "append":
            expected = (log.index(which), 1) if which in kept else None
            if expected is None and which in log:
                continue  # forgotten: it is told apart from a new one by nobody
            assert found(retries, batch(which)) == expected
            if expected is None:
                retries.logged(Item(len(log), 1, batch(which)))
                log.append(which)
                kept = [*kept, which][-REMEMBERED:]
        elif what == "cut":
            to = max(0, len(log) - which)
            retries.cut_back(to)
            kept = [each for each in kept if each in log[:to]]
            del log[to:]
        else:
            retries = reopened(retries)


def reopened(retries: Retries) -> Retries:
    image = msgspec.msgpack.encode(retries.image())
    again = Retries("a", REMEMBERED)
    again.restore(msgspec.msgpack.decode(image, type=list[Known]))
    return again


def test_requests_push_no_producer_out_of_memory() -> None:
    retries = Retries("a", REMEMBERED)
    sent: dict[str, Any] = {"producer_id": 99, "producer_epoch": 0, "now": 0}
    first = encode([Record(b"x")], base_sequence=0, **sent)
    retries.logged(Item(0, 1, first))
    for number in range(10):
        retries.logged(Item(1 + number, 1, batch(number)))
    assert found(reopened(retries), first) == (0, 1)
    assert not retries.partial


def test_a_request_for_other_records_is_refused_also_after_a_fail_over() -> None:
    retries = Retries("a", REMEMBERED)
    retries.logged(Item(7, 1, batch(1)))
    for each in (retries, reopened(retries)):
        assert found(each, batch(1, now=5)) == (7, 1)
        with pytest.raises(RequestReused):
            found(each, batch(1, b"y"))


def test_requests_in_an_image_of_before_match_whatever_comes() -> None:
    retries = Retries("a", REMEMBERED)
    retries.restore([Known(id=1, epoch=REQUEST_EPOCH, next=1, recent=[(0, 7, 1)])])
    assert found(retries, batch(1)) == found(retries, batch(1, b"y")) == (7, 1)
