"""A shard's primary in mode m: pushes, answers, fences, takeovers."""

import pytest
from msgspec.structs import replace
from tests.unit.core.erwin.shard.erwin_stage import FENCE, LEADER, Stage, batch

from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.letters import LearnShard, Push, SealShard, Stale
from anabranch.core.erwin.protocol.messages import Elsewhere, Read
from anabranch.core.erwin.protocol.rows import NO_SHARD, Fence
from anabranch.core.erwin.shard.pushes import ANSWER_MS
from anabranch.core.erwin.shard.shard import LOOK_MS
from anabranch.core.machine import Drain, Received
from anabranch.core.sequencing.protocol.messages import Directory, Locate

A, B, C = batch("A0", "A1"), batch("B"), batch("C0", "C1", "C2")
LATER = Fence(2, 1)


def filled() -> Stage:
    """Shard a holds positions 0 and 1, and 3 to 5; shard b holds 2."""
    stage = Stage()
    push_all(stage)
    return stage


def push_all(stage: Stage, stable: int = 6) -> None:
    rows = [stage.row(0, 2, 0), stage.row(2, 1, 1)]
    stage.push("a1", 0, rows, [A])
    stage.push("b1", 0, rows, [B])
    rows = [stage.row(3, 3, 0)]
    stage.push("a1", 3, rows, [C])
    stage.push("b1", 3, rows)
    for node in ("a1", "b1"):
        stage.push(node, 6, [], stable=stable)


def test_a_push_is_answered_when_all_replicas_of_the_shard_hold_it() -> None:
    stage = Stage()
    stage.nodes["a2"].held = True
    stage.push("a1", 0, [stage.row(0, 2, 0)], [A])
    assert [each for _, each in stage.told("a1")] == []
    stage.nodes["a2"].held = False
    stage.settle()
    assert stage.pushed("a1").upto == 2
    assert stage.pushed("a1").fence == FENCE


def test_new_rows_are_answered_once_and_not_before_all_replicas_hold_them() -> None:
    stage = filled()
    stage.letters.clear()
    stage.nodes["a2"].held = True
    stage.push("a1", 6, [stage.row(6, 1, 0)], [B])
    assert stage.told("a1") == []
    stage.nodes["a2"].held = False
    stage.settle()
    assert [each.upto for _, each in stage.told("a1")] == [7]


def test_that_more_is_stable_is_answered_with_the_next_rows() -> None:
    stage = filled()
    stage.push("a1", 6, [stage.row(6, 1, 0)], [B], stable=6)
    stage.letters.clear()
    stage.push("a1", 7, [], stable=7, answer_later=True)
    assert stage.told("a1") == []
    assert stage.contents(stage.read("a1", 6)) == [(6, ["B"])]
    stage.push("a1", 7, [stage.row(7, 1, 0)], [B], stable=7)
    stage.sleep(2 * ANSWER_MS)
    assert [(each.upto, each.stable) for _, each in stage.told("a1")] == [(8, 7)]


def test_that_more_is_stable_is_answered_after_a_while_without_more_rows() -> None:
    stage = filled()
    stage.push("a1", 6, [stage.row(6, 1, 0)], [B], stable=6)
    stage.letters.clear()
    stage.push("a1", 7, [], stable=7, answer_later=True)
    stage.sleep(2 * ANSWER_MS)
    assert [each.stable for _, each in stage.told("a1")] == [7]


def test_every_shard_holds_the_map_and_its_own_batches() -> None:
    stage = filled()
    assert stage.contents(stage.read("a1", 0)) == [(0, ["A0", "A1"]), (3, ["C0", "C1", "C2"])]
    found = stage.records(stage.read("b1", 0))
    assert (found.firsts, found.batches, found.upto) == ((2,), (B,), 6)
    spans = [(span.first, span.count, span.shard) for span in found.elsewhere]
    assert spans == [(0, 2, "a"), (3, 3, "a")]


def test_a_push_that_came_before_is_answered_again() -> None:
    stage = Stage()
    rows = [stage.row(0, 2, 0)]
    stage.push("a1", 0, rows, [A])
    stage.letters.clear()
    stage.push("a1", 0, rows, [A], stable=2)
    assert stage.pushed("a1").upto == 2
    assert stage.nodes["a1"].machine.counters.repeated == 1
    assert stage.contents(stage.read("a1", 0)) == [(0, ["A0", "A1"])]


def test_a_push_behind_a_gap_is_answered_with_where_the_shard_ends() -> None:
    stage = Stage()
    stage.push("a1", 0, [stage.row(0, 2, 0)], [A])
    stage.push("a1", 5, [stage.row(5, 1, 1)])
    assert (stage.pushed("a1").upto, stage.pushed("a1").wanted) == (2, 2)
    stage.push("a1", 2, [stage.row(2, 3, 0)], [C])
    assert (stage.pushed("a1").upto, stage.pushed("a1").wanted) == (5, -1)


def test_an_empty_push_asks_how_far_the_shard_is() -> None:
    stage = filled()
    stage.letters.clear()
    stage.push("a1", 9, [])
    assert (stage.pushed("a1").upto, stage.pushed("a1").wanted) == (6, 6)


def test_an_answer_says_what_keeps_the_shard_from_writing() -> None:
    stage = Stage()
    stage.push("a1", 0, [stage.row(0, 2, 0)], [A])
    assert stage.pushed("a1").obstacle == ""
    primary = stage.nodes["a1"]
    primary.held = True
    stage.push("a1", 2, [stage.row(2, 1, 0)], [B])
    primary.fail_to_write()
    stage.push("a1", 3, [])
    assert "disk" in stage.pushed("a1").obstacle
    primary.held = False
    stage.sleep(1_000)
    assert stage.pushed("a1").upto == 3
    assert stage.pushed("a1").obstacle == ""


def test_the_leader_learns_of_a_harmed_black_box_though_nothing_is_appended() -> None:
    stage = Stage({"a": ("a1",)}, far=True)
    stage.push("a1", 0, [stage.row(0, 2, 0)], [A])
    primary = stage.nodes["a1"]
    primary.held = True
    stage.sleep(LOOK_MS)
    assert primary.writing == []
    stage.letters.clear()
    primary.fail_to_write()
    stage.settle()
    assert "disk" in stage.pushed("a1").obstacle
    assert "disk" in (primary.machine.obstacle or "")
    primary.held = False
    stage.sleep(LOOK_MS)
    assert stage.pushed("a1").obstacle == ""


def test_replicas_whose_data_directories_were_exchanged_name_each_other() -> None:
    stage = Stage({"a": ("a1", "a2")}, arranged=False)
    first, second = stage.nodes["a1"], stage.nodes["a2"]
    stage.sleep(1)
    stage.crash("a2")
    second.wipe()
    second.start()
    stage.settle()
    stage.arrange(stage.setup("a", 0, "a1", "a1", "a2"))
    assert (first.machine.obstacle, second.machine.obstacle) == (None, None)
    stage.crash("a1")
    stage.crash("a2")
    first.disk, second.disk = second.disk, first.disk
    first.last, second.last = second.last, first.last
    for node in (first, second):
        node.start()
    stage.settle()
    for name in ("a1", "a2"):
        stage.configure(name)
    assert "journal is that of a2" in (first.machine.obstacle or "")
    assert "journal is that of a1" in (second.machine.obstacle or "")


def test_a_higher_fence_voids_what_lies_behind_its_base() -> None:
    """What an earlier leader pushed beyond was never readable (LazyLog, 4.5)."""
    stage = Stage()
    stage.push("a1", 0, [stage.row(0, 2, 0)], [A])
    stage.push("a1", 2, [stage.row(2, 3, 0)], [C], stable=2)
    stage.push("a1", 2, [stage.row(2, 1, 0)], [B], fence=LATER, base=2, stable=2)
    assert stage.pushed("a1").upto == 3
    stage.push("a1", 3, [], fence=LATER, base=2, stable=3)
    assert stage.contents(stage.read("a1", 0)) == [(0, ["A0", "A1"]), (2, ["B"])]


def test_a_push_of_a_lower_fence_is_refused() -> None:
    stage = Stage()
    stage.push("a1", 0, [], fence=LATER)
    stage.letters.clear()
    stage.push("a1", 0, [stage.row(0, 2, 0)], [A])
    assert stage.told("a1") == [(LEADER, Stale(LATER))]
    assert stage.nodes["a1"].machine.contents.map.end == 0


def test_a_takeover_knows_the_fence_that_was_answered() -> None:
    """Whoever is primary next takes nothing of an earlier leader."""
    stage = Stage()
    stage.push("a1", 0, [], fence=LATER)
    assert stage.pushed("a1").fence == LATER
    stage.crash("a1")
    assert stage.take_over("a", "a2", "a2")
    stage.letters.clear()
    stage.push("a2", 0, [stage.row(0, 2, 0)], [A])
    assert stage.told("a2") == [(LEADER, Stale(LATER))]


def test_a_takeover_holds_what_was_answered_and_serves_what_was_stable() -> None:
    stage = filled()
    stage.sleep(1_500)  # the watermarks are logged, though no push comes
    stage.crash("a1")
    stage.take_over("a", "a2", "a2")
    assert stage.contents(stage.read("a2", 0)) == [(0, ["A0", "A1"]), (3, ["C0", "C1", "C2"])]
    stage.push("a2", 6, [stage.row(6, 1, 0)], [B])
    assert stage.pushed("a2").upto == 7


def test_a_replica_that_comes_back_learns_and_joins_again() -> None:
    stage = filled()
    stage.crash("a1")
    stage.take_over("a", "a2", "a2")
    stage.push("a2", 6, [stage.row(6, 1, 0)], [B], stable=6)
    stage.restart("a1")
    number = stage.configuration.shards[0].number
    learn = LearnShard(shard="a", epoch=2, primary="a2")
    stage.nodes["a1"].give(Received("c1", learn))
    stage.sleep(2_000)
    assert stage.present("a2").caught_up == ("a1",)
    both = stage.setup("a", number, "a2", "a2", "a1", epoch=3)
    stage.arrange(both, stage.configuration.shards[1])
    stage.push("a2", 7, [stage.row(7, 2, 0)], [A], stable=7)
    assert stage.pushed("a2").upto == 9
    assert stage.nodes["a1"].machine.contents.map.end == 9


def test_a_restart_serves_what_was_stable_and_takes_the_next_push() -> None:
    stage = filled()
    stage.sleep(1_500)
    stage.restart("a1")
    assert stage.contents(stage.read("a1", 3)) == [(3, ["C0", "C1", "C2"])]
    stage.push("a1", 6, [stage.row(6, 1, 0)], [B])
    assert stage.pushed("a1").upto == 7


def test_a_restart_after_a_fence_lacks_what_was_void() -> None:
    stage = Stage()
    stage.push("a1", 0, [stage.row(0, 2, 0)], [A])
    stage.push("a1", 2, [stage.row(2, 3, 0)], [C])
    stage.push("a1", 2, [], fence=LATER, base=2)
    stage.restart("a1")
    assert stage.nodes["a1"].machine.contents.map.end == 2
    stage.push("a1", 2, [stage.row(2, 1, 0)], [B], fence=LATER, base=2)
    stage.push("a1", 3, [], fence=LATER, base=2, stable=3)
    assert stage.contents(stage.read("a1", 2)) == [(2, ["B"])]


def test_a_shard_that_was_added_later_begins_at_its_base() -> None:
    """No row below names it; who asks it for positions below is sent to a shard that was there."""
    stage = Stage()
    stage.push("b1", 10, [stage.row(10, 1, 1)], [B], base=10)
    stage.push("b1", 11, [], base=10, stable=11)
    assert stage.pushed("b1").upto == 11
    found = stage.records(stage.read("b1", 4))
    assert [(span.first, span.count, span.shard) for span in found.elsewhere] == [(4, 6, "a")]
    assert (found.firsts, found.upto) == ((10,), 11)
    stage.restart("b1")
    stage.push("b1", 11, [], base=10, stable=11)
    assert stage.records(stage.read("b1", 4)) == found


def test_rows_of_a_removed_shard_are_no_ops_everywhere() -> None:
    stage = Stage()
    rows = [stage.row(0, 2, NO_SHARD)]
    for node in ("a1", "b1"):
        stage.push(node, 0, rows)
        stage.push(node, 2, [], stable=2)
        assert stage.contents(stage.read(node, 0)) == [(0, [])]


@pytest.mark.parametrize("node", ["a2", "b1"])
def test_a_read_at_another_node_is_sent_to_the_primary(node: str) -> None:
    stage = filled()
    token = stage.ask(node, Read(shard="a", start=0, bytes_max=1, records_max=1))
    assert stage.answer(token) == Elsewhere("a1")


def test_a_sealed_primary_has_its_clients_ask_again_until_there_is_another() -> None:
    stage = filled()
    waiting, stream = stage.read("a1", 6, wait_ms=5_000), stage.subscribe("a1", 6)
    stage.take_over("a", "a2", "a1", "a2")
    assert stage.answer(waiting) == stage.answers[stream][-1] == Elsewhere("")
    assert stage.answer(stage.read("a1", 6)) == Elsewhere("a2")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Read(shard="x", start=0, bytes_max=1, records_max=1), "unknown-shard"),
        (Read(shard="a", start=-1, bytes_max=1, records_max=1), "bad-request"),
        ("nonsense", "bad-request"),
    ],
)
def test_what_no_shard_can_answer_is_refused(message: object, code: str) -> None:
    stage = Stage()
    answer = stage.answer(stage.ask("a1", message))
    assert isinstance(answer, Refused)
    assert answer.code == code


def test_a_replica_without_a_configuration_says_what_it_waits_for() -> None:
    stage = Stage(arranged=False)
    answer = stage.answer(stage.read("a1", 0))
    assert isinstance(answer, Refused)
    assert answer.code == "shard-away"
    assert stage.nodes["a1"].machine.obstacle is not None
    assert stage.present("a1").nodes == ("a1", "a2")


def test_any_replica_tells_where_the_nodes_are() -> None:
    stage = Stage()
    directory = stage.answer(stage.ask("a2", Locate()))
    assert isinstance(directory, Directory)
    found = [(shard.name, shard.primary, shard.epoch) for shard in directory.shards]
    assert found == [("a", "a1", 1), ("b", "b1", 1)]


def test_a_replica_may_go_at_once() -> None:
    stage = Stage()
    stage.nodes["a1"].give(Drain())
    assert stage.nodes["a1"].rested


def test_a_process_that_ends_serves_until_its_shard_goes_on_without_it() -> None:
    stage = Stage(hands_over=True)
    stage.nodes["a1"].give(Drain())
    stage.settle()
    assert stage.present("a1").leaving
    stage.push("a1", 0, [stage.row(0, 1, 0)], [batch("x")])
    assert stage.pushed("a1").upto == 1
    assert not stage.nodes["a1"].rested
    assert stage.take_over("a", "a2", "a2")
    assert stage.nodes["a1"].rested
    assert not stage.nodes["a2"].rested


def test_a_process_that_ends_waits_for_its_shard_only_so_long() -> None:
    stage = Stage(hands_over=True)
    stage.nodes["a1"].give(Drain())
    stage.sleep(stage.limits.handover_ms - 1)
    assert not stage.nodes["a1"].rested
    stage.sleep(2)
    assert stage.nodes["a1"].rested


def test_the_only_replica_of_a_shard_ends_at_once() -> None:
    stage = Stage({"a": ("a1",)}, hands_over=True)
    stage.nodes["a1"].give(Drain())
    assert stage.nodes["a1"].rested


PUSH = Push(fence=LATER, base=6, first=6, rows=[], batches=[], stable=6, trimmed=0)


@pytest.mark.parametrize(
    ("sender", "push"),
    [
        ("stranger", replace(PUSH, trimmed=6)),
        (LEADER, replace(PUSH, trimmed=7)),
        (LEADER, replace(PUSH, base=0)),
        (LEADER, replace(PUSH, rows=[Stage({}).row(7, 1, 0)], batches=[B])),
        (LEADER, replace(PUSH, rows=[Stage({}).row(6, 1, 0)], batches=[])),
    ],
    ids=["of a stranger", "trims what isn't stable", "voids what is stable", "a gap", "no batch"],
)
def test_a_push_of_no_leader_or_that_cannot_be_changes_nothing(sender: str, push: Push) -> None:
    stage = filled()
    node = stage.nodes["a1"]
    node.give(Received(sender, push))
    stage.settle()
    assert node.machine.counters.nonsense == 1
    assert node.machine.contents.marks.trimmed == 0
    assert stage.contents(stage.read("a1", 0)) == [(0, ["A0", "A1"]), (3, ["C0", "C1", "C2"])]
    stage.push("a1", 6, [stage.row(6, 1, 0)], [B], stable=6)
    assert stage.pushed("a1").upto == 7


def test_only_controllers_configure_seal_and_teach_a_shard() -> None:
    stage = filled()
    node, known = stage.nodes["a1"], stage.configuration
    far = replace(known, version=1 << 60, shards=())
    letters = (far, SealShard(shard="a", epoch=2), LearnShard(shard="a", epoch=9, primary="x"))
    for letter in letters:
        node.give(Received(LEADER, letter))
        node.give(Received("stranger/controller", letter))
    unsound = replace(known.shards[0], primary="x")
    node.give(Received("c1", replace(known, version=known.version + 1, shards=(unsound,))))
    stage.settle()
    assert node.machine.counters.nonsense == 7
    assert node.machine.membership.configuration == known
    assert node.machine.membership.leads
    node.give(Received(f"{LEADER}/controller", replace(known, version=known.version + 1)))
    assert node.machine.membership.configuration != known
