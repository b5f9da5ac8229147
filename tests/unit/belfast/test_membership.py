"""Shards join and leave at a window's boundary (Belfast, 4.5)."""

from tests.unit.belfast.office_stage import Stage

from anabranch.core.belfast.decisions import Admit, ChangeView, CutFreely, OpenWindow, Release
from anabranch.core.belfast.ledger import Standing
from anabranch.core.belfast.letters import Alive, Report
from anabranch.core.belfast.windows import Mode


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
    assert stage.settle()[0] == Admit("a", ("a0", "a1"), 0)


def test_a_stranger_cant_speak_for_a_shard() -> None:
    stage = Stage()
    stage.office.received(stage.now, "x", Alive("a", ("a0",), 0, 0, 0))
    assert not stage.settle()


def test_a_shard_that_wants_no_seat_gets_none() -> None:
    stage = Stage()
    stage.join("a", demand=-1)
    assert not stage.decided


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


def test_a_shard_that_left_doesnt_come_back_unless_it_asks() -> None:
    stage = Stage.seated("a", "b")
    stage.office.leave("b")
    for rounds in range(1, 11):
        stage.report("a", 0, rounds)
        stage.report("b", 0, rounds)
    stage.alive("b")
    stage.alive("b", standing=int(Standing.LEFT), quota=-1)
    assert stage.member("b").standing is Standing.LEFT
    stage.alive("b", standing=int(Standing.LEFT))
    assert stage.member("b").standing is Standing.WAITING


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
    stage.alive("b", standing=int(Standing.LEFT))
    assert stage.member("b").epoch == 2
    stage.after(1)
    assert stage.settle() == []
    stage.office.received(stage.now, "b0", Report(1, 1, 0, 2, 0, 14, 14, 0, 0, 0))
    assert stage.settle() == []
    assert stage.report("b", 2, 0, durable=3) == [CutFreely(2, (0, 3))]
