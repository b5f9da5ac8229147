"""Subscriptions: in order, without holes, speculation confirmed or failed before it comes again."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.described import described

from anabranch.core.bolt.protocol.letters import Watch
from anabranch.core.bolt.protocol.messages import Confirmed, Delivered, Failed, Subscribe
from anabranch.core.bolt.protocol.queries import Describe, Resolve
from anabranch.core.errors import OutOfRange, StorageFailed
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Gone
from anabranch.core.types import LogId
from anabranch.core.wire.session import Cancel, Credit

LOG = LogId(7)
SQUASHED = Refused("squashed", "it was squashed", {})


def events(stage: Any, props: Any) -> list[Any]:
    """What the subscriber got, records as (position, value)."""
    found: list[Any] = []
    for _, message in stage.take_replies():
        if isinstance(message, Delivered):
            found.append(("sure", "maybe")[message.speculative])
            found += props.values(message)
        else:
            found.append(message)
    return found


def deliver(stage: Any, props: Any, first: int, *values: bytes, **more: Any) -> None:
    """Answer the subscription's question with these records, and the GET with their bytes."""
    content = props.Content(*values, first=first, sequence=stage.broker.counters.gets)
    stage.answer(props.resolved(content.slice(), **more))
    stage.read_object(content.bytes)


def test_what_is_there_is_pushed_and_what_comes_too(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", tail=2)
    assert events(stage, props) == ["sure", (0, b"a"), (1, b"b")]
    assert not stage.pending(Resolve)
    stage.moved(2)
    assert not stage.pending(Resolve)
    stage.moved(3)
    deliver(stage, props, 2, b"c", tail=3)
    assert events(stage, props) == ["sure", (2, b"c")]


def test_a_subscriber_past_the_fork_point_is_told_which_records_may_move(
    stage: Any, props: Any
) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", b"c", tail=3, settled=1)
    assert events(stage, props) == ["sure", (0, b"a"), "maybe", (1, b"b"), (2, b"c")]


def test_a_squash_confirms(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", tail=2, settled=1)
    events(stage, props)
    stage.moved(2, 2)
    assert events(stage, props) == [Confirmed(2)]


def test_a_promotion_fails_what_was_ahead_of_it_and_it_comes_again(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", tail=2, settled=1)
    events(stage, props)
    stage.moved(3, 3, generation=1)
    assert events(stage, props) == [Failed(1)]
    deliver(stage, props, 1, b"x", b"b", tail=3, generation=1)
    assert events(stage, props) == ["sure", (1, b"x"), (2, b"b")]


def test_a_promotion_fails_only_what_it_moved(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", b"c", tail=3, settled=1)
    events(stage, props)
    known = stage.moved(3, 1)
    stage.moved(4, 4, generation=1, diverges=2, after=known)
    assert events(stage, props) == [Failed(2), Confirmed(2)]


def test_a_promotion_told_after_a_move_that_never_came_fails_all_that_is_uncertain(
    stage: Any, props: Any
) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", b"c", tail=3, settled=1)
    events(stage, props)
    lost = stage.moved(3, 1) + 1
    stage.moved(4, 4, generation=1, diverges=2, after=lost)
    assert events(stage, props)[0] == Failed(1)


def test_a_page_asked_for_before_a_promotion_and_answered_after_it_is_asked_for_anew(
    stage: Any, props: Any
) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", tail=3, settled=1)
    events(stage, props)
    stage.moved(3, 3, generation=1)
    late = props.Content(b"c", first=2, sequence=77)
    stage.answer(props.resolved(late.slice(), tail=3, generation=1))
    assert events(stage, props) == [Failed(1)]
    deliver(stage, props, 1, b"x", b"c", tail=3, generation=1)
    assert events(stage, props) == ["sure", (1, b"x"), (2, b"c")]


def test_what_was_confirmed_never_fails(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", b"c", tail=3, settled=1)
    stage.moved(3, 2)
    stage.moved(4, 4, generation=1, diverges=0)
    assert events(stage, props)[-2:] == [Confirmed(2), Failed(2)]


def test_an_answer_from_before_the_promotion_is_not_delivered(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", tail=2, settled=1)
    events(stage, props)
    stage.moved(3, 1)
    content = props.Content(b"old", first=2, sequence=77)
    stage.answer(props.resolved(content.slice(), tail=3, settled=1))
    stage.moved(4, 4, generation=1)
    stage.read_object(content.bytes)
    assert events(stage, props) == [Failed(1)]
    assert stage.pending(Resolve)[0].query.start == 1
    older = props.Content(b"older", first=1, sequence=78)
    stage.answer(props.resolved(older.slice(), tail=3, settled=1))
    assert not stage.gets
    assert stage.pending(Resolve)[0].query.start == 1


def test_an_answer_from_after_a_promotion_that_was_not_heard_of_waits_for_it(
    stage: Any, props: Any
) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", tail=2, settled=1)
    events(stage, props)
    stage.moved(3, 1)
    content = props.Content(b"b", first=2, sequence=77)
    stage.answer(props.resolved(content.slice(), tail=3, generation=1))
    assert not stage.gets
    assert not events(stage, props)
    assert stage.pending(Watch)[-1] == Watch([(LOG, 0)])
    assert len(stage.pending(Watch)) == 2
    stage.moved(3, generation=1)
    assert events(stage, props) == [Failed(1)]
    deliver(stage, props, 1, b"x", b"b", tail=3, generation=1)
    assert events(stage, props) == ["sure", (1, b"x"), (2, b"b")]


def test_one_who_wants_no_speculation_gets_none(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0, speculative=False))
    deliver(stage, props, 0, b"a", b"b", tail=2, settled=1)
    assert events(stage, props) == ["sure", (0, b"a")]
    stage.moved(4, 1)
    assert not stage.pending(Resolve)
    stage.moved(4, generation=1)
    deliver(stage, props, 1, b"x", tail=4, generation=1)
    assert events(stage, props) == ["sure", (1, b"x")]


def test_nothing_is_pushed_without_credit(stage: Any, props: Any) -> None:
    size = len(props.Content(b"a").bytes)
    stage.request(1, Subscribe(LOG, 0, credit_bytes=2 * size))
    deliver(stage, props, 0, b"a", b"b", b"c", tail=3)
    assert events(stage, props) == ["sure", (0, b"a"), (1, b"b")]
    assert not stage.pending(Resolve)
    stage.request(2, Credit(1, 1))
    deliver(stage, props, 2, b"c", tail=3)
    assert events(stage, props) == ["sure", (2, b"c")]
    stage.moved(4)
    assert not stage.pending(Resolve), "one batch may overdraw the credit, not two"


def test_credit_that_ends_among_settled_records_calls_none_of_them_speculative(
    stage: Any, props: Any
) -> None:
    size = len(props.Content(b"a").bytes)
    stage.request(1, Subscribe(LOG, 0, credit_bytes=size + 1))
    content = props.Content(b"a", b"b", b"c")
    stage.answer(props.resolved(content.slice(), tail=3, settled=2))
    stage.read_object(content.bytes)
    assert events(stage, props) == ["sure", (0, b"a")]


def test_credit_is_bounded(stage_of: Callable[..., Any]) -> None:
    stage = stage_of(subscription_bytes=1_000)
    stage.request(1, Subscribe(LOG, 0, credit_bytes=1 << 40))
    assert stage.pending(Resolve)[0].query.bytes_max == 1_000


@pytest.mark.parametrize("size", [0, -5])
def test_credit_of_nothing_changes_nothing(stage: Any, props: Any, size: int) -> None:
    stage.request(1, Subscribe(LOG, 0, credit_bytes=1))
    deliver(stage, props, 0, b"a", tail=2)
    stage.request(2, Credit(1, size))
    stage.request(3, Credit(99, 5))
    assert not stage.pending(Resolve)


@pytest.mark.parametrize("speculating", [True, False])
def test_the_end_of_a_log_fails_what_is_uncertain_and_ends(
    stage: Any, props: Any, speculating: bool
) -> None:
    stage.request(1, Subscribe(LOG, 0))
    deliver(stage, props, 0, b"a", b"b", tail=2, settled=1 if speculating else 2)
    events(stage, props)
    stage.moved(0, 0, ended=SQUASHED)
    assert events(stage, props) == ([Failed(1)] if speculating else []) + [SQUASHED]
    stage.moved(5)
    assert stage.broker.gauges().subscriptions == 0


def test_a_subscriber_whom_the_trim_overtakes_is_told(stage: Any, props: Any) -> None:
    refused = Refused.of(OutOfRange("orders", 0, 5, 9))
    stage.request(1, Subscribe(LOG, 0))
    stage.answer(refused)
    assert stage.replies == [(1, refused)]
    assert stage.broker.gauges().subscriptions == 0


def test_an_object_that_cannot_be_read_ends_it(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    stage.answer(props.resolved(props.Content(b"a").slice(), tail=1))
    while stage.gets:
        stage.get_failed(StorageFailed("the store", "a fault"))
        stage.wait(999)
    assert stage.codes() == [(1, "storage-failed")]


def test_an_answer_without_the_records_that_were_announced_is_asked_for_again(
    stage: Any, props: Any
) -> None:
    stage.request(1, Subscribe(LOG, 0))
    stage.moved(5)
    stage.answer(props.resolved(tail=0))
    assert not stage.pending(Resolve)
    stage.wait(1_000)
    assert stage.pending(Resolve)


@pytest.mark.parametrize("leave", [Gone((1,)), Cancel(1)])
def test_nothing_is_pushed_to_one_who_has_left(stage: Any, props: Any, leave: Any) -> None:
    content = props.Content(b"a")
    stage.request(1, Subscribe(LOG, 0))
    stage.answer(props.resolved(content.slice(), tail=1))
    if isinstance(leave, Gone):
        stage.tell(leave)
    else:
        stage.request(2, leave)
    stage.read_object(content.bytes)
    stage.moved(2)
    assert not stage.replies
    assert stage.broker.gauges().subscriptions == 0


def test_subscriptions_max_and_one_past_it(stage_of: Callable[..., Any]) -> None:
    stage = stage_of(subscriptions_max=2)
    for token in (1, 2, 3):
        stage.request(token, Subscribe(LOG, 0))
    assert stage.codes() == [(3, "overloaded")]


def test_a_position_no_log_can_have_is_refused(stage: Any) -> None:
    stage.request(1, Subscribe(LOG, -1))
    assert stage.codes() == [(1, "bad-request")]


def test_a_subscriber_gets_what_lies_before_damage_then_where_to_go_on(
    stage: Any, props: Any
) -> None:
    content = props.Content(b"a", b"b", b"c")
    spoilt = bytearray(content.bytes)
    spoilt[len(content.batches[0]) + 68] ^= 1
    stage.request(1, Subscribe(LOG, 0))
    for start in (0, 1):
        stage.answer(props.resolved(content.slice(start, 3 - start, start), tail=3))
        for _ in range(2):
            stage.read_object(bytes(spoilt))
    stage.answer(described(LOG, "orders"), Describe)
    *delivered, error = events(stage, props)
    assert delivered == ["sure", (0, b"a")]
    assert error.code == "records-damaged"
    assert (error.facts["position"], error.facts["after"]) == (1, 2)
    stage.request(2, Subscribe(LOG, error.facts["after"]))
    stage.answer(props.resolved(content.slice(2, 1, 2), tail=3))
    for _ in range(2):
        stage.read_object(bytes(spoilt))
    assert events(stage, props) == ["sure", (2, b"c")]
