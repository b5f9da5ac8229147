"""What a shard remembers of batches, against a naive list (decision 38)."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.shard.duplicates import Known, Retries
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.records.batch import Header, peek
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


def batch(identity: int) -> bytes:
    return encode(
        [Record(b"x")],
        producer_id=identity,
        producer_epoch=REQUEST_EPOCH,
        base_sequence=0,
        now=0,
    )


def header(identity: int) -> Header:
    return peek(batch(identity))


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
            assert retries.find(header(which)) == expected
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
    assert reopened(retries).find(peek(first)) == (0, 1)
    assert not retries.partial
