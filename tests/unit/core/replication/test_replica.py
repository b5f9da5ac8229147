"""The replicas of a group keep one log, whatever fails (docs/decisions/0028)."""

from collections.abc import Callable

import pytest
from tests.unit.core.replication.replica import PATIENCE, Sealed
from tests.unit.core.replication.stage import ABC, Stage, led

from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Match, Stored
from anabranch.core.replication.replica import Role
from anabranch.core.types import MS


def test_durable_is_what_a_majority_has_the_primary_among_them() -> None:
    stage = led(*ABC)
    stage.append("a", b"x", b"y")
    stage.settle("b", "c")
    assert stage["b"].replica.log.last == 2, "copies don't wait for the primary's disk"
    assert stage["a"].replica.log.durable == 0
    stage["a"].write()
    assert stage["a"].replica.log.durable == 2

    stage.append("a", b"z")
    stage.settle("a")
    assert stage["a"].replica.log.durable == 2
    stage.settle("b")
    assert stage["a"].replica.log.durable == 3


def test_what_came_in_one_step_goes_as_one_group_and_one_letter() -> None:
    stage = led("a", "b")
    stage.append("a", b"x", b"y", b"z")
    copies = [send.message for _, send in stage.letters if isinstance(send.message, Copy)]
    assert [len(copy.items) for copy in copies] == [3]
    assert len(stage["a"].group or ()) == 3


def test_no_ops_are_one_item() -> None:
    stage = led("a", "b")
    stage["a"].do(lambda: stage["a"].replica.fill(1_000))
    assert len(stage["a"].group or ()) == 1
    stage.settle()
    assert stage["b"].told == [Item(0, 1_000, b"")]
    assert stage["a"].replica.log.durable == 1_000


@pytest.mark.parametrize(
    ("reign", "adopted", "durable"),
    [(1, 1, 1), (1, 0, 0), (0, 0, 0), (2, 2, 0)],
    ids=["its own", "not adopted yet", "the one before", "one that isn't"],
)
def test_only_answers_in_the_own_reign_count(reign: int, adopted: int, durable: int) -> None:
    """Raft, 5.4.2: what came before a reign is durable by a majority that knows of the reign."""
    stage = led("a", "b")
    stage["b"].crash(kept=True)
    stage["a"].crash(kept=True)
    stage["a"].start(0)
    stage.arrange(1, "a", "a", "b")
    stage.append("a", b"x")
    stage.settle()
    life = 1 << 32
    answer = Stored("a", 1, life + reign, 1, life + adopted)
    stage["a"].do(lambda: stage["a"].replica.received("b", answer))
    assert stage["a"].replica.log.durable == durable


def test_a_primary_that_fell_takes_back_what_only_others_have() -> None:
    stage = led(*ABC)
    stage.append("a", b"lost")
    stage.settle("b")
    stage["a"].crash(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", *ABC)
    stage.append("a", b"kept")
    stage.settle()
    assert stage["a"].replica.log.durable == 1
    assert [stage[node].told for node in ABC] == [[Item(0, 1, b"kept")]] * 3


def test_a_full_disk_acknowledges_nothing_and_is_tried_again() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.deliver()
    stage["a"].fail_to_write()
    assert "no space" in (stage["a"].replica.log.journal.obstacle or "")
    stage.settle()
    assert stage["a"].replica.log.durable == 0
    stage.wait(100 * MS)
    assert stage["a"].replica.log.journal.obstacle is None
    assert stage["a"].replica.log.durable == 1


def test_who_owes_an_answer_is_silent_and_who_keeps_up_is_taken_in() -> None:
    stage = led(*ABC)
    stage["c"].crash(kept=False)
    stage.append("a", b"x")
    stage.wait(PATIENCE)
    assert stage.primary("a").silent == ()
    stage.wait(PATIENCE)
    assert stage.primary("a").silent == ("c",)

    stage.arrange(2, "a", "a", "b")
    stage.settle()
    stage["c"].start(stage.now)
    assert stage.primary("a").caught_up == ()
    stage.learn("c", 2, "a")
    stage.wait(PATIENCE)
    assert stage["c"].replica.role is Role.LEARNER
    assert stage.primary("a").caught_up == ("c",)
    assert stage["c"].told == stage["a"].told


def test_a_seal_is_journaled_before_it_is_said_and_binds_from_then_on() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.settle()
    stage.seal("b", 2)
    stage.deliver()
    assert stage.said == []
    stage.settle()
    assert stage.said == [Sealed(2, 1 << 32, 1)]
    stage.append("a", b"y")
    stage.settle()
    assert stage["a"].replica.log.durable == 1

    stage["b"].crash(kept=False)
    stage["b"].start(0)
    stage.arrange(1, "a", "a", "b")
    stage.settle()
    assert stage["b"].replica.role is Role.SEALED
    assert stage["a"].replica.log.durable == 1
    stage.arrange(2, "b", "b")
    stage.settle()
    assert stage["b"].replica.log.durable == 1
    stage.arrange(3, "b", "b", "a")
    stage.settle()
    assert stage["a"].told == stage["b"].told == [Item(0, 1, b"x")]


def test_a_backup_that_lacks_what_the_primary_began_with_is_not_sealed() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.settle()
    stage["b"].crash(kept=False)
    stage["b"].start(0)
    stage.letters.clear()
    stage.arrange(2, "a", "a", "b")
    stage.letters.clear()
    stage.seal("b", 3)
    assert stage["b"].replica.role is Role.BACKUP
    assert stage["b"].group is None


def test_a_replica_that_lost_its_disk_is_none_of_the_epoch_that_counted_on_it() -> None:
    stage = Stage("a", "b")
    before = stage.disks("a", "b")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage.append("a", b"x")
    stage.settle()
    assert stage["a"].replica.log.durable == 1
    stage.wipe("b")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage.seal("b", 2)
    stage.append("a", b"y")
    stage.wait(PATIENCE)
    assert stage["b"].replica.role is Role.IDLE
    assert stage.said == []
    assert stage["a"].replica.log.durable == 1


def test_it_is_sealed_again_once_it_has_all_that_its_primary_had_and_still_after_a_fall() -> None:
    stage = Stage("a", "b")
    stage.arrange(1, "a", "a", "b", disks=stage.disks("a", "b"))
    stage.append("a", b"x", b"y")
    stage.settle()
    stage.wipe("b")
    after = stage.disks("a", "b")
    stage.arrange(2, "a", "a", "b", disks=after)
    stage.seal("b", 3)
    assert stage["b"].replica.role is Role.BACKUP
    stage.wait(PATIENCE)
    stage["b"].crash(kept=False)
    stage["b"].start(stage.now)
    stage.arrange(2, "a", "a", "b", disks=after)
    stage.seal("b", 3)
    stage.settle()
    assert [(each.epoch, each.last) for each in stage.said if isinstance(each, Sealed)] == [(3, 2)]


def test_a_primary_that_lost_its_disk_leads_nobody_and_copies_from_the_next() -> None:
    stage = Stage("a", "b")
    before = stage.disks("a", "b")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage.append("a", b"x")
    stage.settle()
    stage.wipe("a")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage.wait(PATIENCE)
    assert stage["a"].replica.role is Role.IDLE
    assert stage["b"].told == [Item(0, 1, b"x")]
    stage.seal("b", 2)
    stage.settle()
    stage.arrange(2, "b", "a", "b", disks=stage.disks("a", "b"))
    stage.wait(PATIENCE)
    assert stage["a"].told == stage["b"].told == [Item(0, 1, b"x")]


def test_with_other_disks_altogether_a_log_begins_where_the_one_before_ended() -> None:
    stage = Stage("a", "b")
    stage.arrange(2, "a", "a", "b", disks=stage.disks("a", "b"), begins=50)
    stage.append("a", b"x")
    stage.wait(PATIENCE)
    for node in "ab":
        assert stage[node].told == [Item(50, 1, b"x")]
        assert stage[node].replica.log.first == 50
        stage[node].crash(kept=False)
        stage[node].start(stage.now)
        assert stage[node].replica.log.first == 50
    stage.arrange(2, "a", "a", "b", disks=stage.disks("a", "b"), begins=50)
    stage.wait(PATIENCE)
    assert stage["a"].replica.log.durable == 51


def test_an_epoch_whose_reigns_are_void_is_not_gone_back_behind() -> None:
    """Or its numbers would be given twice, by one that thinks it is an older epoch's primary."""
    stage = led("a", "b")
    stage.arrange(2, "b", "b", "a")
    stage.settle()
    assert stage["a"].replica.epoch == 2
    void = Match("a", 2, 3 << 32, 0, 2 << 32, 0, 0, 50, ())
    stage["a"].do(lambda: stage["a"].replica.received("b", void))
    stage.settle("a")
    assert stage["a"].replica.log.first == 50
    stage["a"].crash(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", "a", "b")
    assert stage["a"].replica.role is Role.IDLE


def test_cutting_back_keeps_whole_items_and_the_others_follow() -> None:
    stage = led("a", "b")
    stage["a"].do(lambda: stage["a"].replica.append(b"three", 3))
    stage.append("a", b"x", b"y")
    stage.settle()
    stage["a"].do(lambda: stage["a"].replica.truncate(2))
    stage.append("a", b"z")
    stage.wait(PATIENCE)
    assert stage["a"].told == stage["b"].told == [Item(0, 3, b"three"), Item(3, 1, b"z")]
    assert stage["a"].replica.log.durable == 4


def test_old_items_are_read_back_in_pieces_past_a_failure() -> None:
    stage = led("a", cache_bytes=1_000)
    batches = [bytes([nth]) * 50 for nth in range(20)]
    for batch in batches:
        stage.append("a", batch)
        stage["a"].do(lambda: stage["a"].replica.log.note(b"between"))
    stage.settle()
    assert stage["a"].replica.log.items(0, 20) is None
    recent = stage["a"].replica.log.items(18, 20)
    assert recent is not None
    assert [item.batch for item in recent] == batches[18:]

    told = stage.fetched("a", 3, 12, bytes_max=400)
    stage["a"].read(fails=True)
    assert told == []
    assert stage["a"].replica.log.journal.unreadable is not None
    stage.wait(200 * MS)
    stage["a"].read()
    assert [item.batch for item in told[0]] == batches[3:5]


def test_what_was_cut_while_it_was_read_is_not_told() -> None:
    stage = led("a", cache_bytes=0)
    stage.append("a", b"x", b"y", b"z")
    stage.settle()
    told = stage.fetched("a", 1, 3)
    stage["a"].do(lambda: stage["a"].replica.truncate(1))
    stage.append("a", b"new")
    stage.settle()
    stage["a"].read()
    stage["a"].read()
    assert told == [[Item(1, 1, b"new")]]


def test_a_replica_far_behind_is_sent_what_was_read_back() -> None:
    stage = led("a", "b", cache_bytes=500)
    stage["b"].crash(kept=False)
    stage.arrange(2, "a", "a")
    for nth in range(50):
        stage.append("a", b"%d" % nth)
    stage.settle()
    stage["b"].start(stage.now)
    stage.learn("b", 2, "a")
    stage.settle()
    while stage["a"].reads:
        stage["a"].read()
        stage.settle()
    assert stage["b"].told == stage["a"].told
    assert len(stage["b"].told) == 50


def recovered(act: Callable[[Stage], None]) -> None:
    """After a fall the owner has what it had, and the journal can still be read."""
    stage = led("a", cache_bytes=300)
    for nth in range(30):
        stage.append("a", b"%d" % nth)
        stage.settle()
    act(stage)
    stage.settle()
    before = stage["a"].told, stage["a"].replica.log.first
    stage["a"].crash(kept=False)
    stage["a"].start(stage.now)
    stage.arrange(1, "a", "a")
    stage.settle()
    assert (stage["a"].told, stage["a"].replica.log.first) == before
    assert stage["a"].replica.log.durable == stage["a"].replica.log.last
    first = stage["a"].replica.log.first
    told = stage.fetched("a", first, 30)
    stage["a"].read()
    assert told[0][0].batch == b"%d" % first


@pytest.mark.parametrize("below", [0, 1, 17, 29])
def test_a_trimmed_log_recovers(below: int) -> None:
    recovered(lambda stage: stage["a"].trim(below))


def test_a_log_trimmed_twice_recovers() -> None:
    def act(stage: Stage) -> None:
        stage["a"].trim(5)
        stage.append("a", b"x")
        stage["a"].trim(9)

    recovered(act)


def test_a_log_trimmed_to_its_end_goes_on_there() -> None:
    stage = led("a")
    stage.append("a", b"x", b"y")
    stage.settle()
    stage["a"].trim(2)
    assert not stage["a"].disk.entries
    stage["a"].crash(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", "a")
    stage.append("a", b"z")
    stage.settle()
    assert stage["a"].told == [Item(2, 1, b"z")]
