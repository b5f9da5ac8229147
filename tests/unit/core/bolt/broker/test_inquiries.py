"""Questions to metadata that lose, repeat and delay: each is answered once, in the end."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.bolt.broker.parts import Bench

from anabranch.core.bolt.broker.inquiries import PATIENCE_MS, Correspondence
from anabranch.core.bolt.protocol.commands import CreateLog, Done
from anabranch.core.bolt.protocol.letters import Applied, Ask, Propose, QueryAnswer
from anabranch.core.bolt.protocol.queries import At, PositionAt
from anabranch.core.errors.refused import Refused
from anabranch.core.types import LogId

QUERY = PositionAt(LogId(1), 5)
COMMAND = CreateLog("orders")


def begun(propose_retry_ms: int = 20) -> tuple[Bench, Correspondence]:
    bench = Bench(propose_retry_ms=propose_retry_ms)
    correspondence = Correspondence(bench.context)
    correspondence.begin(b"a life")
    return bench, correspondence


steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "propose", "lose", "answer", "again", "wait", "lead"]),
        st.integers(0, 30),
    ),
    max_size=50,
)


@settings(max_examples=120)
@given(steps)
def test_each_question_is_answered_once_though_letters_are_lost_and_repeated(
    steps: list[tuple[str, int]],
) -> None:
    bench, correspondence = begun()
    under_way: list[Any] = []
    late: list[Any] = []
    answers: dict[int, list[Any]] = {}
    number = 0
    for what, much in steps:
        match what:
            case "ask":
                heard = answers.setdefault(number, [])
                correspondence.ask(QUERY, heard.append)
                number += 1
            case "propose":
                heard = answers.setdefault(number, [])
                correspondence.propose(b"%d" % number, COMMAND, heard.append, patient=much % 2 == 0)
                number += 1
            case "lose" if under_way:
                under_way.pop(much % len(under_way))
            case "answer" if under_way:
                asked = under_way.pop(much % len(under_way))
                late.append(asked)
                correspondence.heard(answer(asked))
            case "again" if late:
                correspondence.heard(answer(late[much % len(late)]))
            case "wait":
                bench.advance(much)
            case "lead":
                correspondence.repeat_all()
            case _:
                pass
        under_way += bench.told()
        assert all(len(each) <= 1 for each in answers.values())
    for _ in range(3):
        bench.advance(40)
        for asked in bench.told():
            correspondence.heard(answer(asked))
    assert all(len(each) == 1 for each in answers.values()), "the metadata hear well again"
    for each in answers.values():
        assert each[0] in (At(1), Done())
    bench.advance(100)
    assert bench.told() == [], "nothing is repeated that was answered"


def answer(asked: Any) -> Applied | QueryAnswer:
    if isinstance(asked, Propose):
        return Applied(asked.token, Done())
    assert isinstance(asked, Ask)
    return QueryAnswer(asked.token, At(1))


def test_a_client_is_told_in_the_end_and_what_the_broker_needs_is_asked_for_ever() -> None:
    bench, correspondence = begun(propose_retry_ms=5_000)
    told: list[Any] = []
    needed: list[Any] = []
    correspondence.ask(QUERY, told.append)
    correspondence.propose(b"once", COMMAND, needed.append, patient=True)
    bench.advance(PATIENCE_MS - 1)
    assert told == []
    bench.advance(5_000)
    (refused,) = told
    assert isinstance(refused, Refused)
    assert refused.code == "deadline-exceeded"
    assert "PositionAt" in refused.message
    assert needed == []
    bench.told()
    bench.advance(10_000)
    assert {type(each) for each in bench.told()} == {Propose}


def test_a_question_is_repeated_as_it_was_so_that_it_is_done_once() -> None:
    bench, correspondence = begun()
    correspondence.propose(b"once", COMMAND, lambda _: None, digest=7)
    (first,) = bench.told()
    bench.advance(60)
    again = bench.told()
    assert again
    assert set(map(repr, again)) == {repr(first)}
    assert (first.request, first.digest) == (b"once", 7)
    assert bench.outbox.counters.questions_repeated == len(again)


def test_an_answer_to_another_life_is_nobodys() -> None:
    _, correspondence = begun()
    other = Bench()
    earlier = Correspondence(other.context)
    earlier.begin(b"a life before")
    earlier.ask(QUERY, lambda _: None)
    (asked,) = other.told()
    heard: list[Any] = []
    correspondence.ask(QUERY, heard.append)
    correspondence.heard(answer(asked))
    assert heard == []


@pytest.mark.parametrize("known", [True, False])
def test_what_is_asked_while_nobody_leads_is_said_to_the_next_who_does(known: bool) -> None:
    bench, correspondence = begun()
    bench.outbox.metadata = "metadata" if known else None
    correspondence.ask(QUERY, lambda _: None)
    assert len(bench.told()) == known
    bench.outbox.metadata = "another"
    correspondence.repeat_all()
    assert len(bench.told()) == 1
