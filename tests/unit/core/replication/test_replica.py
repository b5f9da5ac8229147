"""A replica takes its place in an epoch, or is sealed (docs/decisions/0028)."""

from tests.unit.core.replication.replica import PATIENCE, Sealed
from tests.unit.core.replication.stage import Stage, led

from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Match
from anabranch.core.replication.replica import Role


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


def test_a_backup_of_the_first_epoch_is_sealed_though_its_primary_was_lost() -> None:
    """There was nothing before that epoch which the backup could lack."""
    stage = Stage("a", "b")
    stage.arrange(1, "a", "a", "b", disks=stage.disks("a", "b"))
    stage.letters.clear()
    stage.wipe("a")
    stage.seal("b", 2)
    stage.settle("b")
    assert stage.said == [Sealed(2, 0, 0)]


def test_a_journal_that_the_first_epoch_does_not_count_on_says_nothing_of_it() -> None:
    stage = Stage("a", "b")
    stage.arrange(1, "a", "a", "b")
    stage.letters.clear()
    stage.seal("b", 2)
    assert stage["b"].replica.role is Role.BACKUP


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


def test_an_epoch_whose_terms_are_void_is_not_gone_back_behind() -> None:
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
