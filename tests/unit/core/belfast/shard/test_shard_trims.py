"""What lies below the log's beginning is forgotten, also where not all have come that far."""

import pytest
from tests.unit.core.belfast.shard.shard_stage import LEADER, Stage

from anabranch.core.belfast.ledger.decisions import Admit, Arrange, Release, TrimTo
from anabranch.core.belfast.protocol.letters import Decided
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Received
from anabranch.core.replication.replica import Role


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
    assert stage.nodes["a1"].machine.replica.log.first == 11
    stage.restart("a3")
    stage.nodes["a3"].give(Received(LEADER, Decided(1, 1, stage.entries[:known])))
    stage.settle()
    assert stage.nodes["a3"].machine.replica.log.first == 11
    stage.tell("a3", known + 1)
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=2, primary="a3", replicas=("a3",)))
    reader = stage.subscribe("a3", "a", start=15)
    assert stage.delivered(reader) == [(16, "w0", True)]


def test_who_begins_behind_a_trim_counts_neither_records_nor_noops_before() -> None:
    stage = Stage({"a": ("a1", "a2"), "b": ("b1",)})
    stage.admit(2, 1, rounds=4)
    stage.open(2, 1, rounds=4)
    stage.crash("a2")
    stage.append("a1", *map(str, range(8)))
    stage.cut(0, 4)
    stage.decide(TrimTo(12))
    stage.restart("a2")
    stage.tell("a2", 1)
    stage.append("a1", "v")
    stage.sleep(3)
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",)))
    stage.cut(1, 1)
    stage.sleep(6)
    report = stage.report("a2")
    assert (report.records, report.foretold) == (1, 1)
    assert report.records + report.noops == report.durable - 8
    stage.crash("a2")
    stage.restart("a2")
    stage.tell("a2", 1)
    stage.sleep(6)
    assert stage.report("a2").noops == report.noops


def test_a_replica_that_begins_within_a_window_learns_its_places_from_the_ledger() -> None:
    stage = Stage({"a": ("a1", "a2", "a3"), "b": ("b1",)})
    stage.nodes["a3"].deaf = True
    stage.admit(2, 1, rounds=4)
    for nth in range(4):
        stage.append("a1", f"v{nth}", f"w{nth}")
    stage.cut(0, 2)
    stage.decide(TrimTo(6))
    stage.nodes["a3"].give(Received(LEADER, Decided(1, 1, stage.entries[:1])))
    stage.settle()
    assert stage.nodes["a3"].machine.replica.log.first == 4
    stage.crash("a1")
    stage.restore("a3")
    stage.decide(Arrange(shard=0, epoch=2, primary="a3", replicas=("a3",)))
    stage.restore("a3")
    reader = stage.subscribe("a3", "a", start=6)
    assert [place for place, _, _ in stage.delivered(reader)] == [6, 7, 9, 10]


@pytest.mark.parametrize("restored", [False, True])
def test_a_shard_that_left_and_was_trimmed_comes_back_with_empty_disks(restored: bool) -> None:
    """Its local log begins where the one before ended, on all replicas."""
    stage = Stage({"a": ("a1", "a2"), "b": ("b1",)})
    before = stage.disks("a1", "a2")
    stage.decide(Admit("a", ("a1", "a2"), 0, before), Admit("b", ("b1",), 0))
    stage.open(2, 1, rounds=4)
    stage.append("a1", *map(str, range(8)))
    stage.decide(Release(0))
    stage.open(0, 1, rounds=4)
    stage.cut(0, 4)
    stage.decide(TrimTo(12))
    stage.wipe("a1", "a2")
    nodes = [stage.nodes[name] for name in ("a1", "a2")]
    if not restored:
        stage.tell("a1", 1)
        stage.tell("a2", 1)
        assert [each.machine.replica.role for each in nodes] == [Role.IDLE, Role.IDLE]
    after = stage.disks("a1", "a2")
    stage.decide(
        Admit("a", ("a1", "a2"), 0, after),
        Arrange(shard=0, epoch=2, primary="a1", replicas=("a1", "a2"), disks=after),
    )
    stage.open(2, 1, rounds=4)
    for name in ("a1", "a2"):
        stage.restore(name)
    stage.cut(1, 4)
    token = stage.append("a1", "x", "y")
    stage.cut(2, 1)
    assert stage.positions(token) == [16, 17]
    assert [each.machine.replica.log.first for each in nodes] == [8, 8]
    assert [each.machine.replica.log.last for each in nodes] == [10, 10]
    assert code(stage, stage.subscribe("a1", "a")) == "position-trimmed"
    reader = stage.subscribe("a1", "a", start=12)
    assert stage.delivered(reader) == [(16, "x", False), (17, "y", False)]
    for name in ("a1", "a2"):
        stage.crash(name)
        stage.restart(name)
        stage.restore(name)
    again = stage.subscribe("a1", "a", start=12)
    assert stage.delivered(again) == [(16, "x", False), (17, "y", False)]
