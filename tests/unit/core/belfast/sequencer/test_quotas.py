"""Quotas follow the rates, at a window's boundary and never within one (Belfast, 4.2, 4.4, 6.6)."""

from collections.abc import Callable

from tests.unit.core.belfast.sequencer.policy_stage import Stage

from anabranch.core.belfast.ledger.decisions import OpenWindow
from anabranch.core.belfast.ledger.ledger import Standing

Rate = Callable[[int], int]


def run(stage: Stage, intervals: int, **rates: Rate) -> None:
    """Every shard meets its quota once an interval, or more often if more records came."""
    for nth in range(intervals):
        stage.after(1)
        for name, rate in rates.items():
            shard, member = stage.shards[name], stage.member(name)
            shard.records += rate(nth)
            window = stage.ledger.window(shard.window)
            if window is None or not window.foreseen:
                stage.report(name, stage.windows[-1].number, 0)
                continue
            seat = window.by_shard.get(member.id)
            rounds = shard.rounds + 1 if seat is not None else window.rounds
            number = shard.window
            if rounds > window.rounds or seat is None:
                if stage.ledger.window(number + 1) is None:
                    continue
                number, rounds = number + 1, 0
            stage.report(name, number, rounds)


def given(stage: Stage, shard: int = 0) -> list[int]:
    return [dict(window.quotas)[shard] for window in stage.of(OpenWindow)]


def test_a_shard_that_joins_gets_what_it_demands_or_what_the_rules_say() -> None:
    assert given(Stage.seated("a", demand=7))[0] == 7
    assert given(Stage.seated("a"))[0] == 10
    assert given(Stage.seated("a", demand=7, quota_max=5))[0] == 5


def test_a_rate_that_rises_is_met_within_two_windows() -> None:
    stage = Stage.seated("a", "b", window=100)
    run(stage, 300, a=lambda _: 10, b=lambda _: 10)
    assert set(given(stage)) == {10}
    before = len(given(stage))
    run(stage, 300, a=lambda _: 25, b=lambda _: 10)
    assert 25 <= given(stage)[before + 1] <= 27
    assert set(given(stage, 1)) == {10}


def test_a_rate_within_the_tolerance_changes_nothing() -> None:
    stage = Stage.seated("a", window=100, first_quota=100)
    run(stage, 600, a=lambda nth: 97 + nth % 8)
    assert set(given(stage)) == {100}


def test_a_guess_falls_with_the_first_rate_that_is_measured() -> None:
    stage = Stage.seated("a", "b", window=100)
    run(stage, 250, a=lambda _: 4, b=lambda nth: 4 * (nth > 200))
    assert given(stage)[:3] == [10, 4, 4]
    assert given(stage, 1)[:2] == [10, 10]
    demanded = Stage.seated("a", window=100, demand=10)
    run(demanded, 250, a=lambda _: 4)
    assert given(demanded)[:3] == [10, 10, 10]


def test_a_guess_isnt_replaced_by_a_rate_of_which_half_is_idle() -> None:
    for begins in (20, 49, 80, 130):
        stage = Stage.seated("a", window=100)
        run(stage, 500, a=lambda nth, begins=begins: 10 * (nth >= begins))
        assert set(given(stage)) == {10}


def test_what_had_waited_at_the_beginning_is_no_part_of_the_rate() -> None:
    stage = Stage.seated("a", window=100)
    run(stage, 300, a=lambda nth: 10 if nth > 20 else 30 * (nth == 20))
    assert set(given(stage)) == {10}


def test_a_demanded_quota_rises_with_the_first_rate_that_is_measured() -> None:
    stage = Stage.seated("a", window=100, demand=10)
    run(stage, 90, a=lambda _: 25)
    assert given(stage)[-1] == 25


def test_who_comes_back_gets_what_it_demands_then() -> None:
    stage = Stage.seated("a", "b", demand=7)
    run(stage, 300, a=lambda _: 7, b=lambda _: 30)
    assert given(stage, 1)[-1] == 30
    stage.office.leave("b")
    while stage.member("b").standing is not Standing.LEFT:
        run(stage, 1, a=lambda _: 7, b=lambda _: 30)
    stage.alive("b", standing=int(Standing.LEFT), epoch=stage.member("b").epoch)
    assert stage.office.join("b", stage.now) is None
    stage.settle()
    while 1 not in dict(stage.of(OpenWindow)[-1].quotas):
        run(stage, 1, a=lambda _: 7)
    assert dict(stage.of(OpenWindow)[-1].quotas)[1] == 7


def test_a_rate_just_over_a_whole_number_isnt_given_the_next() -> None:
    """A ninth more than comes in would be filled up with no-ops, round after round."""
    stage = Stage.seated("a", window=100)
    run(stage, 900, a=lambda nth: 9 if nth % 20 == 0 else 8)
    assert given(stage)[-1] == 8
    run(stage, 900, a=lambda nth: 9 if nth % 5 < 3 else 8)
    assert given(stage)[-1] == 9


def test_a_drop_that_passes_lowers_nothing_and_one_that_lasts_does() -> None:
    stage = Stage.seated("a", window=100)
    run(stage, 300, a=lambda _: 10)
    run(stage, 100, a=lambda _: 8)
    run(stage, 300, a=lambda _: 10)
    assert set(given(stage)) == {10}
    run(stage, 500, a=lambda _: 4)
    assert given(stage)[-1] == 4


def test_a_quota_is_never_less_than_one() -> None:
    stage = Stage.seated("a", window=100)
    run(stage, 1000, a=lambda _: 0)
    assert given(stage)[-1] == 1


def test_what_waits_unreported_raises_the_quota() -> None:
    stage = Stage.seated("a", window=100)
    run(stage, 200, a=lambda _: 10)
    stage.shards["a"].queued = 500
    run(stage, 200, a=lambda _: 10)
    assert given(stage)[-1] == 15


def test_rounds_that_a_signal_called_for_dont_count_as_a_rate() -> None:
    stage = Stage.seated("a", window=100)
    run(stage, 250, a=lambda _: 10)
    for _ in range(5):
        shard = stage.shards["a"]
        stage.report("a", shard.window, min(shard.rounds + 40, 100))
        run(stage, 60, a=lambda _: 10)
    assert set(given(stage)) == {10}


def test_without_quota_changes_the_first_quota_stays() -> None:
    stage = Stage.seated("a", window=100, quota_change=False)
    run(stage, 500, a=lambda _: 50)
    assert set(given(stage)) == {10}


def test_a_new_leader_keeps_the_quotas_until_it_knows_better() -> None:
    stage = Stage.seated("a", window=100)
    run(stage, 500, a=lambda _: 30)
    assert given(stage)[-1] == 30
    stage.elect()
    stage.pass_time(1, "a")
    before = len(given(stage))
    run(stage, 500, a=lambda _: 30)
    assert set(given(stage)[before:]) == {30}
