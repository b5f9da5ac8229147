"""Which brokers a leader takes for silent, and which it finds again."""

import pytest
from tests.unit.core.bolt.metadata.member_stage import Stage

from anabranch.core.bolt.protocol.commands import (
    CreateLog,
    RegisterBroker,
)
from anabranch.core.bolt.protocol.letters import Alive, Applied
from anabranch.core.bolt.state.placement import LOST, READY
from anabranch.core.errors import StorageFailed
from anabranch.core.machine import (
    Deposed,
    PersistFailed,
    Received,
)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def registered(stage: Stage, name: str) -> int:
    stage.propose(RegisterBroker(name, f"{name}:1"), sender=name)
    stage.write()
    return stage.heard(Applied)[-1].outcome.epoch


def states(stage: Stage) -> dict[str, str]:
    placement = stage.member.state.replica.placement
    return {seat.name: seat.state for seat in placement.pool()}


def test_a_silent_broker_is_lost_and_one_that_speaks_is_found(stage: Stage) -> None:
    stage.lead()
    epochs = {name: registered(stage, name) for name in ("x", "y")}
    for _ in range(10):
        stage.wait(500)
        stage.give(Received("x", Alive(epochs["x"])))
        stage.write()
    assert states(stage) == {"x": READY, "y": LOST}
    stage.give(Received("y", Alive(epochs["y"])), Received("y", Alive(epochs["y"])))
    assert len(stage.groups) == 1, "it is found once"
    stage.write()
    assert states(stage) == {"x": READY, "y": READY}


def test_the_next_leader_gives_every_broker_the_time_to_speak(stage: Stage) -> None:
    stage.lead()
    registered(stage, "x")
    stage.give(Deposed())
    stage.wait(60_000)
    stage.lead(term=2)
    stage.wait(2_000)
    stage.write()
    assert states(stage) == {"x": READY}
    stage.wait(2_000)
    stage.write()
    assert states(stage) == {"x": LOST}


def test_a_life_that_was_replaced_keeps_no_other_alive(stage: Stage) -> None:
    stage.lead()
    old = registered(stage, "x")
    stage.wait(5_000)
    registered(stage, "x")
    stage.wait(1_000)
    stage.write()
    assert states(stage) == {"x": READY}, "a registration is a sign of life"
    for _ in range(10):
        stage.wait(500)
        stage.give(Received("x", Alive(old)))
        stage.write()
    assert states(stage) == {"x": LOST}


def test_brokers_that_speak_while_the_leader_has_its_hands_full_are_not_lost() -> None:
    stage = Stage(proposals_max=2, group_commands_max=1)
    stage.lead()
    epoch = registered(stage, "x")
    for number in range(4):
        stage.propose(CreateLog(f"log-{number}"))
    for _ in range(6):
        stage.wait(500)
        stage.give(Received("x", Alive(epoch)))
    stage.write()
    stage.wait(1_000)
    stage.write()
    assert states(stage) == {"x": READY}


def test_of_silent_brokers_those_there_was_no_room_for_are_lost_later() -> None:
    stage = Stage(proposals_max=2, group_commands_max=1)
    stage.lead()
    for name in "uvwxyz":
        registered(stage, name)
    stage.wait(4_000)
    stage.write()
    assert list(states(stage).values()).count(LOST) < 6
    for _ in range(5):
        stage.wait(1_000)
        stage.write()
    assert set(states(stage).values()) == {LOST}


def test_a_broker_whose_loss_could_not_be_journaled_is_lost_later(stage: Stage) -> None:
    stage.lead()
    registered(stage, "x")
    stage.wait(4_000)
    stage.groups.clear()
    stage.give(PersistFailed(StorageFailed("etcd", "an outage")))
    assert states(stage) == {"x": READY}
    stage.wait(1_000)
    stage.write()
    assert states(stage) == {"x": LOST}


def test_a_broker_in_the_leaders_own_process_is_never_lost(stage: Stage) -> None:
    stage.lead()
    stage.propose(RegisterBroker("x"), sender="x")
    stage.write()
    stage.wait(60_000)
    stage.write()
    assert states(stage) == {"x": READY}
