"""Appends through a broker: gathered, written, committed in order, answered; refused or parked."""

from collections.abc import Callable
from typing import Any

import pytest

from anabranch.core.askers import REQUEST_BITS, seat_number
from anabranch.core.bolt.protocol.commands import (
    CommitObject,
    Committed,
    Epoch,
    Receipt,
    RegisterBroker,
    Sequenced,
)
from anabranch.core.bolt.protocol.letters import Watch
from anabranch.core.bolt.protocol.messages import Append, Appended, Promote, Read
from anabranch.core.errors import (
    AppendBlocked,
    BrokerFenced,
    ObjectExists,
    SequenceGap,
    StorageFailed,
    StorageFull,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Gone
from anabranch.core.records.objects import object_id, read_footer
from anabranch.core.types import LogId
from anabranch.core.wire.session import Cancel

OTHER = LogId(8)
BLOCKED = Refused.of(AppendBlocked("orders--copy", "orders--try"))
GAP = Refused.of(SequenceGap("orders", 5, 0, 1))


def test_a_lone_append_is_written_at_the_end_of_its_turn(stage: Any, props: Any) -> None:
    batch = stage.append(1)
    assert not stage.puts
    stage.turn()
    put = stage.puts[0]
    assert put.object == object_id(1, 0)
    body = b"".join(put.parts)
    assert body.startswith(batch)
    assert [row.log for row in read_footer(body, len(body), "x").rows] == [props.LOG]


def test_r1_nothing_is_acknowledged_before_it_is_durable_and_committed(stage: Any) -> None:
    stage.append(1, count=3)
    stage.turn()
    assert not stage.commits()
    stage.put()
    assert not stage.replies
    commit = stage.commit(40)
    assert commit.rows[0].batches[0].count == 3
    assert stage.replies == [(1, Appended(40))]


def test_r2_one_object_holds_many_logs_grouped_in_order_of_arrival(stage: Any, props: Any) -> None:
    for token, log in enumerate((props.LOG, OTHER, props.LOG), 1):
        stage.append(token, b"%d" % token, log, count=token)
    stage.turn()
    stage.put()
    commit = stage.commit(10, 20)
    assert [(row.log, [b.count for b in row.batches]) for row in commit.rows] == [
        (props.LOG, [1, 3]),
        (OTHER, [2]),
    ]
    first = commit.rows[0]
    assert commit.rows[1].offset == first.offset + sum(b.length for b in first.batches)
    assert sorted(stage.replies) == [(1, Appended(10)), (2, Appended(20)), (3, Appended(11))]


def test_what_arrives_during_a_put_is_written_together_when_it_ends(stage: Any) -> None:
    stage.append(1)
    stage.turn()
    for token in (2, 3):
        stage.append(token)
        stage.turn()
    assert len(stage.puts) == 1
    stage.put()
    stage.append(4)
    stage.turn()
    stage.put()
    assert [len(p.command.rows[0].batches) for p in stage.commits()] == [1, 3]


def test_a_batch_lingers_no_longer_than_it_may(stage: Any) -> None:
    stage.append(1)
    stage.turn()
    stage.append(2)
    stage.wait(4)
    assert len(stage.puts) == 1
    stage.wait(1)
    assert len(stage.puts) == 2


def test_at_most_so_many_puts_fly(stage_of: Callable[..., Any]) -> None:
    stage = stage_of(puts_in_flight_max=2, linger_ms=0)
    for token in (1, 2, 3):
        stage.append(token)
        stage.turn()
    stage.wait(50)
    assert len(stage.puts) == 2
    stage.put()
    stage.turn()
    assert len(stage.puts) == 2


def test_an_object_closes_when_it_is_full(stage_of: Callable[..., Any]) -> None:
    stage = stage_of(object_bytes_max=3_000)
    for token in (1, 2, 3, 4):
        stage.append(token, b"x" * 1_000)
    assert [len(put.parts) - 1 for put in stage.puts] == [2]
    stage.turn()
    stage.wait(5)
    assert [len(put.parts) - 1 for put in stage.puts] == [2, 2]


def test_r1_commits_go_in_the_order_of_objects(stage_of: Callable[..., Any]) -> None:
    stage = stage_of(linger_ms=0)
    for token in (1, 2):
        stage.append(token)
        stage.turn()
    second, first = stage.puts[1].object, stage.puts[0].object
    stage.put(1)
    assert not stage.commits()
    stage.put(0)
    assert [p.command.object for p in stage.commits()] == [first, second]


def test_a_producers_next_commit_waits_for_the_answer_to_its_last(
    stage_of: Callable[..., Any],
) -> None:
    """Overtaken on its way, it would be refused for a gap that isn't one."""
    stage = stage_of(linger_ms=0)
    for sequence in (0, 1):
        stage.append(sequence, producer=5, sequence=sequence)
        stage.turn()
    stage.append(2, producer=6, sequence=0)
    stage.turn()
    for _ in range(3):
        stage.put()
    assert len(stage.commits()) == 1
    stage.commit(0)
    assert len(stage.commits()) == 2
    stage.commit(1)
    stage.commit(2)
    assert stage.replies == [(0, Appended(0)), (1, Appended(1)), (2, Appended(2))]


def test_a_lost_commit_is_sent_again_under_its_token(stage: Any) -> None:
    stage.append(1)
    stage.turn()
    stage.put()
    first = stage.proposed(CommitObject)
    stage.wait(4_000)
    again = stage.commits()
    assert again
    assert all(each == first for each in again)
    stage.apply(first, Committed([5]))
    stage.apply(first, Committed([5]))
    assert stage.replies == [(1, Appended(5))]


def test_6_3_a_withheld_position_is_a_receipt_for_each_batch(stage: Any, props: Any) -> None:
    stage.append(1, count=2)
    stage.append(2)
    stage.turn()
    stage.put()
    stage.commit(Receipt(props.LOG, 3, 10))
    assert stage.replies == [
        (1, Appended(None, Receipt(props.LOG, 3, 10))),
        (2, Appended(None, Receipt(props.LOG, 3, 12))),
    ]


def test_results_batch_by_batch(stage: Any, props: Any) -> None:
    for token in (1, 2, 3):
        stage.append(token)
    stage.turn()
    stage.put()
    stage.commit(Sequenced([4, GAP, Receipt(props.LOG, 0, 9)]))
    assert dict(stage.replies) == {
        1: Appended(4),
        2: GAP,
        3: Appended(None, Receipt(props.LOG, 0, 9)),
    }


def test_d4_a_gap_behind_an_append_in_hand_is_no_gap(stage_of: Callable[..., Any]) -> None:
    """The first was refused as blocked; the second came when the block was gone."""
    stage = stage_of(linger_ms=0)
    for sequence in (0, 1):
        stage.append(sequence, producer=5, sequence=sequence)
        stage.turn()
    stage.put()
    stage.put()
    stage.commit(BLOCKED)
    stage.moved(0)
    stage.turn()
    stage.append(2, producer=5, sequence=2)
    stage.commit(Sequenced([GAP]))
    assert not stage.replies
    stage.put()
    stage.commit(0)
    stage.turn()
    stage.put()
    assert [batch.sequence for batch in stage.commit(1).rows[0].batches] == [1, 2]
    assert stage.replies == [(0, Appended(0)), (1, Appended(1)), (2, Appended(2))]


def test_d4_a_gap_with_nothing_before_it_is_one(stage: Any) -> None:
    stage.append(1, producer=5, sequence=1)
    stage.append(2, producer=5, sequence=2)
    stage.turn()
    stage.put()
    stage.commit(Sequenced([GAP, GAP]))
    assert stage.codes() == [(1, "sequence-gap"), (2, "sequence-gap")]


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda batch: batch[:-1], "corrupt-batch"),
        (lambda batch: batch[:-1] + bytes([batch[-1] ^ 1]), "corrupt-batch"),
        (lambda batch: batch[:16] + b"\x01" + batch[17:], "unsupported-batch"),
        (lambda _: b"", "corrupt-batch"),
    ],
    ids=["cut short", "a bit flipped", "another format", "nothing"],
)
def test_a_bad_batch_is_refused_and_the_rest_unharmed(
    stage: Any, props: Any, spoil: Callable[[bytes], bytes], code: str
) -> None:
    good = stage.append(1)
    stage.request(2, Append(props.LOG, spoil(good)))
    assert stage.codes() == [(2, code)]
    stage.turn()
    stage.put()
    stage.commit(0)
    assert stage.replies == [(1, Appended(0))]


def test_a_log_that_cannot_be_is_refused(stage: Any, props: Any) -> None:
    batch = stage.append(1)
    stage.request(2, Append(LogId(-1), batch))
    stage.request(3, Append(LogId(1 << 63), batch))
    assert stage.codes() == [(2, "unknown-log"), (3, "unknown-log")]


def test_queue_bytes_max_and_one_past_it(stage_of: Callable[..., Any]) -> None:
    size = len(stage_of().append(1, b"x" * 100))
    stage = stage_of(queue_bytes_max=2 * size)
    for token in (1, 2, 3):
        stage.append(token, b"x" * 100)
    assert stage.codes() == [(3, "overloaded")]
    stage.turn()
    stage.put()
    stage.commit(0)
    stage.take_replies()
    stage.append(4, b"x" * 100)
    assert not stage.replies


def test_waits_max_bounds_appends_too(stage_of: Callable[..., Any]) -> None:
    stage = stage_of(waits_max=2)
    for token in (1, 2, 3):
        stage.append(token)
    assert stage.codes() == [(3, "overloaded")]


def test_a_full_store_refuses_what_it_cannot_hold_and_recovers(stage: Any) -> None:
    stage.append(1)
    stage.turn()
    stage.put(error=StorageFull("the store"))
    assert stage.codes() == [(1, "storage-full")]
    stage.append(2)
    stage.turn()
    stage.put()
    stage.commit(0)
    assert stage.replies == [(2, Appended(0))]


def test_b11_a_failed_put_is_repeated_under_another_name_and_keeps_its_place(
    stage_of: Callable[..., Any],
) -> None:
    stage = stage_of(linger_ms=0)
    for token in (1, 2):
        stage.append(token)
        stage.turn()
    failed = stage.put(error=StorageFailed("the store", "a fault"))
    stage.put()
    assert not stage.commits()
    stage.wait(50)
    assert stage.puts[0].object not in (failed, object_id(1, 1))
    stage.put()
    assert [p.command.object for p in stage.commits()] == [object_id(1, 2), object_id(1, 1)]


def test_a_name_that_is_taken_means_a_lost_answer_and_costs_no_time(stage: Any) -> None:
    stage.append(1)
    stage.turn()
    stage.put(error=ObjectExists("x"))
    assert [put.object for put in stage.puts] == [object_id(1, 1)]


def test_a_store_that_keeps_failing_refuses_and_lets_the_next_pass(
    stage_of: Callable[..., Any],
) -> None:
    stage = stage_of(linger_ms=0)
    stage.append(1)
    stage.turn()
    stage.append(2)
    stage.turn()
    stage.put(1)
    while stage.puts:
        stage.put(error=StorageFailed("the store", "a fault"))
        stage.wait(1_000)
    assert stage.codes() == [(1, "unavailable")]
    stage.commit(0)
    assert stage.replies == [(2, Appended(0))]


def test_6_1_a_blocked_append_waits_and_is_written_again_in_order(stage: Any, props: Any) -> None:
    stage.append(1)
    stage.turn()
    stage.put()
    stage.commit(BLOCKED)
    assert stage.pending(Watch)[-1] == Watch([(props.LOG, 0)])
    stage.append(2)
    stage.turn()
    assert not stage.puts, "a log known to be blocked needs no PUT"
    stage.moved(4, append_blocked="orders--try")
    assert not stage.replies
    stage.moved(4)
    stage.turn()
    stage.put()
    assert len(stage.commit(4).rows[0].batches) == 2
    assert stage.replies == [(1, Appended(4)), (2, Appended(5))]


def test_a_block_that_was_over_before_its_refusal_came_is_found_out(stage: Any, props: Any) -> None:
    stage.request(9, Read(props.LOG, 3, 1, 1, 60_000))
    stage.answer(props.resolved(tail=3))
    stage.append(1)
    stage.turn()
    stage.put()
    stage.moved(3)
    stage.sent.remove(stage.pending(Watch)[0])
    stage.commit(BLOCKED)
    assert stage.pending(Watch) == [Watch([(props.LOG, 0)])]
    stage.version -= 1
    stage.moved(3)
    stage.turn()
    assert stage.puts


@pytest.mark.parametrize(("asked_ms", "waits_ms"), [(-1, 10_000), (500, 500), (60_000, 10_000)])
def test_d2_a_blocked_append_is_refused_when_its_time_is_up(
    stage: Any, asked_ms: int, waits_ms: int
) -> None:
    stage.append(1, wait_ms=asked_ms)
    stage.turn()
    stage.put()
    stage.commit(BLOCKED)
    stage.wait(waits_ms - 1)
    assert not stage.replies
    stage.wait(1)
    assert stage.take_replies() == [(1, BLOCKED)]
    stage.moved(9)
    stage.turn()
    assert not stage.puts
    assert stage.broker.gauges().appends_held_bytes == 0


def test_one_that_wont_wait_is_refused_at_once(stage: Any) -> None:
    stage.append(1)
    stage.turn()
    stage.put()
    stage.commit(BLOCKED)
    stage.append(2, wait_ms=0)
    assert stage.codes() == [(2, "append-blocked")]


@pytest.mark.parametrize("leave", [Gone((1,)), Cancel(1)])
def test_a_parked_append_of_one_who_left_never_happens(stage: Any, leave: Any) -> None:
    stage.append(1)
    stage.turn()
    stage.put()
    stage.commit(BLOCKED)
    if isinstance(leave, Cancel):
        stage.request(99, leave)
    else:
        stage.tell(leave)
    stage.moved(0)
    stage.turn()
    assert not stage.puts
    assert stage.broker.gauges().appends_held == 0


def test_one_client_leaves_others_room_to_append_while_its_appends_are_parked(
    stage_of: Callable[..., Any],
) -> None:
    stage = stage_of(waits_max=8)
    bad, good = (seat_number(0, seat) << REQUEST_BITS for seat in (1, 2))
    stage.append(bad)
    stage.turn()
    stage.put()
    stage.commit(BLOCKED)
    for request in range(1, 8):
        stage.append(bad | request)
    assert stage.codes() == [(bad | request, "append-blocked") for request in range(4, 8)]
    stage.replies.clear()
    stage.append(good)
    assert not stage.replies


def test_an_ended_log_says_what_became_of_it(stage: Any) -> None:
    ended = Refused("squashed", "it was squashed", {})
    stage.append(1)
    stage.turn()
    stage.put()
    stage.commit(BLOCKED)
    stage.moved(0, ended=ended)
    stage.turn()
    stage.put()
    stage.commit(ended)
    assert stage.replies == [(1, ended)]


def test_a_commit_that_could_not_be_journaled_refuses_its_appends(stage: Any) -> None:
    full = Refused.of(StorageFull("the journal"))
    stage.append(1)
    stage.turn()
    stage.put()
    stage.apply(stage.proposed(CommitObject), full)
    assert stage.replies == [(1, full)]
    assert stage.broker.gauges().appends_held == 0


def test_appends_wait_for_the_brokers_epoch(stage_of: Callable[..., Any]) -> None:
    stage = stage_of(epoch=None)
    stage.append(1)
    stage.wait(10)
    assert not stage.puts
    refused = Refused.of(Unavailable("the journal", "a fault"))
    stage.apply(stage.proposed(RegisterBroker), refused)
    stage.wait(2_000)
    stage.apply(stage.proposed(RegisterBroker), Epoch(3))
    stage.turn()
    assert stage.puts[0].object == object_id(3, 0)


def test_a_fenced_broker_stops_and_says_what_it_knows(stage_of: Callable[..., Any]) -> None:
    """What was sent may have been committed by its first sending; the rest certainly wasn't."""
    stage = stage_of(linger_ms=0, puts_in_flight_max=1)
    for token in (1, 2, 3):
        stage.append(token)
        stage.turn()
    stage.put()
    fenced = Refused.of(BrokerFenced("b", 1, 2))
    stage.request(4, Promote(LogId(7), b"id"))
    stage.apply(stage.proposed(CommitObject), fenced)
    assert sorted(stage.codes()) == [
        (1, "deadline-exceeded"),
        (2, "broker-fenced"),
        (3, "broker-fenced"),
        (4, "broker-fenced"),
    ]
    stage.append(5)
    assert stage.codes() == [(5, "broker-fenced")]
    stage.wait(60_000)
    assert not stage.replies
