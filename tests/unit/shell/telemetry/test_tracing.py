"""What is traced, and how it gets to a collector."""

import io
from collections.abc import Sequence
from typing import Any

import pytest
from tests.collector import Collector

from anabranch.core.bolt.protocol.commands import CommitObject, Committed, Done
from anabranch.core.bolt.protocol.letters import Applied, Ask, Propose, QueryAnswer
from anabranch.core.bolt.protocol.messages import Append, Appended, Read
from anabranch.core.bolt.protocol.queries import Resolve, Resolved
from anabranch.core.errors import BadRequest, StorageFailed
from anabranch.core.machine import (
    Effects,
    Event,
    GetObject,
    ObjectPut,
    ObjectRead,
    PutFailed,
    PutObject,
    Received,
    Replies,
    Reply,
    Request,
    Requests,
    Send,
)
from anabranch.core.records.objects import object_id
from anabranch.core.types import LogId
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.otlp import Context, Span, SpanExporter, parse_traceparent
from anabranch.shell.telemetry.tracing import Choice, TracedBroker, TracedMember

LOG = LogId(7)
OBJECT = object_id(1, 7)
COMMIT = CommitObject("b", OBJECT, [])
ALL = 1


class Scripted:
    """Decides what it is told to, whatever it is given."""

    def __init__(self) -> None:
        self.next: Effects = ()

    def start(self, now: int) -> Effects:
        return ()

    def step(self, now: int, event: Event) -> Effects:
        return self.next


class Stage:
    def __init__(self, one_in: int = ALL, named: Context | None = None) -> None:
        self.machine = Scripted()
        self.spans: list[Span] = []
        self.choice = Choice("c", one_in)
        self.broker = TracedBroker(self.machine, self.choice, self.spans.append, lambda _: named)
        self.member = TracedMember(self.machine, self.choice, self.spans.append)

    def broker_steps(self, now: int, event: Event, *effects: Any) -> None:
        self.machine.next = effects
        assert self.broker.step(now, event) == effects

    def append(self, *, fails: bool = False) -> None:
        asked = Requests([1, 2], [Append(LOG, b"batch"), Append(LOG, b"other")])
        self.broker_steps(10, asked)
        self.broker_steps(20, Request(9, Append(LOG, b"later")), PutObject(OBJECT, [b""]))
        if fails:
            refused = PutFailed(OBJECT, StorageFailed("the store", "it is gone"))
            self.broker_steps(25, refused, PutObject(OBJECT, [b""]))
        self.broker_steps(30, ObjectPut(OBJECT), Send("m", Propose(5, b"", COMMIT)))
        answered = Replies([1, 2], [Appended(0), Appended(1)])
        self.broker_steps(40, Received("m", Applied(5, Committed([0]))), answered)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


def test_an_object_its_appends_its_put_and_its_commit_are_one_trace() -> None:
    stage = Stage()
    stage.append()
    (whole,) = stage.named("object")
    assert (whole.start, whole.end, whole.parent) == (10, 40, 0)
    assert {span.trace for span in stage.spans} == {whole.trace}
    assert [(s.start, s.end, s.parent) for s in stage.named("append")] == [(10, 40, whole.id)] * 2
    assert [(s.start, s.end, s.parent) for s in stage.named("put")] == [(20, 30, whole.id)]
    assert [(s.start, s.end, s.parent) for s in stage.named("commit")] == [(30, 40, whole.id)]
    assert len({span.id for span in stage.spans}) == len(stage.spans) == 5


def test_what_the_metadata_do_for_it_is_part_of_that_trace() -> None:
    stage = Stage()
    stage.append()
    there = Stage()
    there.machine.next = ()
    there.member.step(31, Received("b", Propose(5, b"", COMMIT)))
    there.member.step(32, Received("b", Propose(6, b"", COMMIT)))
    there.machine.next = (Send("b", Applied(4, Done())), Send("b", Applied(5, Committed([0]))))
    there.member.step(38, ObjectPut(OBJECT))
    (journal,) = there.spans
    (commit,) = stage.named("commit")
    assert (journal.trace, journal.parent) == (commit.trace, commit.id)
    assert (journal.name, journal.start, journal.end) == ("journal", 31, 38)


def test_a_put_that_failed_says_why() -> None:
    stage = Stage()
    stage.append(fails=True)
    first, second = stage.named("put")
    assert "it is gone" in first.failed
    assert (second.failed, second.start) == ("", 25)


def test_a_clients_trace_holds_its_appends_which_point_to_the_objects() -> None:
    client = Context(trace=77, span=88)
    stage = Stage(named=client)
    stage.append()
    (whole,) = stage.named("object")
    for span in stage.named("append"):
        assert (span.trace, span.parent) == (77, 88)
        assert list(span.links) == [Context(whole.trace, whole.id)]


def read(stage: Stage) -> None:
    stage.broker_steps(
        10, Request(3, Read(LOG, 5, 100, 100)), Send("m", Ask(6, Resolve(LOG, 5, 100, 100)))
    )
    told = Resolved([], 0, 9, 9, 0, None)
    stage.broker_steps(20, Received("m", QueryAnswer(6, told)), GetObject(8, OBJECT, 0, 10))
    stage.broker_steps(30, ObjectRead(8, b""), Reply(3, Done()))


def test_a_read_is_a_trace_with_what_it_asked() -> None:
    stage = Stage()
    read(stage)
    resolve, get, whole = stage.spans
    assert [span.name for span in stage.spans] == ["resolve", "get", "read"]
    assert (whole.start, whole.end, whole.parent) == (10, 30, 0)
    assert (resolve.start, resolve.end, resolve.parent) == (10, 20, whole.id)
    assert (get.start, get.end, get.parent) == (20, 30, whole.id)
    assert resolve.trace == get.trace == whole.trace


def test_only_some_are_traced_and_all_processes_choose_the_same() -> None:
    here, there = Choice("c", 100), Choice("c", 100)
    objects = [object_id(1, number) for number in range(5_000)]
    chosen = [each for each in objects if here.traces(each)]
    assert chosen == [each for each in objects if there.traces(each)]
    assert 10 < len(chosen) < 200
    assert here.trace(OBJECT) == there.trace(OBJECT) != Choice("d", 100).trace(OBJECT)
    stage = Stage(one_in=1 << 40)
    stage.append()
    read(stage)
    assert stage.spans == []


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("00-" + "0" * 31 + "7-" + "0" * 15 + "8-01", Context(7, 8)),
        ("00-" + "0" * 31 + "7-" + "0" * 15 + "8-00", None),
        ("00-" + "0" * 32 + "-" + "0" * 15 + "8-01", None),
        ("00-" + "g" * 32 + "-" + "0" * 15 + "8-01", None),
        ("00-7-8-01", None),
        ("", None),
    ],
)
def test_a_traceparent_is_read_as_w3c_has_it(text: str, context: Context | None) -> None:
    assert parse_traceparent(text) == context


def exported(endpoint: str, spans: Sequence[Span]) -> tuple[SpanExporter, str]:
    lines = io.StringIO()
    exporter = SpanExporter(endpoint, "anabranch-broker", "b", Log(lambda: 0, stream=lines))
    for span in spans:
        exporter.add(span)
    exporter.close()
    return exporter, lines.getvalue()


def test_spans_reach_a_collector_as_otlp_has_them() -> None:
    links = [Context(3, 4)]
    span = Span("put", 1, 2, 9, 1_000, 2_000, {"object": 7, "log": "x"}, "it failed", links)
    with Collector.listening() as collector:
        exporter, _ = exported(collector.endpoint, [span])
        (told,) = collector.until("put")
        assert collector.paths == {"/v1/traces"}
    assert exporter.counters.sent == 1
    assert told == {
        "name": "put",
        "kind": 3,
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "2",
        "parentSpanId": "0" * 15 + "9",
        "startTimeUnixNano": "1000",
        "endTimeUnixNano": "2000",
        "attributes": [
            {"key": "object", "value": {"intValue": "7"}},
            {"key": "log", "value": {"stringValue": "x"}},
        ],
        "links": [{"traceId": "0" * 31 + "3", "spanId": "0" * 15 + "4"}],
        "status": {"code": 2, "message": "it failed"},
        "service": "anabranch-broker",
    }


def test_a_collector_that_is_gone_costs_spans_and_one_line() -> None:
    span = Span("put", 1, 2, 0, 1, 2)
    exporter, said = exported("http://127.0.0.1:1", [span] * 3)
    assert (exporter.counters.sent, exporter.counters.lost) == (0, 3)
    assert said.count("traces are lost") == 1


def test_an_endpoint_that_is_none_is_refused() -> None:
    with pytest.raises(BadRequest, match="http://host:4318"):
        SpanExporter("collector:4318", "s", "n", Log(lambda: 0))
