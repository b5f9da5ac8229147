"""Subscriptions: every own record once, in order, as fast as the subscriber has room."""

from tests.unit.core.erwin.shard.erwin_stage import Stage, batch
from tests.unit.core.erwin.shard.test_reads import pushed

from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Delivered
from anabranch.core.limits import Limits
from anabranch.core.wire.session import Cancel, Credit


def test_records_come_as_they_become_stable() -> None:
    stage = Stage()
    token = stage.subscribe("a1")
    pushed(stage, 3, stable=2)
    assert stage.delivered(token) == [(0, ["v0"]), (1, ["v1"])]
    stage.push("a1", 3, [], stable=3)
    assert stage.delivered(token)[2:] == [(2, ["v2"])]


def test_a_subscription_begins_where_it_was_asked_to() -> None:
    stage = Stage()
    pushed(stage, 3)
    assert stage.delivered(stage.subscribe("a1", 2)) == [(2, ["v2"])]
    later = stage.subscribe("a1", 5)
    assert stage.waits(later)
    for first in range(3, 7):
        stage.push("a1", first, [stage.row(first, 1, 0)], [batch(f"v{first}")])
    stage.push("a1", 7, [], stable=7)
    assert stage.delivered(later) == [(5, ["v5"]), (6, ["v6"])]


def test_others_rows_move_the_end_on() -> None:
    """Who follows several shards must know that nothing of this one lies below."""
    stage = Stage()
    token = stage.subscribe("a1")
    stage.push("a1", 0, [stage.row(0, 5, 1)])
    stage.push("a1", 5, [], stable=5)
    assert stage.answer(token) == Delivered(upto=5, firsts=(), counts=(), batches=())


def test_nothing_is_sent_beyond_the_credit() -> None:
    stage = Stage()
    size = len(batch("v0"))
    pushed(stage, 5)
    token = stage.subscribe("a1", window=2 * size)
    assert len(stage.delivered(token)) == 2
    stage.ask("a1", Credit(token, size))
    assert len(stage.delivered(token)) == 3
    stage.ask("a1", Credit(token, 10 * size))
    assert stage.delivered(token) == [(n, [f"v{n}"]) for n in range(5)]


def test_two_subscribers_at_the_same_place_get_what_they_have_room_for() -> None:
    size = len(batch("v0"))
    stage = Stage(limits=Limits(subscription_bytes=3 * size))
    wide, narrow = stage.subscribe("a1"), stage.subscribe("a1", window=size)
    stage.push("a1", 0, [stage.row(n, 1, 0) for n in range(3)], [batch(f"v{n}") for n in range(3)])
    stage.push("a1", 3, [], stable=3)
    assert len(stage.delivered(wide)) == 3
    assert len(stage.delivered(narrow)) == 1


def test_a_cancelled_subscription_gets_nothing_more() -> None:
    stage = Stage()
    token = stage.subscribe("a1")
    stage.ask("a1", Cancel(token))
    pushed(stage, 1)
    assert stage.waits(token)
    assert stage.nodes["a1"].machine.subscriptions == 0


def test_subscriptions_are_limited_in_number() -> None:
    stage = Stage(limits=Limits(subscriptions_max=1))
    stage.subscribe("a1")
    refused = stage.answer(stage.subscribe("a1"))
    assert isinstance(refused, Refused)
    assert refused.code == "overloaded"


def test_old_records_are_delivered_from_the_journal() -> None:
    stage = Stage(cache_bytes=300)
    pushed(stage, 30)
    token = stage.subscribe("a1")
    assert stage.delivered(token) == [(n, [f"v{n}"]) for n in range(30)]


def test_a_subscriber_that_is_overtaken_by_a_trim_is_told() -> None:
    stage = Stage()
    pushed(stage, 4)
    token = stage.subscribe("a1", window=1)
    stage.push("a1", 4, [], stable=4, trimmed=3)
    stage.ask("a1", Credit(token, 1_000))
    last = stage.answers[token][-1]
    assert isinstance(last, Refused)
    assert last.code == "position-trimmed"
    below = stage.answer(stage.subscribe("a1", 2))
    assert isinstance(below, Refused)
    assert below.code == "position-trimmed"
