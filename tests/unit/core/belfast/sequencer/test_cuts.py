"""Actual cuts follow the lowest report; windows follow the cuts."""

from tests.unit.core.belfast.sequencer.policy_stage import Stage, quotas

from anabranch.core.belfast.ledger.decisions import Admit, CutFreely, CutTo, OpenWindow
from anabranch.core.belfast.ledger.ledger import Standing


def test_a_shard_is_admitted_when_all_its_replicas_are_there_and_gets_a_window() -> None:
    stage = Stage()
    stage.join("a")
    assert stage.of(Admit) == [Admit("a", ("a0", "a1"), 0, (0, 0))]
    assert quotas(stage.windows[0]) == [(0, 10)]


def test_a_cut_waits_for_the_lowest_of_all_reports() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 5)
    assert not stage.of(CutTo)
    assert stage.report("b", 0, 3) == [CutTo(window=0, cut=3)]
    assert stage.report("b", 0, 9)[0] == CutTo(window=0, cut=5)


def test_windows_are_ahead_of_the_cut() -> None:
    stage = Stage()
    stage.join("a")
    for window in range(20):
        for rounds in range(1, 11):
            stage.report("a", window, rounds)
            last = stage.windows[-1]
            left = (last.number - window) * 10 + 10 - rounds
            assert left >= 5
    numbers = [each.number for each in stage.of(OpenWindow)]
    assert numbers == list(range(len(numbers)))


def test_a_cut_of_free_will_goes_by_what_was_said_in_its_own_window() -> None:
    stage = Stage.seated("a", "b", free_will=True)
    stage.report("a", 0, 0, durable=4)
    stage.pass_time(1)
    assert stage.of(CutFreely)[-1].counts == (4, 0)
    stage.office.leave("a")
    stage.settle()
    back = stage.windows[-1].number
    stage.alive("a", standing=int(Standing.LEFT), epoch=1)
    assert stage.office.join("a", stage.now) is None
    stage.settle()
    assert stage.windows[-1].number > back
    stage.report("a", back, 0, durable=9)
    stage.pass_time(1)
    assert sum(stage.ledger.counts) == 0
