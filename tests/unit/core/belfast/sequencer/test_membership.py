"""Shards join and leave at a window's boundary (Belfast, 4.5)."""

import pytest
from tests.unit.core.belfast.sequencer.policy_stage import Stage

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    Arrange,
    ChangeView,
    CutFreely,
    OpenWindow,
    Release,
)
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import Alive, Report, Seal, Sealed
from anabranch.core.errors import CantJoin


def seats(stage: Stage) -> list[list[int]]:
    return [[shard for shard, _ in each.quotas] for each in stage.of(OpenWindow)]


def run(stage: Stage, name: str, windows: int) -> None:
    for _ in range(windows * 10):
        stage.after(1)
        for each in stage.shards:
            stage.alive(each)
        shard = stage.shards[name]
        window, rounds = shard.window, shard.rounds + 1
        if rounds > 10:
            window, rounds = window + 1, 1
        if stage.ledger.window(window) is not None:
            stage.report(name, window, rounds)


def test_a_shard_isnt_admitted_before_all_its_replicas_agree_on_who_they_are() -> None:
    stage = Stage()
    stage.office.received(stage.now, "a0", Alive("a", ("a0", "a1"), 0, 0, 0))
    stage.office.received(stage.now, "a1", Alive("a", ("a0", "a1", "a2"), 0, 0, 0))
    assert not stage.settle()
    stage.office.received(stage.now, "a1", Alive("a", ("a0", "a1"), 0, 0, 0))
    assert stage.settle()[0] == Admit("a", ("a0", "a1"), 0, (0, 0))


def test_a_stranger_cant_speak_for_a_shard() -> None:
    stage = Stage()
    stage.office.received(stage.now, "x", Alive("a", ("a0",), 0, 0, 0))
    assert not stage.settle()


def test_a_shard_joins_with_the_next_window_that_is_published() -> None:
    stage = Stage.seated("a")
    stage.join("b")
    assert stage.member("b").standing is Standing.WAITING
    run(stage, "a", 1)
    assert seats(stage)[:2] == [[0], [0, 1]]
    assert not stage.of(ChangeView)


def test_a_shard_that_waits_and_isnt_heard_any_more_gets_no_seat() -> None:
    stage = Stage.seated("a")
    stage.join("b")
    stage.pass_time(25, "a")
    run_alone = stage.shards.pop("b")
    run(stage, "a", 2)
    assert run_alone.name == "b"
    assert seats(stage)[1] == [0]


def test_a_shard_that_leaves_keeps_its_seats_and_gets_no_more() -> None:
    stage = Stage.seated("a", "b")
    assert stage.office.leave("b") is None
    assert stage.settle() == [Release(1)]
    for rounds in range(1, 11):
        stage.report("a", 0, rounds)
        stage.report("b", 0, rounds)
    assert seats(stage) == [[0, 1], [0]]
    assert stage.member("b").standing is Standing.LEFT


def left(copies: int = 2) -> Stage:
    """Of two shards the second has left."""
    stage = Stage.seated("a", "b", copies=copies)
    stage.office.leave("b")
    for rounds in range(1, 11):
        stage.report("a", 0, rounds)
        stage.report("b", 0, rounds)
    assert stage.member("b").standing is Standing.LEFT
    return stage


def why_not(stage: Stage) -> str:
    error = stage.office.join("b", stage.now)
    assert isinstance(error, CantJoin), error
    assert stage.settle() == []
    return error.message


def test_a_shard_that_left_comes_back_when_it_is_asked_for_and_not_by_itself() -> None:
    stage = left()
    stage.alive("b", standing=int(Standing.LEFT), epoch=1)
    assert stage.member("b").standing is Standing.LEFT
    assert stage.office.join("b", stage.now) is None
    assert stage.settle()[:2] == [
        Admit("b", ("b0", "b1"), 0, (0, 0)),
        Arrange(shard=1, epoch=2, primary="b0", replicas=("b0", "b1"), disks=(0, 0)),
    ]
    assert stage.office.join("b", stage.now) is None
    assert stage.settle() == [], "it is back"


def test_it_isnt_taken_back_without_all_of_its_replicas() -> None:
    stage = left()
    stage.pass_time(25, "a")
    assert "b0, b1" in why_not(stage)
    stage.alive("b", "b0", standing=int(Standing.LEFT), epoch=1)
    assert "heard of b1;" in why_not(stage)


@pytest.mark.parametrize("said", [(Standing.SEATED, 1), (Standing.LEFT, 0)])
def test_it_isnt_taken_back_before_its_primary_has_cut_its_log_back(
    said: tuple[Standing, int],
) -> None:
    """Or a fall may bring back records that were said to be void."""
    stage = left()
    stage.alive("b", standing=int(said[0]), epoch=said[1])
    assert "b0 has yet to learn" in why_not(stage)


def test_with_other_disks_it_is_taken_back_when_its_records_are_trimmed() -> None:
    stage = left()
    stage.shards["b"].disks = {"b0": 7, "b1": 8}
    stage.alive("b")
    end = stage.ledger.end_of(1)
    assert f"isn't trimmed to {end}" in why_not(stage)
    stage.office.trim(end)
    stage.settle()
    assert stage.office.join("b", stage.now) is None
    decided = stage.settle()
    assert decided[0] == Admit("b", ("b0", "b1"), 0, (7, 8))
    assert Arrange(shard=1, epoch=2, primary="b0", replicas=("b0", "b1"), disks=(7, 8)) in decided
    assert stage.member("b").begins == stage.member("b").placed > 0


def test_a_replica_that_kept_its_disk_takes_over_before_it_is_taken_back() -> None:
    stage = left()
    stage.shards["b"].disks = {"b0": 7}
    stage.pass_time(10, "a", "b")
    assert "another replica has to take over" in why_not(stage)
    assert ("b1", Seal(shard=1, epoch=2)) in stage.letters(Seal)
    stage.office.received(stage.now, "b1", Sealed(shard=1, epoch=2, last_epoch=1, last=100))
    stage.settle()
    stage.alive("b", standing=int(Standing.LEFT), epoch=2)
    assert stage.office.join("b", stage.now) is None


def test_what_is_left_of_it_can_be_read_though_its_primary_has_gone() -> None:
    stage = left()
    stage.pass_time(30, "a", "b1")
    assert ("b1", Seal(shard=1, epoch=2)) in stage.letters(Seal)
    stage.office.received(stage.now, "b1", Sealed(shard=1, epoch=2, last_epoch=1, last=100))
    assert stage.settle() == [Arrange(shard=1, epoch=2, primary="b1", replicas=("b1",), disks=(0,))]
    assert stage.member("b").standing is Standing.LEFT


def test_that_takeover_is_ended_though_the_primary_is_back() -> None:
    stage = left(copies=3)
    stage.pass_time(30, "a", "b1")
    stage.office.received(stage.now, "b1", Sealed(shard=1, epoch=2, last_epoch=1, last=100))
    assert stage.settle() == []
    stage.pass_time(10, "a", "b")
    assert ("b0", Seal(shard=1, epoch=2)) in stage.letters(Seal)
    stage.office.received(stage.now, "b0", Sealed(shard=1, epoch=2, last_epoch=1, last=100))
    assert stage.settle() == [
        Arrange(shard=1, epoch=2, primary="b1", replicas=("b0", "b1"), disks=(0, 0))
    ]


def test_nobody_takes_over_where_all_is_trimmed() -> None:
    stage = left()
    stage.office.trim(stage.ledger.end_of(1))
    stage.settle()
    stage.pass_time(30, "a", "b1")
    assert not stage.letters(Seal)


def test_what_leaves_is_only_taken_back_when_it_has_left() -> None:
    stage = Stage.seated("a", "b")
    assert stage.office.join("b", stage.now) is None
    stage.office.leave("b")
    stage.settle()
    assert "it is leaving" in why_not(stage)


def test_what_cant_be_taken_back_is_told_why() -> None:
    stage = Stage.seated("a", "b")
    stage.pass_time(60, "a")
    codes = [error.code for name in "xb" if (error := stage.office.join(name, stage.now))]
    assert codes == ["unknown-shard", "shard-failed"]


def test_what_cant_leave_is_told_why() -> None:
    stage = Stage.seated("a", "b")
    unknown = stage.office.leave("x")
    assert unknown is not None
    assert unknown.code == "unknown-shard"
    stage.pass_time(60, "a")
    failed = stage.office.leave("b")
    assert failed is not None
    assert failed.code == "shard-failed"


def test_in_a_window_of_free_will_nobody_waits_for_its_end_to_join_or_leave() -> None:
    stage = Stage.seated("a", free_will=True)
    stage.join("b")
    assert seats(stage) == [[0], [0, 1]]
    stage.office.leave("a")
    stage.settle()
    assert seats(stage) == [[0], [0, 1], [1]]
    assert all(each.mode is Mode.FREE_WILL for each in stage.of(OpenWindow))


def test_what_a_shard_reported_before_it_left_is_void_when_it_is_back() -> None:
    """Its local log was cut back: a record that was never placed isn't there any more."""
    stage = Stage.seated("a", "b", free_will=True)
    stage.office.leave("b")
    stage.settle()
    stage.report("b", 0, 0, durable=14)
    stage.alive("b", standing=int(Standing.LEFT), epoch=1)
    assert stage.office.join("b", stage.now) is None
    stage.settle()
    assert stage.member("b").epoch == 2
    stage.after(1)
    assert stage.settle() == []
    stage.office.received(stage.now, "b0", Report(1, 1, 0, 2, 0, 14, 14, 0, 0, 0))
    assert stage.settle() == []
    assert stage.report("b", 2, 0, durable=3) == [CutFreely(2, (0, 3))]
