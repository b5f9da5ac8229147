"""A shard whose reports are late again and again rests, and proves itself (Belfast, 4.6)."""

from tests.unit.core.belfast.sequencer.policy_stage import Stage

from anabranch.core.belfast.ledger.decisions import OpenWindow
from anabranch.core.belfast.protocol.letters import FixLag


class Race:
    """Shards report every interval, those that are late as often as they are told."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.interval = 0

    def run(self, intervals: int, **every: int) -> None:
        stage = self.stage
        for _ in range(intervals):
            self.interval += 1
            stage.after(1)
            stage.settle()
            for name, period in every.items():
                if self.interval % 5 == 0:
                    stage.alive(name)
                if self.interval % period == 0:
                    self.report(name)

    def report(self, name: str) -> None:
        """It catches up with the signals it has got, as late as everything that it says."""
        stage, shard = self.stage, self.stage.shards[name]
        asked = [each for node, each in stage.letters(FixLag) if node == f"{name}0"]
        shard.records += 10
        window, rounds = shard.window, shard.rounds + 1
        if asked and asked[-1].signal > shard.signal:
            shard.signal = asked[-1].signal
            window, rounds = max((window, rounds), (asked[-1].window, asked[-1].rounds))
        if window < stage.windows[0].number:
            window, rounds = stage.windows[0].number, 0
        current = stage.ledger.window(window)
        while current is not None:
            if stage.member(name).id in current.by_shard and rounds <= current.rounds:
                break
            window, rounds = window + 1, 0
            current = stage.ledger.window(window)
        if current is not None:
            stage.report(name, window, rounds)


def seats(stage: Stage, name: str) -> list[int]:
    shard = stage.member(name).id
    return [dict(each.quotas).get(shard, 0) for each in stage.of(OpenWindow)]


def test_a_straggler_rests_for_some_windows_and_then_begins_with_a_quota_of_one() -> None:
    stage = Stage.seated("a", "b", "c", demand=10)
    race = Race(stage)
    race.run(300, a=1, b=1, c=12)
    rests = seats(stage, "c")
    assert rests[0] == 10
    first = rests.index(0)
    assert rests[first : first + 6] == [0, 0, 0, 0, 0, 1]
    assert all(quota == 10 for quota in seats(stage, "a"))


def test_a_straggler_that_keeps_up_again_regains_its_quota() -> None:
    stage = Stage.seated("a", "b", "c")
    race = Race(stage)
    race.run(100, a=1, b=1, c=12)
    assert 0 in seats(stage, "c")
    race.run(600, a=1, b=1, c=1)
    assert seats(stage, "c")[-1] == 10


def test_a_straggler_that_stays_late_rests_again() -> None:
    stage = Stage.seated("a", "b", "c")
    Race(stage).run(800, a=1, b=1, c=12)
    quotas = seats(stage, "c")
    again = quotas.index(1)
    assert 0 in quotas[again:]
    assert max(quotas[again:]) == 1


def test_where_all_are_slow_nobody_straggles() -> None:
    stage = Stage.seated("a", "b", "c")
    Race(stage).run(600, a=12, b=12, c=12)
    assert all(0 not in seats(stage, name) for name in "abc")


def test_a_single_shard_never_rests() -> None:
    stage = Stage.seated("a")
    Race(stage).run(600, a=12)
    assert 0 not in seats(stage, "a")


def test_one_late_report_isnt_held_against_a_shard() -> None:
    stage = Stage.seated("a", "b")
    race = Race(stage)
    for _ in range(20):
        race.run(40, a=1, b=1)
        race.run(10, a=1)
    assert 0 not in seats(stage, "b")


def test_who_stops_by_turns_straggles_though_it_catches_up_each_time() -> None:
    stage = Stage.seated("a", "b", "c")
    race = Race(stage)
    for _ in range(20):
        race.run(5, a=1, b=1)
        for _ in range(3):
            race.report("c")
    assert 0 in seats(stage, "c")
