"""Appends with writer marks through a broker (decision 76)."""

from collections.abc import Callable
from typing import Any

from anabranch.core.bolt.protocol.commands import Done, DrainBroker, Sequenced
from anabranch.core.bolt.protocol.marks import (
    MARKS_FORMAT,
    AlreadyAppended,
    AppendMarked,
    WriterMark,
)
from anabranch.core.bolt.protocol.messages import Appended
from anabranch.core.bolt.protocol.queries import ListBrokers, Pool
from anabranch.core.errors import BrokerFenced, PartGap
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Drain
from anabranch.core.records.record import Record, encode

KNOWS = Pool([], MARKS_FORMAT)


def mark(batch: int = 0, writer: str = "w") -> WriterMark:
    return WriterMark(writer, 3, 1, batch)


def send(stage: Any, props: Any, token: int, batch: int = 0, value: bytes = b"v") -> None:
    content = encode([Record(value)], now=token)
    stage.request(token, AppendMarked(props.LOG, content, mark(batch)))


def test_a_first_marked_append_asks_what_the_leader_knows_and_none_after_it(
    stage: Any, props: Any
) -> None:
    for token in (1, 2):
        send(stage, props, token, token - 1)
    stage.turn()
    assert not stage.puts, "a leader that knows no marks would append twice"
    stage.answer(KNOWS, ListBrokers)
    stage.turn()
    stage.put()
    assert [entry.mark for entry in stage.commit(40).rows[0].batches] == [mark(0), mark(1)]
    assert sorted(stage.take_replies()) == [(1, Appended(40)), (2, Appended(41))]
    send(stage, props, 3, 2)
    stage.turn()
    assert not stage.pending(ListBrokers)
    assert stage.puts


def test_a_leader_of_an_earlier_version_gets_no_marks_and_is_asked_again(
    stage: Any, props: Any
) -> None:
    for token in (1, 2):
        send(stage, props, token)
        stage.answer(Pool([]), ListBrokers)
        stage.turn()
        assert not stage.puts
        assert stage.codes() == [(token, "unavailable")]


def test_a_batch_that_was_there_is_answered_as_such_and_counted(stage: Any, props: Any) -> None:
    for token in (1, 2):
        send(stage, props, token, token - 1)
    stage.answer(KNOWS, ListBrokers)
    stage.turn()
    stage.put()
    known = AlreadyAppended(7, None, -1)
    stage.commit(Sequenced([known, 41]))
    assert sorted(stage.take_replies()) == [(1, known), (2, Appended(41))]
    counters = stage.broker.counters
    assert (counters.appends, counters.appends_repeated) == (1, 1)
    assert stage.broker.gauges().appends_held == 0


def test_equal_records_have_equal_digests_whenever_they_are_sent(stage: Any, props: Any) -> None:
    for token, value in enumerate((b"v", b"v", b"other"), 1):
        send(stage, props, token, token - 1, value)
    stage.answer(KNOWS, ListBrokers)
    stage.turn()
    stage.put()
    first, again, other = (entry.digest for entry in stage.commit(0).rows[0].batches)
    assert first == again != other
    assert first != 0, "0 stands for a digest that isn't known"


def test_a_part_goes_after_its_earlier_batches_as_a_producer_does(stage: Any, props: Any) -> None:
    """Two objects never hold one part's batches in two commits that are out at a time."""
    send(stage, props, 1, 0)
    stage.answer(KNOWS, ListBrokers)
    stage.turn()
    stage.put()
    send(stage, props, 2, 1)
    stage.turn()
    stage.put()
    assert len(stage.commits()) == 1
    gap = Refused.of(PartGap("orders", "w", 3, 1, 0, 1))
    stage.commit(0)
    stage.commit(Sequenced([gap]))
    assert stage.take_replies() == [(1, Appended(0)), (2, gap)]


def test_a_mark_that_no_log_keeps_is_refused_at_once(stage: Any, props: Any) -> None:
    content = encode([Record(b"v")], now=1)
    for token, bad in enumerate(
        (WriterMark("", 0, 0), WriterMark("w", -1, 0), WriterMark("w", 0, -1, 0)), 1
    ):
        stage.request(token, AppendMarked(props.LOG, content, bad))
        assert stage.codes() == [(token, "bad-request")]


def test_what_waits_for_the_leader_is_bounded_and_refused_when_the_broker_ends(
    stage_of: Callable[..., Any], props: Any
) -> None:
    stage = stage_of(log_queue_bytes_max=100)
    send(stage, props, 1)
    send(stage, props, 2, 1)
    assert stage.codes() == [(2, "overloaded")]
    stage.append(3, b"")
    stage.tell(Drain())
    stage.apply(stage.proposed(DrainBroker), Done())
    assert stage.codes() == [(1, "broker-draining")]


def test_a_first_batch_waits_for_the_leader_however_large_it_is(
    stage_of: Callable[..., Any], props: Any
) -> None:
    """Refused, it would be so for ever: nothing else makes the broker ask."""
    stage = stage_of(log_queue_bytes_max=100)
    send(stage, props, 1, value=bytes(1_000))
    assert stage.codes() == []
    stage.answer(KNOWS, ListBrokers)
    stage.turn()
    assert stage.puts


def test_a_broker_that_was_replaced_answers_those_that_wait(stage: Any, props: Any) -> None:
    send(stage, props, 1)
    stage.append(2)
    stage.turn()
    stage.put()
    stage.apply(stage.commits()[0], Refused.of(BrokerFenced("b", 1, 2)))
    assert (1, "broker-fenced") in stage.codes()
