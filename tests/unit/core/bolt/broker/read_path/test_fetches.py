"""GETs of a broker: how few they are, whose turn it is, and what is fetched before it is wanted."""

from collections.abc import Callable
from typing import Any

from anabranch.core.bolt.protocol.messages import Delivered, Read, Subscribe
from anabranch.core.bolt.protocol.queries import Resolve
from anabranch.core.errors import StorageFailed
from anabranch.core.types import LogId

MANY = 1_000_000


def read(log: LogId, start: int = 0) -> Read:
    return Read(log, start, MANY, MANY)


def bring_all(stage: Any, contents: list[Any]) -> None:
    """Every GET in flight ends, and those that follow."""
    by_object = {content.object: content.bytes for content in contents}
    while stage.gets:
        stage.read_object(by_object[stage.gets[0].object])


def test_a_thousand_readers_of_one_extent_cost_one_get(stage: Any, props: Any) -> None:
    content = props.Content(b"a", b"b")
    for token in range(1_000):
        stage.request(token, read(props.LOG, token % 2))
        piece = content.slice(token % 2, 2 - token % 2, skip=token % 2)
        stage.answer(props.resolved(piece, tail=2))
    assert len(stage.gets) == 1
    stage.read_object(content.bytes)
    assert sorted(token for token, _ in stage.replies) == [*range(1_000)]
    assert stage.broker.counters.gets == 1


def test_twenty_readers_of_a_tail_beside_a_scan_cost_one_get_an_object(
    stage_of: Callable[..., Any], props: Any
) -> None:
    """The objects are another broker's, and between two readers of the tail a scan reads more than
    the cache holds."""
    stage = stage_of(cache_bytes=40_000)
    old, history = LogId(9), [props.Content(b"o" * 2_000, sequence=1_000 + n) for n in range(750)]
    for token in range(20):
        stage.request(token, Subscribe(props.LOG, 0))
        stage.answer(props.resolved(tail=0))
    tail = [props.Content(b"t" * 500, sequence=n, first=n) for n in range(50)]
    for turn, content in enumerate(tail):
        stage.moved(turn + 1)
        late: list[int] = []
        for reader in range(20):
            if reader % 5:
                stage.answer(props.resolved(content.slice(), tail=turn + 1))
            else:
                late.append(reader)
        bring_all(stage, tail)
        for past in history[15 * turn : 15 * turn + 15]:
            stage.request(10_000 + past.object, read(old))
            question = next(q for q in stage.pending(Resolve) if q.query.log == old)
            stage.sent.remove(question)
            stage.told(question, props.resolved(past.slice(0), tail=1))
            bring_all(stage, history)
        for _ in late:
            stage.answer(props.resolved(content.slice(), tail=turn + 1))
        bring_all(stage, tail)
    delivered = [token for token, reply in stage.replies if isinstance(reply, Delivered)]
    assert len(delivered) == 20 * len(tail)
    assert stage.broker.counters.gets - len(history) <= 1.1 * len(tail)


def test_gets_at_once_are_bounded_and_requests_take_turns(
    stage_of: Callable[..., Any], props: Any
) -> None:
    stage = stage_of(gets_in_flight_max=3)
    contents = [props.Content(b"%d" % n, sequence=n, first=n) for n in range(11)]
    stage.request(1, read(props.LOG))
    stage.answer(props.resolved(*[content.slice() for content in contents[:10]], tail=11))
    stage.request(2, read(props.LOG, 10))
    stage.answer(props.resolved(contents[10].slice(), tail=11))
    assert [get.object for get in stage.gets] == [content.object for content in contents[:3]]
    for turn in (0, 1):
        stage.read_object(contents[turn].bytes)
        assert len(stage.gets) == 3
    assert contents[10].object in [get.object for get in stage.gets], "one of few is soon served"
    bring_all(stage, contents)
    assert [token for token, _ in stage.replies] == [2, 1]
    assert len(props.values(stage.replies[1][1])) == 10


def test_a_get_that_failed_makes_room_while_it_waits(
    stage_of: Callable[..., Any], props: Any
) -> None:
    stage = stage_of(gets_in_flight_max=1)
    contents = [props.Content(b"%d" % n, sequence=n, first=n) for n in range(2)]
    for token, content in enumerate(contents):
        stage.request(token, read(props.LOG, token))
        stage.answer(props.resolved(content.slice(), tail=2))
    stage.get_failed(StorageFailed("the store", "a fault"))
    assert [get.object for get in stage.gets] == [contents[1].object]
    stage.read_object(contents[1].bytes)
    stage.wait(50)
    stage.read_object(contents[0].bytes)
    assert [token for token, _ in stage.replies] == [1, 0]


def test_a_subscribers_next_records_are_fetched_before_it_asks(stage: Any, props: Any) -> None:
    contents = [props.Content(b"%d" % n, sequence=n, first=n) for n in range(3)]
    pieces = [content.slice() for content in contents]
    stage.request(1, Subscribe(props.LOG, 0))
    asked = stage.answer(props.resolved(pieces[0], tail=3, ahead=pieces[1:]))
    assert asked.ahead_bytes == 4 << 20
    assert len(stage.gets) == 3
    bring_all(stage, contents)
    stage.answer(props.resolved(*pieces[1:], tail=3))
    assert not stage.gets
    assert [record for _, reply in stage.replies for record in props.values(reply)] == [
        (0, b"0"),
        (1, b"1"),
        (2, b"2"),
    ]
    assert stage.broker.counters.extents_read_ahead == 2


def test_only_reads_that_follow_each_other_are_read_ahead_of(stage: Any, props: Any) -> None:
    contents = [props.Content(b"%d" % n, sequence=n, first=n) for n in range(3)]
    pieces = [content.slice() for content in contents]
    stage.request(1, read(props.LOG))
    assert stage.answer(props.resolved(pieces[0], tail=3)).ahead_bytes == 0
    bring_all(stage, contents)
    stage.request(2, read(props.LOG, 2))
    assert stage.answer(props.resolved(pieces[2], tail=3)).ahead_bytes == 0
    stage.request(3, read(props.LOG, 1))
    assert stage.answer(props.resolved(pieces[1], tail=3)).ahead_bytes > 0


def test_nothing_is_read_ahead_while_others_wait(stage_of: Callable[..., Any], props: Any) -> None:
    stage = stage_of(gets_in_flight_max=1)
    contents = [props.Content(b"%d" % n, sequence=n, first=n) for n in range(3)]
    for token in (1, 2):
        stage.request(token, read(props.LOG, token))
        stage.answer(props.resolved(contents[token].slice(), tail=3))
    stage.request(3, Subscribe(props.LOG, 1))
    stage.answer(props.resolved(contents[1].slice(), tail=3, ahead=[contents[2].slice()]))
    bring_all(stage, contents)
    assert stage.broker.counters.extents_read_ahead == 0
    assert stage.broker.counters.gets == 2
