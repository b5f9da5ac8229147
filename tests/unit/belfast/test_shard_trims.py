"""What lies below the log's beginning is forgotten, also where not all have come that far."""

from tests.unit.belfast.shard_stage import LEADER, Stage

from anabranch.core.belfast.decisions import Arrange, TrimTo
from anabranch.core.belfast.letters import Decided
from anabranch.core.bolt.commands import Refused
from anabranch.core.machine import Received


def code(stage: Stage, token: int) -> str:
    refused = stage.answer(token)
    assert isinstance(refused, Refused), refused
    return refused.code


def test_a_retry_of_what_was_trimmed_in_part_before_it_was_confirmed_is_told_so() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit(2, 1, rounds=1)
    stage.open(3, 1)
    stage.append("a1", "v0", "v1", "v2", producer=1)
    stage.append("a1", "w0", producer=2)
    stage.cut(0, 1)
    stage.crash("a1")
    stage.decide(TrimTo(3))
    stage.restart("a1")
    stage.tell("a1", 1)
    again = stage.append("a1", "v0", "v1", "v2", producer=1)
    other = stage.append("a1", "w0", producer=2)
    assert stage.waits(again)
    stage.cut(1, 1)
    assert code(stage, again) == "request-forgotten"
    assert stage.positions(other) == [4]


def test_a_replica_that_copies_what_a_trim_left_may_be_ahead_of_its_ledger() -> None:
    stage = Stage({"a": ("a1", "a2", "a3"), "b": ("b1",)})
    stage.admit(2, 1, rounds=4)
    stage.open(3, 1)
    known = len(stage.entries)
    stage.crash("a3")
    stage.append("a1", *map(str, range(8)))
    stage.append("a1", "v0", "v1", "v2")
    stage.append("a1", "w0")
    stage.cut(0, 1)
    stage.cut(0, 4)
    stage.cut(1, 1)
    stage.decide(TrimTo(15))
    assert stage.nodes["a1"].machine.copies.first == 11
    stage.restart("a3")
    stage.nodes["a3"].give(Received(LEADER, Decided(1, 1, stage.entries[:known])))
    stage.settle()
    assert stage.nodes["a3"].machine.copies.first == 11
    stage.tell("a3", known + 1)
    stage.crash("a1")
    stage.decide(Arrange(0, 2, "a3", ("a3",)))
    reader = stage.subscribe("a3", "a", start=15)
    assert stage.delivered(reader) == [(16, "w0", True)]
