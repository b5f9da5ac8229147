"""A traced machine does what it would do untraced, whatever it is given and decides."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.bolt.protocol.commands import CommitObject, Committed
from anabranch.core.bolt.protocol.letters import Applied, Ask, Propose, QueryAnswer
from anabranch.core.bolt.protocol.messages import Append, Appended, Read, Survey
from anabranch.core.bolt.protocol.queries import At, PositionAt
from anabranch.core.errors import StorageFailed
from anabranch.core.machine import (
    Effects,
    Event,
    GetFailed,
    GetObject,
    Gone,
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
    SetTimer,
    TimerFired,
)
from anabranch.core.records.objects import object_id
from anabranch.core.types import LogId
from anabranch.shell.telemetry.otlp import Context, Span
from anabranch.shell.telemetry.tracing import Choice, TracedBroker, TracedMember

LOG = LogId(1)
FAILED = StorageFailed("the store", "it is gone")

tokens = st.integers(1, 2)
objects = tokens.map(lambda number: object_id(1, number))
messages = st.sampled_from([Append(LOG, b"batch"), Read(LOG, 0, 1, 1), Survey()])
proposals = tokens.map(
    lambda number: Propose(number, b"", CommitObject("b", object_id(1, number), []))
)
"""An object's commit is asked for again under its own token."""
events = st.one_of(
    st.builds(Request, tokens, messages),
    st.lists(tokens, min_size=1, max_size=3, unique=True).map(
        lambda several: Requests(several, [Append(LOG, b"batch")] * len(several))
    ),
    st.builds(ObjectPut, objects),
    st.builds(PutFailed, objects, st.just(FAILED)),
    st.builds(Received, st.just("m"), st.builds(Applied, tokens, st.just(Committed([0])))),
    st.builds(Received, st.just("m"), st.builds(QueryAnswer, tokens, st.just(At(1)))),
    st.builds(Received, st.just("b"), proposals),
    st.builds(ObjectRead, tokens, st.just(b"content")),
    st.builds(GetFailed, tokens, st.just(FAILED)),
    st.builds(Gone, st.lists(tokens, max_size=3)),
    st.just(TimerFired("alarms")),
)
effects = st.lists(
    st.one_of(
        st.builds(Reply, tokens, st.just(Appended(0))),
        st.builds(Replies, st.lists(tokens, max_size=3), st.just([])),
        st.builds(PutObject, objects, st.just([b""])),
        st.builds(Send, st.just("m"), proposals),
        st.builds(Send, st.just("m"), st.builds(Ask, tokens, st.just(PositionAt(LOG, 1)))),
        st.builds(Send, st.just("b"), st.builds(Applied, tokens, st.just(Committed([0])))),
        st.builds(GetObject, tokens, objects, st.just(0), st.just(9)),
        st.just(SetTimer("alarms", 9)),
    ),
    max_size=4,
).map(tuple)


class Scripted:
    def __init__(self) -> None:
        self.next: Effects = ()
        self.given: list[Event] = []

    def start(self, now: int) -> Effects:
        return self.next

    def step(self, now: int, event: Event) -> Effects:
        self.given.append(event)
        return self.next


@settings(max_examples=200)
@given(st.lists(st.tuples(events, effects), max_size=40), st.integers(1, 3), st.booleans())
def test_tracing_changes_nothing_and_never_fails(
    steps: list[tuple[Event, Effects]], one_in: int, named: bool
) -> None:
    """A letter that is lost, repeated or late is nothing that could end a broker."""
    spans: list[Span] = []
    choice = Choice("c", one_in)
    above = Context(7, 8) if named else None
    script = Scripted()
    broker = TracedBroker(script, choice, spans.append, lambda _: above)
    member = TracedMember(script, choice, spans.append)
    for now, (event, decided) in enumerate(steps):
        script.next = decided
        for traced in (broker, member):
            assert traced.step(now, event) is decided
            assert script.given.pop() is event
    for span in spans:
        assert 0 <= span.start <= span.end < len(steps)
        assert 0 < span.id < 1 << 64
        assert 0 < span.trace < 1 << 128
    assert {each.name for each in spans} <= {
        "append", "commit", "get", "journal", "object", "put", "read", "resolve"
    }  # fmt: skip


@given(st.lists(tokens, min_size=1, max_size=20))
def test_a_request_is_traced_from_its_beginning_to_its_one_answer(asked: list[int]) -> None:
    spans: list[Any] = []
    script = Scripted()
    broker = TracedBroker(script, Choice("c", 1), spans.append, lambda _: None)
    open_: dict[int, int] = {}
    expected: list[tuple[int, int]] = []
    for now, token in enumerate(asked):
        if token in open_:
            script.next = (Reply(token, Appended(0)),)
            broker.step(now, TimerFired("alarms"))
            expected.append((open_.pop(token), now))
        else:
            script.next = ()
            broker.step(now, Request(token, Read(LOG, token, 1, 1)))
            open_[token] = now
    assert [(each.start, each.end) for each in spans] == expected
