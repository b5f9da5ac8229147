"""Requests that come together, and the room that a broker has for appends."""

from collections.abc import Callable
from typing import Any

from anabranch.core.bolt.protocol.commands import Committed
from anabranch.core.bolt.protocol.messages import Append, Read
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Requests
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId
from anabranch.core.wire.session import Cancel

OTHER = LogId(8)


def test_appends_that_come_together_fare_as_if_they_had_come_one_by_one(
    stage_of: Callable[..., Any], props: Any
) -> None:
    """Bad ones, ones to other logs and ones past a bound among them."""

    def decided(together: bool) -> list[Any]:
        stage = stage_of(queue_bytes_max=600, object_bytes_max=350)
        batches = [encode([Record(b"v" * 40)] * n, now=1) for n in (1, 2, 1, 3, 1, 1, 1)]
        batches[2] = b"bad"
        logs = (props.LOG, OTHER, props.LOG, props.LOG, LogId(-1), OTHER, props.LOG)
        appends = list(map(Append, logs, batches))
        if together:
            stage.tell(Requests(range(len(appends)), appends))
        else:
            for token, append in enumerate(appends):
                stage.request(token, append)
        stage.turn()
        objects = [b"".join(put.parts) for put in stage.puts]
        while stage.puts:
            stage.put()
        for commit in stage.commits():
            stage.apply(commit, Committed([10 * row.log for row in commit.command.rows]))
        return [objects, sorted(stage.replies, key=lambda reply: reply[0])]

    assert decided(True) == decided(False)
    assert [reply.code for _, reply in decided(True)[1] if isinstance(reply, Refused)] == [
        "corrupt-batch",
        "unknown-log",
        "overloaded",
    ]


def test_one_log_cannot_take_the_room_of_all(stage_of: Callable[..., Any], props: Any) -> None:
    stage = stage_of(log_queue_bytes_max=250, queue_bytes_max=100_000)
    for token in (1, 2, 3):
        stage.append(token, b"v" * 40)
    stage.append(4, b"v" * 40, OTHER)
    ((token, refused),) = stage.take_replies()
    assert token == 3
    assert refused.code == "overloaded"
    assert "log_queue_bytes_max" in refused.message
    stage.turn()
    stage.put()
    stage.commit(0, 0)
    assert stage.broker.gauges().appends_held_bytes == 0
    stage.take_replies()
    stage.append(5, b"v" * 1_000)
    stage.append(6, b"v")
    assert stage.codes() == [(6, "overloaded")], "one, however large, is taken"


def test_requests_of_any_kind_may_come_together(stage: Any, props: Any) -> None:
    stage.tell(Requests((1, 2), (Cancel(9), Read(props.LOG, -1, 1, 1))))
    assert stage.codes() == [(2, "bad-request")]
