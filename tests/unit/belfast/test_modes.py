"""Bursts that come too often change the mode, and a log that nobody appends to rests (6.4)."""

from tests.unit.belfast.office_stage import RULES, Stage
from tests.unit.belfast.test_quotas import run

from anabranch.core.belfast.decisions import CutFreely, OpenWindow
from anabranch.core.belfast.windows import Mode


def modes(stage: Stage) -> list[Mode]:
    return [window.mode for window in stage.of(OpenWindow)]


def follow(stage: Stage, intervals: int, every: int, burst: int) -> None:
    """A steady shard, and one whose records come in bursts: both keep up, as shards do."""
    for nth in range(intervals):
        stage.after(1)
        stage.settle()
        for name in ("a", "b"):
            shard, member = stage.shards[name], stage.member(name)
            come = 10 if name == "a" else burst if nth % every == 0 else 0
            shard.records += come
            shard.durable = max(stage.durable(name), shard.durable or 0) + come
            window = stage.ledger.window(shard.window) or stage.windows[0]
            if not window.foreseen:
                stage.report(name, window.number, 0)
                continue
            shard.window, shard.rounds = advance(stage, name, come)
            seat = stage.ledger.window(shard.window)
            assert seat is not None
            placed = seat.by_shard.get(member.id)
            if placed is not None:
                floor = placed.base + shard.rounds * placed.quota
                shard.durable = max(shard.durable, floor)
            stage.report(name, shard.window, shard.rounds)


def advance(stage: Stage, name: str, come: int) -> tuple[int, int]:
    """One round, or as many as a burst fills, or as others have made."""
    shard, member = stage.shards[name], stage.member(name)
    window, rounds = shard.window, shard.rounds
    if window < stage.windows[0].number:
        window, rounds = stage.windows[0].number, 0
    current = stage.ledger.window(window)
    assert current is not None
    seat = current.by_shard.get(member.id)
    more = max(1, come // seat.quota) if seat is not None else 0
    lag = stage.office.progress.lag_of(member.id)
    rounds += max(more, lag)
    while rounds >= current.rounds:
        following = stage.ledger.window(window + 1)
        if following is None:
            return window, current.rounds
        window, rounds, current = window + 1, rounds - current.rounds, following
        if not current.foreseen:
            return window, 0
    return window, rounds


def test_bursts_that_come_again_and_again_change_the_mode_and_calm_changes_it_back() -> None:
    stage = Stage.seated("a", "b", adaptive=True, window=50)
    follow(stage, 2_000, 10, 100)
    assert Mode.BURSTY in modes(stage)
    assert Mode.FREE_WILL not in modes(stage)
    bursty = next(each for each in stage.of(OpenWindow)[::-1] if each.mode is Mode.BURSTY)
    assert dict(bursty.quotas)[1] >= 50
    follow(stage, 3_000, 1, 10)
    assert modes(stage)[-1] is Mode.STEADY


def test_a_steady_log_stays_as_it_is() -> None:
    stage = Stage.seated("a", "b", adaptive=True, window=50)
    follow(stage, 2_000, 1, 10)
    assert set(modes(stage)) == {Mode.STEADY}


def test_a_log_that_nobody_appends_to_rests_in_free_will() -> None:
    stage = Stage.seated("a", adaptive=True, window=50, idle_intervals=300)
    run(stage, 200, a=lambda _: 10)
    run(stage, 600, a=lambda _: 0)
    assert modes(stage)[-1] is Mode.FREE_WILL
    opened = len(modes(stage))
    stage.pass_time(500, "a")
    assert len(modes(stage)) == opened
    assert not stage.of(CutFreely)


def test_records_that_flow_again_end_the_rest() -> None:
    stage = Stage.seated("a", adaptive=True, window=50, idle_intervals=300)
    run(stage, 200, a=lambda _: 10)
    run(stage, 600, a=lambda _: 0)
    number, base = stage.windows[-1].number, stage.member("a").placed
    for nth in range(200):
        stage.after(1)
        if stage.windows[-1].foreseen:
            break
        shard = stage.shards["a"]
        shard.records += 10
        stage.report("a", number, 0, durable=base + 10 * nth)
    assert stage.windows[-1].mode is Mode.STEADY
    assert stage.ledger.confirmed == stage.windows[-1].start


def test_a_trickle_doesnt_end_the_rest() -> None:
    stage = Stage.seated("a", adaptive=True, window=50, idle_intervals=300)
    run(stage, 200, a=lambda _: 10)
    run(stage, 600, a=lambda _: 0)
    number, base = stage.windows[-1].number, stage.member("a").placed
    for nth in range(10):
        stage.pass_time(100, "a")
        stage.shards["a"].records += 1
        stage.report("a", number, 0, durable=base + nth + 1)
    assert stage.windows[-1].mode is Mode.FREE_WILL
    assert len(stage.of(CutFreely)) == 10


def test_in_free_will_a_cut_holds_what_is_durable_and_there_is_one_in_an_interval() -> None:
    stage = Stage.seated("a", "b", free_will=True)
    assert stage.report("a", 0, 0, durable=5) == [CutFreely(0, (5, 0))]
    assert stage.report("b", 0, 0, durable=3) == []
    assert stage.report("a", 0, 0, durable=6) == []
    assert stage.office.wake_at == stage.now + 1_000_000
    stage.after(1)
    assert stage.settle() == [CutFreely(0, (6, 3))]
    assert stage.ledger.confirmed == 9


def test_a_cut_that_has_no_room_wakes_nobody_until_there_is_some() -> None:
    stage = Stage.seated("a", free_will=True)
    stage.report("a", 0, 0, durable=3)
    stage.report("a", 0, 0, durable=5)
    stage.after(1)
    assert stage.settle(room=False) == []
    assert stage.office.wake_at > stage.now
    assert stage.settle() == [CutFreely(0, (5,))]


def test_a_window_of_free_will_is_rolled_over_after_its_cuts() -> None:
    stage = Stage.seated("a", free_will=True)
    for nth in range(1, 25):
        stage.after(1)
        stage.report("a", stage.windows[-1].number, 0, durable=nth)
    assert [each.number for each in stage.of(OpenWindow)] == [0, 1, 2]
    assert stage.ledger.confirmed == 24


def test_without_adaptation_the_mode_stays() -> None:
    assert not RULES.adaptive
    stage = Stage.seated("a", idle_intervals=100)
    run(stage, 600, a=lambda _: 0)
    assert set(modes(stage)) == {Mode.STEADY}
