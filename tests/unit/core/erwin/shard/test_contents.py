"""What a replica holds, over trims, restarts and learners."""

from tests.unit.core.erwin.shard.erwin_stage import Stage, batch
from tests.unit.core.erwin.shard.test_reads import pushed

from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.letters import LearnShard
from anabranch.core.erwin.protocol.rows import Fence
from anabranch.core.machine import Received


def test_a_trim_is_acknowledged_when_all_replicas_have_journaled_it() -> None:
    stage = Stage()
    pushed(stage, 4)
    stage.nodes["a2"].held = True
    stage.push("a1", 4, [], stable=4, trimmed=2)
    assert stage.pushed("a1").trimmed == 0
    stage.nodes["a2"].held = False
    stage.settle()
    assert stage.pushed("a1").trimmed == 2


def test_a_trim_survives_a_fence_that_voids_the_item_that_told_of_it() -> None:
    stage = Stage()
    pushed(stage, 3)
    stage.nodes["a2"].held = True
    rows = [stage.row(3, 1, 0)]
    stage.push("a1", 3, rows, [batch("void")], stable=3, trimmed=2)
    stage.push("a1", 3, [], fence=Fence(2, 1), base=3, stable=3, trimmed=2)
    stage.nodes["a2"].held = False
    stage.settle()
    assert (stage.pushed("a1").upto, stage.pushed("a1").trimmed) == (3, 2)
    stage.crash("a1")
    assert stage.take_over("a", "a2", "a2")
    assert stage.nodes["a2"].machine.contents.marks.trimmed == 2


def test_what_is_trimmed_leaves_the_journal() -> None:
    stage = Stage()
    pushed(stage, 40)
    stage.push("a1", 40, [], stable=40, trimmed=30)
    for name in ("a1", "a2"):
        node = stage.nodes[name]
        assert node.machine.replica.log.first == 30
        assert node.snapshot is not None


def test_a_restart_after_a_trim_goes_on_where_it_was() -> None:
    stage = Stage()
    pushed(stage, 40)
    stage.push("a1", 40, [], stable=40, trimmed=30)
    stage.push("a1", 40, [stage.row(40, 1, 0)], [batch("more")], stable=40, trimmed=30)
    stage.restart("a1")
    assert stage.contents(stage.read("a1", 39)) == [(39, ["v39"])]
    refused = stage.answer(stage.read("a1", 29))
    assert isinstance(refused, Refused)
    assert refused.code == "position-trimmed"
    stage.push("a1", 41, [], stable=41, trimmed=30)
    assert stage.contents(stage.read("a1", 40)) == [(40, ["more"])]
    assert stage.pushed("a1").trimmed == 30


def test_a_shard_that_is_trimmed_as_a_whole_knows_where_it_ends() -> None:
    stage = Stage()
    pushed(stage, 10)
    stage.push("a1", 10, [], stable=10, trimmed=10)
    for _ in range(2):
        machine = stage.nodes["a1"].machine
        assert machine.contents.map.end == 10
        assert len(machine.contents.map) == 1
        stage.restart("a1")
    stage.push("a1", 10, [stage.row(10, 1, 0)], [batch("next")], stable=10, trimmed=10)
    assert stage.pushed("a1").upto == 11


def test_a_takeover_right_after_a_trim_serves_nothing_of_what_is_trimmed() -> None:
    stage = Stage()
    pushed(stage, 10)
    stage.push("a1", 10, [], stable=10, trimmed=7)
    stage.crash("a1")
    stage.take_over("a", "a2", "a2")
    refused = stage.answer(stage.read("a2", 6))
    assert isinstance(refused, Refused)
    assert refused.code == "position-trimmed"
    assert stage.contents(stage.read("a2", 9)) == [(9, ["v9"])]


def test_a_learner_of_a_trimmed_shard_knows_its_positions() -> None:
    stage = Stage()
    stage.crash("a2")
    stage.take_over("a", "a1", "a1")
    pushed(stage, 40)
    stage.push("a1", 40, [], stable=40, trimmed=40)
    stage.nodes["a2"].start()
    stage.settle()
    stage.nodes["a2"].give(Received("c1", LearnShard(shard="a", epoch=2, primary="a1")))
    stage.sleep(1_000)
    learned = stage.nodes["a2"].machine.contents
    assert (learned.map.end, learned.marks.trimmed) == (40, 40)


def test_controllers_are_told_what_a_replica_holds() -> None:
    stage = Stage()
    pushed(stage, 4)
    stage.push("a1", 4, [], stable=4, trimmed=1)
    stage.sleep(200)
    present = stage.present("a1")
    assert (present.held, present.stable, present.trimmed) == (4, 4, 1)
    assert (present.epoch, present.established, present.version) == (1, True, 1)
    assert present.fence == (1 << 20) | 1


def test_a_replica_that_cannot_write_falls_silent_if_another_may_take_over() -> None:
    stage = Stage()
    node = stage.nodes["a1"]
    node.held = True
    stage.push("a1", 0, [stage.row(0, 1, 0)], [batch("x")])
    node.fail_to_write()
    assert node.machine.obstacle is not None
    stage.letters.clear()
    stage.sleep(1_000)
    assert stage.told("a1", "c1") == []
    node.held = False
    stage.sleep(1_000)
    assert stage.present("a1").established
