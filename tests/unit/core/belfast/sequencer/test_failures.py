"""Replicas that are silent are done without; a shard that isn't there as a whole fails (4.8)."""

from tests.unit.core.belfast.sequencer.policy_stage import RULES, Stage

from anabranch.core.belfast.ledger.decisions import Admit, Arrange, ChangeView, CutTo, OpenWindow
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.letters import Learn, Seal, Sealed


def seal(stage: Stage, name: str, node: str, last_epoch: int, last: int, epoch: int = 2) -> None:
    letter = Sealed(shard=stage.member(name).id, epoch=epoch, last_epoch=last_epoch, last=last)
    stage.office.received(stage.now, node, letter)
    stage.settle()


def test_a_silent_primary_is_followed_by_a_replica_that_was_sealed() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(30, "a1", "b")
    assert ("a1", Seal(shard=0, epoch=2)) in stage.letters(Seal)
    seal(stage, "a", "a1", 1, 40)
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a1", replicas=("a1",), disks=(0,))
    ]
    assert not stage.of(ChangeView)


def test_of_three_replicas_two_are_sealed_and_the_one_that_has_most_is_primary() -> None:
    stage = Stage.seated("a", "b", copies=3)
    stage.pass_time(30, "a1", "a2", "b")
    seal(stage, "a", "a1", 1, 40)
    assert not stage.of(Arrange)
    seal(stage, "a", "a2", 1, 50)
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a2", replicas=("a1", "a2"), disks=(0, 0))
    ]


def test_a_later_epoch_counts_more_than_a_longer_log() -> None:
    stage = Stage.seated("a", "b", copies=3)
    stage.pass_time(30, "a1", "a2", "b")
    seal(stage, "a", "a1", 0, 90)
    seal(stage, "a", "a2", 1, 50)
    assert stage.member("a").primary == "a2"


def test_a_takeover_that_has_begun_is_ended_with_the_old_primary_if_it_is_back() -> None:
    stage = Stage.seated("a", "b", copies=3)
    stage.pass_time(30, "a1", "b")
    seal(stage, "a", "a1", 1, 40)
    stage.pass_time(10, "a", "b")
    assert ("a0", Seal(shard=0, epoch=2)) in stage.letters(Seal)
    seal(stage, "a", "a0", 1, 45)
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a0", replicas=("a0", "a1"), disks=(0, 0))
    ]


def test_the_old_primary_holds_all_that_was_durable_whoever_else_answers() -> None:
    stage = Stage.seated("a", "b", copies=3)
    stage.pass_time(30, "a1", "b")
    stage.pass_time(10, "a", "b")
    seal(stage, "a", "a0", 1, 45)
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a0", replicas=("a0",), disks=(0,))
    ]


def test_an_answer_to_another_seal_doesnt_count() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(30, "a1", "b")
    seal(stage, "a", "a1", 1, 40, epoch=3)
    seal(stage, "a", "b1", 1, 40)
    assert not stage.of(Arrange)


def test_a_silent_backup_is_done_without_and_taken_in_again_when_it_has_caught_up() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(2, "a", "b")
    stage.report("a", 0, 1, silent=("a1",))
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a0", replicas=("a0",), disks=(0,))
    ]
    stage.alive("a", "a1")
    assert ("a1", Learn(shard=0, epoch=2, primary="a0")) in stage.letters(Learn)
    stage.report("a", 0, 2, caught_up=("a1",))
    assert stage.of(Arrange)[-1] == Arrange(
        shard=0, epoch=3, primary="a0", replicas=("a0", "a1"), disks=(0, 0)
    )


def test_who_doesnt_know_where_records_are_isnt_taken_in() -> None:
    """If the others were lost, nobody would know."""
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 1, silent=("a1",))
    for window in range(3):
        for name in "ab":
            stage.alive(name)
            stage.report(name, window, RULES.window)
    needed = stage.ledger.tells_from(0)
    assert needed > 0
    for fields in ({"placed": needed - 1}, {"placed": needed, "view": 1}):
        stage.alive("a", "a1", **fields)
        stage.report("a", 3, 0, caught_up=("a1",))
        assert stage.member("a").replicas == ("a0",)
    stage.alive("a", "a1", placed=needed)
    stage.report("a", 3, 0, caught_up=("a1",))
    assert stage.member("a").replicas == ("a0", "a1")


def test_who_knows_all_that_its_primary_does_is_taken_in() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 1, silent=("a1",))
    for name in "ab":
        stage.alive(name)
        stage.report(name, 0, RULES.window)
    stage.alive("a", "a0", placed=1)
    stage.alive("a", "a1", placed=1)
    stage.report("a", 1, 0, caught_up=("a1",))
    assert stage.member("a").replicas == ("a0", "a1")


def test_a_backup_that_the_leader_doesnt_hear_is_done_without() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(30, "a0", "b")
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a0", replicas=("a0",), disks=(0,))
    ]


def test_there_are_never_fewer_copies_than_the_rules_say() -> None:
    stage = Stage.seated("a", "b", copies_min=2)
    stage.report("a", 0, 1, silent=("a1",))
    stage.pass_time(30, "a0", "b")
    assert not stage.of(Arrange)


def test_a_node_that_isnt_of_the_shard_is_taught_nothing() -> None:
    stage = Stage.seated("a", "b")
    stage.shards["a"].replicas = ("a0", "a1", "x")
    stage.alive("a", "x")
    assert not stage.letters(Learn)


def test_what_a_primary_of_another_epoch_reports_is_void() -> None:
    stage = Stage.seated("a")
    stage.report("a", 0, 1, silent=("a1",))
    stage.decided.clear()
    stage.report("a", 0, 5, epoch=1)
    assert not stage.of(CutTo)
    stage.report("a", 0, 5)
    assert stage.of(CutTo)


def test_a_shard_that_answers_no_signal_fails_and_the_cuts_wait_for_the_others_alone() -> None:
    stage = Stage.seated("a", "b", "c")
    stage.report("a", 0, 6)
    stage.report("c", 0, 6)
    stage.pass_time(49, "a", "b", "c")
    assert not stage.of(ChangeView)
    stage.report("a", 0, 7)
    stage.report("c", 0, 7)
    stage.pass_time(10, "a", "b", "c")
    assert stage.of(ChangeView) == [ChangeView(view=1, failed=(1,), stand_in=0)]
    assert stage.member("b").standing is Standing.FAILED
    stage.report("a", 0, 7)
    stage.report("c", 0, 7)
    assert stage.of(CutTo) == [CutTo(window=0, cut=7)]


def test_nobody_fails_while_it_comes_further() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 9)
    for rounds in range(1, 9):
        stage.pass_time(30, "a", "b")
        stage.report("b", 0, rounds)
    assert not stage.of(ChangeView)


def test_a_shard_without_any_replica_fails_and_has_no_seat_in_the_next_window() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(60, "a")
    assert stage.of(ChangeView) == [ChangeView(view=1, failed=(1,), stand_in=0)]
    for rounds in range(1, 10):
        stage.report("a", 0, rounds)
    assert [shard for shard, _ in stage.of(OpenWindow)[-1].quotas] == [0]


def test_a_shard_that_dies_without_a_seat_fails_as_well() -> None:
    """In free will a window without it is opened as soon as it is silent; clients still append to
    it, until they are told.
    """
    stage = Stage.seated("a", "b", free_will=True)
    stage.pass_time(30, "a")
    assert [shard for shard, _ in stage.of(OpenWindow)[-1].quotas] == [0]
    assert not stage.of(ChangeView)
    stage.pass_time(30, "a")
    assert stage.of(ChangeView) == [ChangeView(view=1, failed=(1,), stand_in=0)]
    assert stage.member("b").standing is Standing.FAILED


def test_the_last_shard_never_fails() -> None:
    stage = Stage.seated("a")
    stage.pass_time(200)
    assert not stage.of(ChangeView)


def test_where_nobody_is_heard_nobody_fails() -> None:
    stage = Stage.seated("a", "b", "c")
    stage.pass_time(200)
    assert not stage.of(ChangeView)


def test_a_stand_in_that_fails_is_replaced() -> None:
    stage = Stage.seated("a", "b", "c")
    stage.pass_time(60, "a", "b")
    assert stage.member("c").stand_in == 0
    for rounds in range(1, 4):
        stage.report("b", 0, rounds)
    stage.pass_time(60, "b")
    assert stage.of(ChangeView)[-1] == ChangeView(view=2, failed=(0,), stand_in=1)
    assert stage.member("c").stand_in == 1


def test_a_report_of_an_older_view_is_void() -> None:
    stage = Stage.seated("a", "b", "c")
    stage.pass_time(60, "a", "b")
    stage.decided.clear()
    stage.report("a", 0, 5)
    stage.report("b", 0, 5, view=0)
    assert not stage.of(CutTo)
    stage.report("b", 0, 5)
    assert stage.of(CutTo) == [CutTo(window=0, cut=5)]


def test_a_shard_that_failed_comes_back_when_it_knows_that_it_did() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(60, "a")
    stage.alive("b", view=0, standing=int(Standing.FAILED))
    stage.alive("b", standing=int(Standing.SEATED))
    assert len(stage.of(Admit)) == 2
    stage.alive("b", standing=int(Standing.FAILED))
    assert stage.member("b").standing is Standing.WAITING
    for rounds in range(1, 10):
        stage.alive("b")
        stage.report("a", 0, rounds)
    assert [shard for shard, _ in stage.of(OpenWindow)[-1].quotas] == [0, 1]
    assert stage.windows[-1].by_shard[1].base == 0


def test_a_new_leader_gives_everybody_time_to_speak() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(19, "a")
    stage.elect()
    stage.pass_time(15, "a")
    assert not stage.of(Arrange)
    assert not stage.letters(Seal)


def test_a_leader_that_was_paused_blames_nobody() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 9)
    stage.pass_time(40, "a", "b")
    stage.after(5_000)
    stage.settle()
    stage.pass_time(10, "a", "b")
    assert not stage.of(ChangeView)
    assert not stage.letters(Seal)


def test_a_takeover_is_over_when_the_failed_shard_is_back_with_its_old_primary() -> None:
    stage = Stage.seated("a", "b", copies=3)
    stage.pass_time(70, "a", "b1")
    seal(stage, "b", "b1", 1, 40)
    assert stage.member("b").standing is Standing.FAILED
    stage.alive("b")
    stage.alive("b", standing=int(Standing.FAILED))
    assert stage.of(Arrange) == [
        Arrange(shard=1, epoch=2, primary="b0", replicas=("b0", "b1", "b2"), disks=(0, 0, 0))
    ]
    seal(stage, "b", "b2", 1, 40)
    assert len(stage.of(Arrange)) == 1


def lose(stage: Stage, *nodes: str) -> None:
    """Their disks; they say so when they are next heard."""
    for node in nodes:
        stage.shards[node[:-1]].disks[node] = 7


def test_a_backup_that_lost_its_disk_is_done_without_until_it_has_caught_up() -> None:
    stage = Stage.seated("a", "b")
    lose(stage, "a1")
    stage.pass_time(10, "a", "b")
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a0", replicas=("a0",), disks=(0,))
    ]
    assert ("a1", Learn(shard=0, epoch=2, primary="a0")) in stage.letters(Learn)
    stage.report("a", 0, 1, caught_up=("a1",))
    assert stage.of(Arrange)[-1] == Arrange(
        shard=0, epoch=3, primary="a0", replicas=("a0", "a1"), disks=(0, 7)
    )


def test_one_that_cant_be_spared_begins_anew() -> None:
    stage = Stage.seated("a", "b", copies_min=2)
    lose(stage, "a1")
    stage.pass_time(10, "a", "b")
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a0", replicas=("a0", "a1"), disks=(0, 7))
    ]


def test_a_primary_that_lost_its_disk_is_followed_though_it_is_there() -> None:
    stage = Stage.seated("a", "b")
    lose(stage, "a0")
    stage.pass_time(10, "a", "b")
    assert ("a1", Seal(shard=0, epoch=2)) in stage.letters(Seal)
    seal(stage, "a", "a1", 1, 40)
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a1", replicas=("a1",), disks=(0,))
    ]


def test_with_no_copy_to_spare_it_is_a_backup_from_then_on() -> None:
    stage = Stage.seated("a", "b", copies_min=2)
    lose(stage, "a0")
    stage.pass_time(10, "a", "b")
    seal(stage, "a", "a1", 1, 40)
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a1", replicas=("a0", "a1"), disks=(7, 0))
    ]


def test_what_a_lost_disk_was_sealed_with_is_void() -> None:
    stage = Stage.seated("a", "b", copies=3)
    stage.pass_time(30, "a1", "a2", "b")
    seal(stage, "a", "a1", 1, 90)
    lose(stage, "a1")
    stage.pass_time(2, "a1", "a2", "b")
    seal(stage, "a", "a2", 1, 50)
    assert not stage.of(Arrange)
    seal(stage, "a", "a0", 1, 95)
    assert stage.of(Arrange) == [
        Arrange(shard=0, epoch=2, primary="a0", replicas=("a0", "a2"), disks=(0, 0))
    ]


def test_without_its_primary_a_wiped_backup_is_nobody_and_the_shard_waits_for_it() -> None:
    stage = Stage.seated("a", "b")
    lose(stage, "a1")
    stage.pass_time(70, "a1", "b")
    assert stage.member("a").standing is Standing.FAILED
    assert [(each.primary, each.disks) for each in stage.of(Arrange)] == [("a0", (0,))]
    assert not stage.letters(Seal)
    stage.alive("a", "a0", standing=int(Standing.FAILED))
    assert stage.of(Arrange)[-1] == Arrange(
        shard=0, epoch=3, primary="a0", replicas=("a0",), disks=(0,)
    )
    assert stage.member("a").standing is Standing.WAITING


def test_a_shard_all_of_whose_disks_are_lost_comes_back_when_its_records_are_trimmed() -> None:
    stage = Stage.seated("a", "b")
    for name in "ab":
        stage.report(name, 0, 4)
    lose(stage, "b0", "b1")
    stage.pass_time(60, "a")
    assert stage.member("b").standing is Standing.FAILED
    placed = stage.member("b").placed
    assert placed > 0
    stage.pass_time(5, "a", "b")
    assert stage.member("b").standing is Standing.FAILED
    for number in range(3):
        for rounds in range(1, 11):
            stage.pass_time(1, "a", "b")
            if stage.ledger.window(number) is not None:
                stage.report("a", number, rounds)
    stage.office.trim(stage.ledger.confirmed)
    stage.settle()
    stage.alive("b")
    member = stage.member("b")
    assert (member.disks, member.begins) == ((7, 7), placed)
    assert member.standing in {Standing.WAITING, Standing.SEATED}


def test_who_waits_for_a_seat_can_stand_in_where_nobody_else_is_left() -> None:
    stage = Stage()
    stage.join("a")
    stage.join("b")
    assert stage.member("b").standing is Standing.WAITING
    stage.pass_time(70, "b")
    change = stage.of(ChangeView)[0]
    assert (change.failed, change.stand_in) == ((0,), 1)
    assert list(stage.windows[-1].by_shard) == [1]


def test_a_takeover_that_another_leader_began_is_ended_by_the_next() -> None:
    stage = Stage.seated("a", "b", copies=3)
    stage.pass_time(30, "b1", "b2", "a")
    assert stage.letters(Seal)
    stage.elect()
    stage.pass_time(1, "a", "b")
    seal(stage, "b", "b1", 1, 40)
    seal(stage, "b", "b2", 1, 50)
    assert stage.of(Arrange) == [
        Arrange(shard=1, epoch=2, primary="b2", replicas=("b1", "b2"), disks=(0, 0))
    ]
