"""A broker before a metadata group: it finds the leader, repeats itself to the next, and drains."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.bolt.broker.group_stage import LOG, MEMBERS, Stage

from anabranch.core.bolt.protocol import commands
from anabranch.core.bolt.protocol.commands import (
    CommitObject,
    Committed,
    Done,
    DrainBroker,
    RegisterBroker,
)
from anabranch.core.bolt.protocol.letters import Alive, Applied, Ask, Leading, Propose, Watch
from anabranch.core.bolt.protocol.messages import Describe, Read, Squash, Subscribe
from anabranch.core.bolt.state.replica import COMMITS_APART_MAX
from anabranch.core.errors import BrokerFenced, Overloaded
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import (
    Drain,
    Linked,
    Received,
    Request,
)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def led(stage: Stage) -> Stage:
    stage.begin()
    return stage


def test_it_greets_every_member_and_writes_to_nobody_until_one_leads(stage: Stage) -> None:
    assert stage.said == [(member, Alive(0)) for member in MEMBERS]
    stage.said.clear()
    stage.wait(500)
    assert stage.said == [(member, Alive(0)) for member in MEMBERS]
    stage.said.clear()
    stage.give(Received("m2", Leading(1)))
    assert [(to, type(said.command)) for to, said in stage.said] == [("m2", RegisterBroker)]


def test_registered_it_says_which_life_is_alive(led: Stage) -> None:
    led.wait(500)
    assert led.heard(Alive) == [(member, Alive(4)) for member in MEMBERS]


def test_everything_unanswered_goes_to_the_leader_of_a_later_term_in_its_order(led: Stage) -> None:
    led.append(1)
    led.put()
    led.give(Request(2, Describe("orders")))
    led.give(Request(3, Subscribe(LOG, 0)))
    before = [said for _, said in led.said]
    assert {to for to, _ in led.said} == {"m1"}
    led.said.clear()
    led.give(Received("m0", Leading(2)))
    led.give(Received("m1", Leading(3)))
    assert not led.said, "an earlier term, and the one that is known"
    led.give(Received("m0", Leading(4)))
    assert {to for to, _ in led.said} == {"m0"}
    again = [said for _, said in led.said]
    assert [each for each in again if not isinstance(each, Watch)] == [
        each for each in before if not isinstance(each, Watch)
    ]
    assert sum(isinstance(each, Propose) for each in again) == 1


def test_the_same_member_in_a_later_term_has_heard_none_of_it(led: Stage) -> None:
    led.give(Request(2, Describe("orders")))
    led.said.clear()
    led.give(Received("m1", Leading(4)))
    assert [to for to, _ in led.heard(Ask)] == ["m1"]


def test_a_new_connection_is_greeted_and_the_leaders_is_told_all_again(led: Stage) -> None:
    led.give(Request(2, Describe("orders")))
    led.said.clear()
    led.give(Linked("m0"))
    assert led.said == [("m0", Alive(4))]
    led.said.clear()
    led.give(Linked("m1"))
    assert [to for to, _ in led.heard(Ask)] == ["m1"]
    assert led.said == [("m1", Alive(4))]


def test_an_answer_counts_whoever_gives_it(led: Stage) -> None:
    """The leader before may have done what it was asked: it leads no more, and has spoken true."""
    led.append(1)
    led.put()
    ((_, proposal),) = led.heard(CommitObject)
    led.give(Received("m0", Leading(9)))
    led.give(Received("m1", Applied(proposal.token, Committed([5]))))
    assert led.codes() == [(1, "Appended")]
    led.give(Received("m0", Applied(proposal.token, Committed([5]))))
    assert not led.replies


def test_drained_it_is_moved_first_and_then_refuses_finishes_and_rests(led: Stage) -> None:
    led.append(1)
    led.give(Drain())
    led.give(Drain())
    led.append(2)
    led.give(Request(3, Read(LOG, 0, 1, 1, 0)))
    assert not led.codes(), "its logs are still its own"
    (moving,) = led.heard(DrainBroker)
    assert moving[1].command == DrainBroker("b", 4)
    led.give(Received("m1", Applied(moving[1].token, Done())))
    assert led.codes() == [(3, "broker-draining")]
    led.append(4)
    led.give(Request(5, Subscribe(LOG, 0)))
    assert led.codes() == [(4, "broker-draining"), (5, "broker-draining")]
    led.give(Request(6, Describe("orders")))
    assert led.heard(Ask), "where its logs are now it says to the end"
    while led.puts:
        led.put()
    assert led.rests == 0
    while found := led.heard(CommitObject):
        for member, proposal in found:
            rows = len(proposal.command.rows)
            led.give(Received(member, Applied(proposal.token, Committed([5] * rows))))
        while led.puts:
            led.put()
    led.wait(20)
    assert [token for token, _ in led.codes()] == [1, 2]
    assert led.rests == 1
    led.wait(60_000)
    assert led.rests == 1


def test_drained_it_answers_what_the_metadata_may_have_done_and_refuses_only_the_rest(
    led: Stage,
) -> None:
    """Clients take this refusal for a promise that nothing was done."""
    led.give(Request(1, Squash(LOG, b"request")))
    led.give(Drain())
    led.answer(DrainBroker, Done())
    assert not led.codes()
    led.wait(100)
    assert led.rests == 0
    led.answer(commands.Squash, Done())
    assert led.codes() == [(1, "Done")]
    led.wait(20)
    assert led.rests == 1


def test_drained_where_nobody_leads_it_rests_when_its_time_is_up(stage: Stage) -> None:
    stage.append(1)
    stage.give(Drain())
    stage.wait(9_000)
    assert stage.rests == 0
    stage.wait(1_100)
    assert stage.rests == 1


def test_drained_though_the_leader_refuses_it_ends_all_the_same(led: Stage) -> None:
    led.give(Drain())
    led.answer(DrainBroker, Refused.of(Overloaded("proposals", 1, "proposals_max")))
    assert led.rests == 1


@pytest.mark.parametrize("drained_first", [True, False])
def test_one_that_was_replaced_has_nothing_in_hand_and_rests(
    led: Stage, drained_first: bool
) -> None:
    led.append(1)
    led.put()
    if drained_first:
        led.give(Drain())
    led.answer(CommitObject, Refused.of(BrokerFenced("b", 4, 5)))
    assert led.codes() == [(1, "deadline-exceeded")]
    assert led.rests == 1
    led.give(Drain())
    assert led.rests == 1


def test_commits_are_sent_so_near_each_other_that_none_is_taken_for_a_late_one(
    stage_of: Callable[..., Any],
) -> None:
    """The first is lost on its way, and all others are answered at once."""
    stage = stage_of(linger_ms=0, puts_in_flight_max=1)
    numbers: list[int] = []
    for token in range(1, 3 * COMMITS_APART_MAX):
        stage.append(token, producer=token, sequence=0)
        stage.turn()
        while stage.puts:
            stage.put()
        for proposal in [each for each in stage.commits() if each.command.number]:
            stage.sent.remove(proposal)
            numbers.append(proposal.command.number)
            stage.apply(proposal, Committed([0] * len(proposal.command.rows)))
    assert max(numbers) == COMMITS_APART_MAX - 1
    (lost,) = stage.commits()
    assert lost.command.number == 0
    stage.sent.remove(lost)
    stage.apply(lost, Committed([0] * len(lost.command.rows)))
    assert stage.commits(), "the others go on"
