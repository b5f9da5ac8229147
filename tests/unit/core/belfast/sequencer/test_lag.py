"""Shards that lag are asked to catch up, once at a time (Belfast, 4.3)."""

from tests.unit.core.belfast.sequencer.policy_stage import Stage

from anabranch.core.belfast.protocol.letters import FixLag


def signals(stage: Stage) -> list[tuple[str, int, int]]:
    return [(node, each.window, each.rounds) for node, each in stage.letters(FixLag)]


def test_a_shard_far_behind_the_furthest_is_asked_to_catch_up_with_it() -> None:
    stage = Stage.seated("a", "b", "c")
    stage.report("b", 0, 2)
    stage.report("c", 0, 1)
    assert signals(stage) == []
    stage.report("a", 0, 4)
    assert signals(stage) == [("c0", 0, 4)]


def test_there_is_no_second_signal_before_the_first_is_answered() -> None:
    stage = Stage.seated("a", "b")
    for rounds in range(1, 10):
        stage.report("a", 0, rounds)
    assert signals(stage) == [("b0", 0, 3)]
    number = stage.letters(FixLag)[0][1].signal
    stage.report("b", 0, 3, signal=number)
    assert signals(stage) == [("b0", 0, 3), ("b0", 0, 9)]


def test_who_got_there_without_the_signal_has_answered_it() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 4)
    stage.report("b", 0, 4)
    assert not stage.office.lag.signals


def test_a_burst_across_a_boundary_is_caught_up_with_in_the_next_window() -> None:
    stage = Stage.seated("a", "b", ahead_rounds=20)
    stage.report("a", 1, 4)
    assert signals(stage) == [("b0", 1, 4)]


def test_a_signal_that_isnt_answered_is_repeated() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 4)
    stage.pass_time(12, "a", "b")
    stage.pass_time(12, "a", "b")
    sent = [each for _, each in stage.letters(FixLag) if each.shard == 1]
    assert len(sent) > 1
    assert len(set(sent)) == 1


def test_where_everybody_is_late_those_that_a_cut_waits_for_are_probed() -> None:
    stage = Stage.seated("a")
    stage.pass_time(20, "a")
    assert signals(stage)[0] == ("a0", 0, 1)


def test_without_lag_fix_nobody_is_hurried() -> None:
    stage = Stage.seated("a", "b", lag_fix=False)
    stage.report("a", 0, 9)
    assert signals(stage) == []


def test_numbers_grow_from_lead_to_lead() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 4)
    stage.term += 1
    stage.elect()
    stage.report("a", 0, 9)
    first, second = (each.signal for _, each in stage.letters(FixLag))
    assert first < second


def test_nobody_hurries_for_a_shard_whose_first_window_is_to_come() -> None:
    stage = Stage.seated("a", "b")
    stage.join("c")
    for rounds in range(1, 10):
        stage.report("a", 0, rounds)
        stage.report("b", 0, rounds)
    window = next(each for each in stage.windows if len(each.seats) == 3)
    stage.report("c", window.number, 2)
    assert signals(stage) == []
