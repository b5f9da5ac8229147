"""Quotas through a broker: learnt on the way, counted, refused with when to come again, changed."""

from typing import Any

from tests.unit.described import described

from anabranch.core.bolt.protocol.commands import CommitObject, Committed, Description, LogQuota
from anabranch.core.bolt.protocol.messages import Delivered, Read, Subscribe
from anabranch.core.bolt.protocol.queries import Describe, Resolve
from anabranch.core.errors import Squashed
from anabranch.core.errors.refused import Refused
from anabranch.core.quota import Quota
from anabranch.core.types import LogId

LOG, OTHER = LogId(7), LogId(8)


def told(quota: Quota, log: LogId = LOG) -> list[LogQuota]:
    return [LogQuota(log, "orders", quota)]


def with_quota(quota: Quota | None) -> Description:
    return described(LOG, quota=quota)


def learn(stage: Any, quota: Quota | None, log: LogId = LOG) -> None:
    """By an append, as a broker does."""
    stage.append(900, log=log)
    commit(stage, [] if quota is None else told(quota, log))


def commit(stage: Any, quotas: list[LogQuota]) -> None:
    stage.turn()
    stage.put()
    proposal = stage.proposed(CommitObject)
    stage.apply(proposal, Committed([0 for _ in proposal.command.rows], quotas))
    stage.take_replies()


def refusals(stage: Any) -> list[tuple[int, Any]]:
    return [(token, reply.error()) for token, reply in stage.take_replies()]


def test_until_a_broker_has_heard_of_a_log_it_is_lenient(stage: Any) -> None:
    for token in range(5):
        stage.append(token, bytes(1_000))
    assert not stage.take_replies()
    commit(stage, told(Quota(append_bytes_per_s=1)))
    stage.append(10)
    stage.append(11)
    assert stage.codes() == [(11, "quota-exceeded")]


def test_a_refusal_says_which_quota_how_much_is_used_and_when_to_come_again(stage: Any) -> None:
    learn(stage, Quota(append_records_per_s=10))
    stage.append(1, count=25)
    stage.append(2)
    ((token, refused),) = refusals(stage)
    assert token == 2
    assert refused.facts == {
        "log": "orders",
        "quota": "append_records_per_s",
        "limit": 10,
        "used": 25,
        "retry_after_ms": 1_500,
    }
    assert (refused.status, refused.advice) == (429, "retry")
    stage.now += 1_499_000_000
    stage.append(3)
    assert stage.codes() == [(3, "quota-exceeded")]
    stage.now += 1_000_000
    stage.append(4)
    assert not stage.take_replies()
    assert stage.broker.counters.over_quota == 2


def test_bytes_are_limited_whatever_the_records_and_the_other_way_round(stage: Any) -> None:
    learn(stage, Quota(append_bytes_per_s=10_000, append_records_per_s=10))
    stage.append(1, bytes(20_000))
    stage.append(2)
    assert [refused.facts["quota"] for _, refused in refusals(stage)] == ["append_bytes_per_s"]
    stage.now += 60_000_000_000
    stage.append(3, count=11)
    stage.append(4)
    assert [refused.facts["quota"] for _, refused in refusals(stage)] == ["append_records_per_s"]


def test_what_was_refused_is_not_counted(stage: Any) -> None:
    learn(stage, Quota(append_records_per_s=1))
    stage.append(1, count=2)
    for token in range(2, 50):
        stage.append(token, count=1_000)
    assert len(stage.codes()) == 48
    stage.now += 1_000_000_000
    stage.append(60)
    assert not stage.take_replies()


def test_another_log_is_not_held_to_it(stage: Any) -> None:
    learn(stage, Quota(append_records_per_s=1))
    stage.append(1, count=5)
    stage.append(2, log=OTHER, count=500)
    stage.append(3, log=OTHER, count=500)
    assert not stage.take_replies()
    stage.append(4)
    assert stage.codes() == [(4, "quota-exceeded")]


def test_a_quota_that_is_told_again_goes_on_where_it_was_and_another_begins_anew(
    stage: Any,
) -> None:
    learn(stage, Quota(append_records_per_s=1))
    stage.append(1, count=100)
    commit(stage, told(Quota(append_records_per_s=1)))
    stage.append(2)
    assert stage.codes() == [(2, "quota-exceeded")]
    stage.append(3, log=OTHER)
    commit(stage, [])
    stage.append(4)
    assert stage.codes() == [(4, "quota-exceeded")], "nothing was said of this log"


def test_what_is_refused_asks_now_and_then_whether_it_still_is_to_be(stage: Any) -> None:
    learn(stage, Quota(append_records_per_s=1))
    stage.append(1, count=1_000)
    stage.append(2)
    assert stage.codes() == [(2, "quota-exceeded")]
    assert not stage.pending(Describe), "it was just heard of"
    stage.now += 1_000_000_000
    for token in range(3, 6):
        stage.append(token)
    assert len(stage.pending(Describe)) == 1
    stage.take_replies()
    assert stage.answer(with_quota(Quota(append_records_per_s=5_000)), Describe) == Describe(LOG)
    stage.append(6)
    assert not stage.take_replies()


def test_a_quota_taken_away_limits_nothing_any_more(stage: Any) -> None:
    learn(stage, Quota(append_records_per_s=1))
    learn(stage, None)
    stage.append(1, count=1_000)
    stage.append(2, count=1_000)
    assert not stage.take_replies()


def test_of_a_log_that_has_ended_nothing_is_kept(stage: Any) -> None:
    learn(stage, Quota(append_records_per_s=1))
    stage.append(1, count=1_000)
    stage.now += 1_000_000_000
    stage.append(2)
    stage.take_replies()
    stage.answer(Refused.of(Squashed("orders", "on request", "no log")), Describe)
    stage.append(3)
    assert not stage.take_replies(), "the metadata will say what became of it"


def test_a_read_is_counted_when_it_is_answered_and_the_next_one_waits(
    stage: Any, props: Any
) -> None:
    content = props.Content(bytes(3_000), b"b")
    quota = Quota(read_bytes_per_s=1_000)
    stage.request(1, Read(LOG, 0, 1, 10_000))
    stage.answer(props.resolved(content.slice(0, 1), tail=2, quotas=told(quota)))
    stage.read_object(content.bytes)
    stage.take_replies()
    stage.request(2, Read(LOG, 1, 1, 10_000))
    ((_, refused),) = refusals(stage)
    size = len(content.batches[0])
    assert refused.facts["quota"] == "read_bytes_per_s"
    assert refused.facts["used"] == size
    assert refused.facts["retry_after_ms"] == size - 1_000
    assert not stage.pending(Resolve)
    stage.append(3)
    assert not stage.take_replies(), "appends are not limited"
    stage.now += (size - 1_000) * 1_000_000
    stage.request(4, Read(LOG, 1, 1, 10_000))
    assert len(stage.pending(Resolve)) == 1


def test_a_subscriber_is_slowed_and_misses_nothing(stage: Any, props: Any) -> None:
    quota = told(Quota(read_bytes_per_s=1_000))
    stage.request(1, Subscribe(LOG, 0))
    content = props.Content(bytes(2_500))
    stage.answer(props.resolved(content.slice(), tail=2, quotas=quota))
    stage.read_object(content.bytes)
    assert [type(reply) for _, reply in stage.take_replies()] == [Delivered]
    stage.moved(2)
    assert not stage.pending(Resolve), "it has had more than its share"
    stage.wait(1_000)
    assert not stage.pending(Resolve)
    assert stage.pending(Describe), "it asks whether that still holds"
    stage.answer(with_quota(quota[0].quota), Describe)
    stage.wait(1_000)
    more = props.Content(b"next", first=1, sequence=1)
    stage.answer(props.resolved(more.slice(), tail=2, quotas=quota))
    stage.read_object(more.bytes)
    ((_, delivered),) = stage.take_replies()
    assert props.values(delivered) == [(1, b"next")]


def test_a_quota_lifted_lets_a_slowed_subscriber_go_on_at_once(stage: Any, props: Any) -> None:
    stage.request(1, Subscribe(LOG, 0))
    content = props.Content(bytes(1_000_000))
    quota = told(Quota(read_bytes_per_s=1))
    stage.answer(props.resolved(content.slice(), tail=2, quotas=quota))
    stage.read_object(content.bytes)
    stage.moved(2)
    stage.wait(1_000)
    stage.answer(with_quota(None), Describe)
    stage.wait(1_000)
    assert len(stage.pending(Resolve)) == 1


def test_logs_without_a_quota_leave_no_trace(stage: Any) -> None:
    sent = len(stage.sent)
    for log in range(100, 200):
        stage.append(log, log=LogId(log))
    stage.turn()
    stage.put()
    proposal = stage.proposed(CommitObject)
    stage.apply(proposal, Committed([0 for _ in proposal.command.rows]))
    assert len(stage.take_replies()) == 100
    assert len(stage.sent) == sent
