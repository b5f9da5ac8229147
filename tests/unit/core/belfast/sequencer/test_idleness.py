"""A log without appends rests (6.4); windows of free will, which only a setting opens."""

import msgspec
from tests.unit.core.belfast.sequencer.policy_stage import RULES, Stage
from tests.unit.core.belfast.sequencer.test_quotas import run

from anabranch.core.belfast.ledger.decisions import CutFreely, CutTo, OpenWindow
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import FixLag


def modes(stage: Stage) -> list[Mode]:
    return [window.mode for window in stage.of(OpenWindow)]


def at_rest(*names: str) -> Stage:
    """These shards have had records, and then none for long."""
    stage = Stage.seated(*names, adaptive=True, window=50, idle_intervals=300)
    run(stage, 200, **dict.fromkeys(names, lambda _: 10))
    assert not stage.office.idleness.at_rest
    run(stage, 600, **dict.fromkeys(names, lambda _: 0))
    assert stage.office.idleness.at_rest
    stage.sent.clear()
    return stage


def test_a_log_that_nobody_appends_to_rests_and_keeps_its_windows() -> None:
    stage = at_rest("a", "b")
    assert set(modes(stage)) == {Mode.STEADY}
    opened, cuts = len(modes(stage)), len(stage.of(CutTo))
    stage.pass_time(5_000, "a", "b")
    assert stage.office.idleness.at_rest
    assert (len(modes(stage)), len(stage.of(CutTo))) == (opened, cuts)
    assert stage.letters(FixLag) == [], "nobody is asked for no-ops"
    assert stage.office.plan.rounds_left >= stage.rules.ahead_rounds


def test_a_record_after_hours_of_rest_is_asked_of_the_others_at_once() -> None:
    stage = at_rest("a", "b")
    stage.now += 3 * 3_600 * 1_000_000_000
    stage.pass_time(30, "a", "b")
    shard = stage.shards["a"]
    shard.records += 1
    before = stage.ledger.confirmed
    stage.report("a", shard.window, shard.rounds + 1)
    ((node, asked),) = stage.letters(FixLag)
    assert (node, asked.window, asked.rounds) == ("b0", shard.window, shard.rounds)
    stage.report("b", shard.window, shard.rounds, signal=asked.signal)
    assert stage.ledger.confirmed > before
    assert stage.windows[-1].foreseen


def test_records_that_flow_again_end_the_rest() -> None:
    stage = at_rest("a", "b")
    run(stage, 200, a=lambda _: 10, b=lambda _: 0)
    assert not stage.office.idleness.at_rest
    assert set(modes(stage)) == {Mode.STEADY}


def test_a_trickle_doesnt_end_the_rest_and_makes_no_straggler() -> None:
    stage = at_rest("a", "b")
    for _ in range(10):
        stage.pass_time(100, "a", "b")
        for name in ("a", "b"):
            shard = stage.shards[name]
            shard.records += name == "a"
            if shard.rounds == 50:
                shard.window, shard.rounds = shard.window + 1, 0
            stage.report(name, shard.window, shard.rounds + 1)
    assert stage.office.idleness.at_rest
    assert stage.office.plan.counters.rests == 0
    assert all(len(each.quotas) == 2 for each in stage.of(OpenWindow))


def test_at_rest_nobody_waits_for_a_windows_end_to_join_or_leave() -> None:
    """Windows don't end by themselves then: those who have seats are asked to fill them."""
    stage = at_rest("a")
    stage.join("b")
    ((_, asked),) = stage.letters(FixLag)
    last = stage.windows[-1]
    assert (asked.window, asked.rounds) == (last.number, last.rounds)
    stage.report("a", last.number, last.rounds, signal=asked.signal)
    assert [seat.shard for seat in stage.windows[-1].seats] == [0, 1]
    stage.sent.clear()
    stage.office.leave("b")
    stage.settle()
    for nth, name in enumerate(("a", "b")):
        asked = stage.letters(FixLag)[nth][1]
        stage.report(name, asked.window, asked.rounds, signal=asked.signal)
    assert [seat.shard for seat in stage.windows[-1].seats] == [0]
    stage.sent.clear()
    stage.pass_time(200, "a", "b")
    assert stage.letters(FixLag) == []


def test_at_rest_records_of_a_shard_with_seats_in_windows_to_come_are_asked_for() -> None:
    """Nobody goes on by itself to the window in which they lie."""
    stage = Stage.seated("a", adaptive=True, window=50)
    run(stage, 20, a=lambda _: 10)
    stage.join("b")
    run(stage, 10, a=lambda _: 10)
    assert [len(window.seats) for window in stage.windows] == [1, 2]
    stage.office.idleness.at_rest = True
    stage.report("b", 1, 2)
    ((node, asked),) = stage.letters(FixLag)
    assert (node, asked.window, asked.rounds) == ("a0", 1, 2)


def test_without_lag_fix_a_log_never_rests() -> None:
    """Nobody would ask the others to catch up."""
    stage = Stage.seated("a", adaptive=True, window=50, idle_intervals=300, lag_fix=False)
    run(stage, 800, a=lambda _: 0)
    assert not stage.office.idleness.at_rest


def test_a_log_that_an_earlier_release_left_in_free_will_goes_on_with_windows() -> None:
    stage = Stage.seated("a", free_will=True)
    stage.report("a", 0, 0, durable=5)
    assert stage.windows[-1].mode is Mode.FREE_WILL
    stage.rules = msgspec.structs.replace(stage.rules, free_will=False, adaptive=True)
    stage.elect()
    stage.alive("a")
    assert stage.windows[-1].mode is Mode.STEADY
    assert stage.windows[-1].start == 5


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


def test_without_adaptation_a_log_never_rests() -> None:
    assert not RULES.adaptive
    stage = Stage.seated("a", idle_intervals=100)
    run(stage, 600, a=lambda _: 0)
    assert not stage.office.idleness.at_rest
