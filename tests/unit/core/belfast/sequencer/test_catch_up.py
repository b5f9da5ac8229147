"""Shards that trail behind the first, and not so far that they lag, catch up now and then."""

from typing import Any

import pytest
from tests.unit.core.belfast.sequencer.policy_stage import Stage

from anabranch.core.belfast.protocol.letters import FixLag
from anabranch.core.belfast.sequencer.catch_up import ROUNDS_MIN


def run(stage: Stage, rounds: int, behind_ms: float, since: int = 0) -> list[tuple[str, int]]:
    """`a` meets a round in each interval, and `b` so much later; which signals that gave, and for
    how many rounds.
    """
    before = len(stage.sent)
    late = int(behind_ms)
    for nth in range(since + 1, since + rounds + 1):
        stage.report("a", *divmod(nth, stage.rules.window))
        stage.after(behind_ms - late)
        if nth > late:
            stage.report("b", *divmod(nth - late, stage.rules.window))
        stage.after(1 - behind_ms + late)
        for name in ("a", "b"):
            stage.alive(name)
    return [(node, each.rounds) for node, each in stage.sent[before:] if isinstance(each, FixLag)]


def staged(**rules: Any) -> Stage:
    return Stage.seated("a", "b", window=100, ahead_rounds=10, quota_change=False, **rules)


@pytest.mark.parametrize("behind_ms", [0.7, 1.5, 1.9])
def test_who_trails_by_much_of_a_round_catches_up_once(behind_ms: float) -> None:
    stage = staged()
    assert run(stage, ROUNDS_MIN, behind_ms) == []
    (signal,) = run(stage, 60, behind_ms, since=ROUNDS_MIN)
    assert signal[0] == "b0"
    assert stage.office.plan.counters.trails == 1
    assert stage.office.plan.counters.signals == 0


def test_who_is_asked_catches_up_with_the_first() -> None:
    stage = staged()
    found: list[tuple[str, int]] = []
    nth = 0
    while not found:
        nth += 1
        found = run(stage, 1, 1.5, since=nth - 1)
    assert found == [("b0", nth)]


def test_who_is_hardly_behind_isnt_asked() -> None:
    assert run(staged(), 90, 0.3) == []


def test_who_is_asked_and_trails_again_has_a_windows_length_of_rest() -> None:
    stage = staged()
    run(stage, 60, 1.5)
    number = stage.letters(FixLag)[-1][1].signal
    stage.report("b", 0, 60, signal=number)
    asked_at = stage.letters(FixLag)[-1][1].rounds
    assert run(stage, 95 - 60, 1.5, since=60) == []
    again = run(stage, 80, 1.5, since=95)
    assert [node for node, _ in again] == ["b0"]
    window, rounds = stage.letters(FixLag)[-1][1].window, again[0][1]
    assert window * 100 + rounds >= asked_at + 100


@pytest.mark.parametrize("rules", [{"lag_fix": False}, {"stagger_from": 2}])
def test_nobody_is_asked_where_lag_isnt_fixed_or_cuts_are_staggered(
    rules: dict[str, Any],
) -> None:
    stage = staged(**rules)
    assert run(stage, 90, 1.5) == []
