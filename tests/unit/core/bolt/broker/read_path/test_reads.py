"""Reads through a broker: which bytes, from where, cut how, and what if there are none."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.described import described

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.letters import Unwatch, Watch
from anabranch.core.bolt.protocol.messages import Appended, Read, Records
from anabranch.core.bolt.protocol.queries import Describe, Resolve
from anabranch.core.errors import ObjectMissing, StorageFailed, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Gone
from anabranch.core.records.batch import peek
from anabranch.core.records.objects import ObjectName
from anabranch.core.records.origins import deliveries
from anabranch.core.types import LogId
from anabranch.core.wire.session import Cancel

MANY = 1_000_000


def read(log: LogId, start: int = 0, wait_ms: int = 0, **more: int) -> Read:
    budget = {"records_max": MANY, "bytes_max": MANY, **more}
    return Read(log, start, budget["records_max"], budget["bytes_max"], wait_ms)


def description(log: LogId, tail: int, settled: int, undecided: str | None) -> Description:
    return described(
        log, tail=tail, settled=settled, own_records=tail, forks=1, undecided=undecided
    )


def test_a_read_gets_verified_batches_at_the_logs_positions(stage: Any, props: Any) -> None:
    content = props.Content(b"a", b"b", b"c", first=40)
    stage.request(1, read(props.LOG, 40))
    asked = stage.answer(props.resolved(content.slice(), tail=43))
    assert (asked.log, asked.start) == (props.LOG, 40)
    get = stage.read_object(content.bytes)
    assert (get.object, get.start, get.length) == (content.object, 0, len(content.bytes))
    token, reply = stage.replies[0]
    assert token == 1
    assert props.values(reply) == [(40, b"a"), (41, b"b"), (42, b"c")]
    assert [peek(batch).base_offset for batch in reply.batches] == [40, 41, 42]
    assert (reply.next, reply.start, reply.tail, reply.settled) == (43, 0, 43, 43)


def test_only_the_batches_that_are_needed_leave(stage: Any, props: Any) -> None:
    content = props.Content(b"a", b"b", b"c", b"d")
    stage.request(1, read(props.LOG, 11, records_max=2))
    stage.answer(props.resolved(content.slice(11, 2, skip=1), tail=20))
    stage.read_object(content.bytes)
    reply = stage.replies[0][1]
    assert props.values(reply) == [(11, b"b"), (12, b"c")]
    assert len(reply.batches) == 2
    assert reply.next == 13


def test_5_5_origins_of_shifted_positions(stage: Any, props: Any) -> None:
    """Records of a parent stand further up in a fork, and say where they came from."""
    parents, own = props.Content(b"p0", b"p1"), props.Content(b"c0", sequence=1)
    pieces = (
        parents.slice(0, 1),
        type(own.slice())(1, 1, own.object, 0, len(own.bytes), 0, LogId(9), 1),
        type(own.slice())(2, 1, parents.object, 0, len(parents.bytes), 1, props.LOG, 1),
    )
    stage.request(1, read(LogId(9)))
    stage.answer(props.resolved(*pieces, tail=3))
    stage.read_object(parents.bytes)
    stage.read_object(own.bytes)
    reply = stage.replies[0][1]
    found = [
        (at, log, there, r.value) for at, log, there, r in deliveries(reply.runs, reply.batches)
    ]
    assert found == [
        (0, props.LOG, 0, b"p0"),
        (1, 9, 1, b"c0"),
        (2, props.LOG, 1, b"p1"),
    ]


@pytest.mark.parametrize(("batches", "got"), [(0.5, 1), (1, 1), (2.5, 2), (3, 3)])
def test_bytes_max_is_kept_but_one_batch_always_comes(
    stage: Any, props: Any, batches: float, got: int
) -> None:
    content = props.Content(b"a", b"b", b"c")
    bytes_max = int(len(content.batches[0]) * batches)
    stage.request(1, read(props.LOG, bytes_max=bytes_max))
    stage.answer(props.resolved(content.slice(), tail=3))
    stage.read_object(content.bytes)
    assert len(stage.replies[0][1].batches) == got
    assert stage.replies[0][1].next == got


def test_read_bytes_max_bounds_what_may_be_asked(stage_of: Callable[..., Any], props: Any) -> None:
    stage = stage_of(read_bytes_max=1_000)
    stage.request(1, read(props.LOG))
    assert stage.pending(Resolve)[0].query.bytes_max == 1_000


@pytest.mark.parametrize(
    "message",
    [
        read(LogId(7), -1),
        read(LogId(7), 1 << 63),
        read(LogId(7), records_max=0),
        read(LogId(7), bytes_max=0),
    ],
    ids=["before the start", "past every position", "no records", "no bytes"],
)
def test_a_read_that_means_nothing_is_refused_unasked(stage: Any, message: Read) -> None:
    stage.request(1, message)
    assert stage.codes() == [(1, "bad-request")]
    assert not stage.pending(Resolve)


def test_what_the_metadata_refuse_is_refused(stage: Any, props: Any) -> None:
    stage.request(1, read(props.LOG))
    stage.answer(Refused.of(UnknownLog("7")))
    assert stage.codes() == [(1, "unknown-log")]
    assert stage.broker.gauges().waits == 0


def test_what_was_just_written_is_read_without_a_get(stage: Any, props: Any) -> None:
    stage.append(1, b"a")
    stage.append(2, b"b")
    stage.turn()
    object = stage.put()
    row = stage.commit(0).rows[0]
    length = sum(batch.length for batch in row.batches)
    piece = type(props.Content(b"").slice())(0, 2, object, row.offset, length, 0, props.LOG, 0)
    stage.take_replies()
    stage.request(3, read(props.LOG))
    stage.answer(props.resolved(piece, tail=2))
    assert not stage.gets
    assert props.values(stage.replies[0][1]) == [(0, b"a"), (1, b"b")]
    assert stage.broker.counters.cache_hits == 1


def test_one_get_serves_all_who_want_the_same(stage: Any, props: Any) -> None:
    content = props.Content(b"a", b"b")
    for token in (1, 2):
        stage.request(token, read(props.LOG))
        stage.answer(props.resolved(content.slice(), tail=2))
    assert len(stage.gets) == 1
    stage.read_object(content.bytes)
    stage.request(3, read(props.LOG, 1))
    stage.answer(props.resolved(content.slice(1, 1, skip=1), tail=2))
    assert not stage.gets
    assert [token for token, _ in stage.replies] == [1, 2, 3]


def test_neighbours_in_one_object_come_with_one_get(
    stage_of: Callable[..., Any], props: Any
) -> None:
    stage = stage_of(read_gap_bytes_max=200_000)
    mine, others = props.Content(b"a"), props.Content(b"b")
    size = len(mine.bytes)
    second = type(mine.slice())(1, 1, mine.object, 2 * size, size, 0, LogId(8), 0)
    far = type(mine.slice())(2, 1, mine.object, 300_000, size, 0, LogId(8), 1)
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(mine.slice(), second, far, tail=3))
    assert [(get.start, get.length) for get in stage.gets] == [(0, 3 * size), (300_000, size)]
    stage.read_object(mine.bytes + others.bytes + mine.bytes)
    stage.read_object(bytes(300_000) + others.bytes)
    assert props.values(stage.replies[0][1]) == [(0, b"a"), (1, b"a"), (2, b"b")]


def test_the_cache_is_bounded(stage_of: Callable[..., Any], props: Any) -> None:
    stage = stage_of(cache_bytes=2_000)
    contents = [props.Content(b"x" * 300, sequence=n) for n in range(3)]
    for token, content in enumerate(contents):
        stage.request(token, read(props.LOG))
        stage.answer(props.resolved(content.slice(), tail=1))
        stage.read_object(content.bytes)
    assert stage.broker.gauges().cache_bytes <= 2_000
    stage.request(8, read(props.LOG))
    stage.answer(props.resolved(contents[2].slice(), tail=1))
    assert not stage.gets, "the last is the one that is kept"
    stage.request(9, read(props.LOG))
    stage.answer(props.resolved(contents[0].slice(), tail=1))
    assert len(stage.gets) == 1


@pytest.mark.parametrize("at", [0, 8, 16, 30, 61, 68])
def test_a_damaged_object_is_named_and_not_delivered(stage: Any, props: Any, at: int) -> None:
    content = props.Content(b"a", b"b", b"c")
    spoilt = bytearray(content.bytes)
    second = len(content.batches[0])
    spoilt[second + at] ^= 0x40
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(content.slice(), tail=3))
    stage.read_object(bytes(spoilt))
    if at < 8:
        ((_, reply),) = stage.replies
        assert isinstance(reply, Records), "a base offset is not what the store says it is"
        return
    stage.read_object(bytes(spoilt))
    ((_, reply),) = stage.take_replies()
    assert (props.values(reply), reply.next) == ([(0, b"a")], 1), "what lies before it comes"
    error = refused(stage, props, content, bytes(spoilt), 1)
    facts = error.facts
    assert (facts["log"], facts["position"], facts["object"]) == (
        "orders",
        1,
        str(ObjectName.of("cluster", content.object)),
    )
    assert f"byte {second}: " in error.message
    # Where a batch ends can't be told if its length is wrong.
    assert facts["after"] == (3 if at == 8 else 2)
    if facts["after"] == 2:
        found = [props.values(each) for each in reads_from(stage, props, content, bytes(spoilt), 2)]
        assert found == [[(2, b"c")]]


def reads_from(stage: Any, props: Any, content: Any, spoilt: bytes, start: int) -> list[Any]:
    stage.request(1, read(props.LOG, start))
    stage.answer(props.resolved(content.slice(start, 3 - start, start), tail=3))
    for _ in range(2):
        stage.read_object(bytes(spoilt))
    if stage.pending(Describe):
        stage.answer(described(props.LOG, "orders"), Describe)
    return [reply for _, reply in stage.take_replies()]


def refused(stage: Any, props: Any, content: Any, spoilt: bytes, start: int) -> Any:
    (error,) = reads_from(stage, props, content, spoilt, start)
    assert error.code == "records-damaged"
    return error


def test_damage_that_goes_on_is_told_as_one(stage: Any, props: Any) -> None:
    content = props.Content(b"a", b"b", b"c")
    spoilt = bytearray(content.bytes)
    for batch in (0, 1):
        spoilt[sum(map(len, content.batches[: batch + 1])) - 1] ^= 1
    error = refused(stage, props, content, bytes(spoilt), 0)
    assert (error.facts["position"], error.facts["after"]) == (0, 2)


def test_a_damaged_count_gives_no_position_to_what_follows(stage: Any, props: Any) -> None:
    """Were it believed, the next record would be delivered as another one."""
    content = props.Content(b"a", b"b", b"c")
    spoilt = bytearray(content.bytes)
    spoilt[60] ^= 2
    error = refused(stage, props, content, bytes(spoilt), 0)
    assert (error.facts["position"], error.facts["after"]) == (0, 3)


def test_damage_of_one_extent_leaves_those_that_came_with_it(stage: Any, props: Any) -> None:
    lost, kept = props.Content(b"a"), props.Content(b"b", sequence=1, first=1)
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(kept.slice(0), lost.slice(1), tail=2))
    stage.read_object(kept.bytes, 1)
    stage.get_failed(ObjectMissing("x"))
    ((_, reply),) = stage.replies
    assert (props.values(reply), reply.next) == ([(0, b"b")], 1)


def test_bytes_that_were_spoilt_on_their_way_are_read_again(stage: Any, props: Any) -> None:
    content = props.Content(b"a")
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(content.slice(), tail=1))
    stage.read_object(content.bytes[:-1] + b"?")
    assert not stage.replies
    stage.read_object(content.bytes)
    assert props.values(stage.replies[0][1]) == [(0, b"a")]
    assert stage.broker.counters.gets_damaged == 1


def test_an_object_cut_short_is_damaged(stage: Any, props: Any) -> None:
    content = props.Content(b"a")
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(content.slice(), tail=1))
    stage.read_object(content.bytes[:-1])
    stage.read_object(content.bytes[:-1])
    stage.answer(described(props.LOG, "orders"), Describe)
    assert stage.codes() == [(1, "records-damaged")]


def test_an_extent_that_lacks_records_is_damaged(stage: Any, props: Any) -> None:
    content = props.Content(b"a")
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(content.slice(0, 2), tail=2))
    stage.read_object(content.bytes)
    ((_, reply),) = stage.take_replies()
    assert (props.values(reply), reply.next) == ([(0, b"a")], 1)


def test_a_store_that_falters_is_asked_again(stage: Any, props: Any) -> None:
    content = props.Content(b"a")
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(content.slice(), tail=1))
    stage.get_failed(StorageFailed("the store", "a fault"))
    stage.wait(50)
    stage.read_object(content.bytes)
    assert props.values(stage.replies[0][1]) == [(0, b"a")]


@pytest.mark.parametrize(
    ("error", "gets"), [(StorageFailed("the store", "a fault"), 4), (ObjectMissing("x"), 1)]
)
def test_a_store_that_cannot_is_not_asked_for_ever(
    stage: Any, props: Any, error: Exception, gets: int
) -> None:
    content = props.Content(b"a")
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(content.slice(), tail=1))
    while stage.gets:
        stage.get_failed(error)
        stage.wait(1_000)
    if isinstance(error, ObjectMissing):
        stage.answer(described(props.LOG, "orders"), Describe)
        assert stage.codes() == [(1, "records-damaged")]
    else:
        assert stage.codes() == [(1, "storage-failed")]
    assert stage.broker.counters.gets == gets


def test_d1_a_read_at_the_tail_answers_empty_at_once_unless_it_waits(
    stage: Any, props: Any
) -> None:
    stage.request(1, read(props.LOG, 3))
    stage.answer(props.resolved(tail=3))
    assert stage.replies == [(1, Records([], [], 3, 0, 3, 3))]


def test_d1_a_waiting_read_wakes_when_there_is_something(stage: Any, props: Any) -> None:
    content = props.Content(b"d", first=3)
    stage.request(1, read(props.LOG, 3, wait_ms=5_000))
    stage.answer(props.resolved(tail=3))
    assert stage.pending(Watch) == [Watch([(props.LOG, 0)])]
    stage.moved(3)
    assert not stage.pending(Resolve)
    stage.moved(4)
    stage.answer(props.resolved(content.slice(), tail=4))
    stage.read_object(content.bytes)
    assert props.values(stage.replies[0][1]) == [(3, b"d")]
    stage.wait(10_000)
    assert len(stage.replies) == 1
    assert stage.pending(Unwatch) == [Unwatch([props.LOG])]


def test_a_move_that_came_before_the_answer_is_not_missed(stage: Any, props: Any) -> None:
    for token, start in ((1, 9), (2, 3)):
        stage.request(token, read(props.LOG, start, wait_ms=60_000))
        stage.answer(props.resolved(tail=start))
        if token == 1:
            stage.moved(4)
    assert stage.pending(Resolve)[0].query.start == 3


@pytest.mark.parametrize(("asked_ms", "waits_ms"), [(5_000, 5_000), (99_999, 60_000)])
def test_a_wait_ends_with_an_empty_answer(
    stage: Any, props: Any, asked_ms: int, waits_ms: int
) -> None:
    stage.request(1, read(props.LOG, 3, wait_ms=asked_ms))
    stage.answer(props.resolved(tail=3))
    stage.wait(waits_ms - 1)
    assert not stage.replies
    stage.wait(1)
    assert stage.replies == [(1, Records([], [], 3, 0, 3, 3))]
    assert stage.broker.gauges().waits == 0


@pytest.mark.parametrize(("asked_ms", "waits_ms"), [(0, 0), (500, 500), (60_000, 10_000)])
def test_6_1_a_blocked_read_names_the_fork_in_the_way(
    stage: Any, props: Any, asked_ms: int, waits_ms: int
) -> None:
    stage.request(1, read(props.LOG, 3, wait_ms=asked_ms))
    stage.answer(props.resolved(tail=5, settled=3, undecided="orders--try"))
    if waits_ms:
        stage.wait(waits_ms - 1)
        assert not stage.pending(Describe)
        stage.wait(1)
    stage.answer(description(props.LOG, 5, 3, "orders--try"), Describe)
    ((_, refused),) = stage.replies
    assert refused.code == "read-blocked"
    assert refused.facts == {"log": "orders", "position": 3, "fork": "orders--try"}


def test_a_fork_decided_at_the_last_moment_blocks_nothing(stage: Any, props: Any) -> None:
    content = props.Content(b"d", first=3)
    stage.request(1, read(props.LOG, 3))
    stage.answer(props.resolved(tail=5, settled=3, undecided="orders--try"))
    stage.answer(description(props.LOG, 5, 5, None), Describe)
    stage.answer(props.resolved(content.slice(), tail=5))
    stage.read_object(content.bytes)
    assert props.values(stage.replies[0][1]) == [(3, b"d")]


def test_a_blocked_read_goes_on_after_the_decision(stage: Any, props: Any) -> None:
    content = props.Content(b"d", first=3)
    stage.request(1, read(props.LOG, 3, wait_ms=5_000))
    stage.answer(props.resolved(tail=4, settled=3, undecided="orders--try"))
    stage.moved(5, 3, undecided="orders--try")
    assert not stage.pending(Resolve)
    stage.moved(5)
    stage.answer(props.resolved(content.slice(), tail=5))
    stage.read_object(content.bytes)
    assert props.values(stage.replies[0][1]) == [(3, b"d")]


def test_a_plain_read_never_goes_past_what_is_settled(stage: Any, props: Any) -> None:
    content = props.Content(b"a", b"b", b"c")
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(content.slice(), tail=3, settled=2))
    stage.read_object(content.bytes)
    assert props.values(stage.replies[0][1]) == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize("leave", ["gone", "cancel"])
def test_nobody_is_answered_who_has_left(stage: Any, props: Any, leave: str) -> None:
    content = props.Content(b"a")
    stage.request(1, read(props.LOG, 3, wait_ms=5_000))
    stage.answer(props.resolved(tail=3))
    stage.request(2, read(props.LOG))
    stage.answer(props.resolved(content.slice(), tail=1))
    stage.request(3, read(props.LOG))
    if leave == "gone":
        stage.tell(Gone((1, 2, 3)))
    else:
        for token in (1, 2, 3):
            stage.request(9, Cancel(token))
    stage.read_object(content.bytes)
    stage.answer(props.resolved(tail=0))
    stage.wait(10_000)
    assert not stage.replies
    assert stage.broker.gauges().waits == 0
    assert not [1 for watch in stage.pending(Watch)[-1:] if watch.logs != [(props.LOG, 0)]]


def test_waits_max_and_one_past_it(stage_of: Callable[..., Any], props: Any) -> None:
    stage = stage_of(waits_max=2)
    for token in (1, 2, 3):
        stage.request(token, read(props.LOG, 3, wait_ms=5_000))
    assert stage.codes() == [(3, "overloaded")]
    stage.tell(Gone((1,)))
    stage.request(4, read(props.LOG))
    assert not stage.replies


def test_a_lost_question_is_asked_again_and_given_up_in_the_end(stage: Any, props: Any) -> None:
    stage.request(1, read(props.LOG))
    first = stage.pending(Resolve)[0]
    stage.wait(3_000)
    assert stage.pending(Resolve) == [first, first]
    stage.wait(30_000)
    assert stage.codes() == [(1, "deadline-exceeded")]
    stage.append(2)
    stage.turn()
    stage.put()
    stage.commit(0)
    assert stage.replies == [(2, Appended(0))]


def test_a_watch_is_repeated_with_what_was_heard(stage: Any, props: Any) -> None:
    stage.request(1, read(props.LOG, 3, wait_ms=60_000))
    stage.answer(props.resolved(tail=3))
    stage.moved(3)
    stage.sent.clear()
    stage.wait(1_000)
    assert stage.sent == [Watch([(props.LOG, 1)])]


def test_an_older_move_that_comes_late_is_dropped(stage: Any, props: Any) -> None:
    stage.request(1, read(props.LOG, 3, wait_ms=60_000))
    stage.answer(props.resolved(tail=3))
    stage.version = 7
    stage.moved(3)
    stage.version = 4
    stage.moved(9)
    assert not stage.pending(Resolve)
