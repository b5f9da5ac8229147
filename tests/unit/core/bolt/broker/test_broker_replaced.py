"""A broker that another process has replaced learns it from the leader, also if it is idle."""

from tests.unit.core.bolt.broker.group_stage import Stage

from anabranch.core.bolt.protocol.letters import Leading
from anabranch.core.bolt.protocol.messages import Describe
from anabranch.core.machine import Received, Request


def test_a_later_life_of_its_name_stops_it() -> None:
    stage = Stage()
    stage.begin()
    stage.append(1)
    stage.give(Received("m1", Leading(3, 4)))
    assert stage.broker.fenced is None
    stage.give(Received("m1", Leading(3, 5)))
    assert stage.broker.fenced is not None
    assert stage.rests == 1
    stage.give(Request(2, Describe("orders")))
    assert stage.codes() == [(1, "broker-fenced"), (2, "broker-fenced")]


def test_one_that_is_not_registered_yet_is_nobodys_earlier_life() -> None:
    stage = Stage()
    stage.give(Received("m1", Leading(3, 5)))
    assert stage.broker.fenced is None
