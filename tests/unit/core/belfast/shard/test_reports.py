"""A primary's reports: quotas met exactly, no-ops, signals of lag, window by window."""

import pytest
from tests.unit.core.belfast.shard.shard_stage import LEADER, RULES, Stage

from anabranch.core.belfast.ledger.decisions import CutFreely
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import FixLag
from anabranch.core.machine import Received


def values(count: int) -> list[str]:
    return [f"v{nth}" for nth in range(count)]


def test_rounds_are_met_exactly_and_the_surplus_counts_for_the_next() -> None:
    """Spec 4; F3."""
    stage = Stage()
    stage.admit(2, 3, 2)
    stage.append("a1", *values(5))
    report = stage.report("a1")
    assert (report.window, report.rounds, report.durable) == (0, 2, 5)
    assert (report.records, report.queued) == (5, 1)
    stage.append("a1", "one more")
    assert stage.report("a1").rounds == 3


def test_nothing_is_reported_before_it_is_durable() -> None:
    """F3."""
    stage = Stage()
    stage.admit(2, 3, 2)
    stage.nodes["a1"].held = True
    stage.append("a1", *values(4))
    assert stage.report("a1").rounds == 0
    stage.nodes["a1"].held = False
    stage.settle()
    assert stage.report("a1").rounds == 2


def test_nothing_is_reported_before_it_is_journaled_where_it_is_placed() -> None:
    """Records may be durable before their window is published: who reports them must still know
    their places when everybody else has forgotten that window.
    """
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit()
    token = stage.append("a1", *values(2))
    node = stage.nodes["a1"]
    node.held = True
    stage.open(2, 1, rounds=1)
    assert stage.report("a1").rounds == 0
    stage.crash("a1")
    node.held = False
    stage.restart("a1")
    assert stage.report("a1").rounds == 0
    stage.tell("a1", 1)
    assert stage.report("a1").rounds == 1
    stage.crash("a1")
    stage.cut(0, 1)
    stage.open(2, 1)
    stage.restart("a1")
    stage.restore("a1")
    assert stage.waits(token)
    reader = stage.subscribe("a1", "a")
    assert [place for place, _, foretold in stage.delivered(reader) if not foretold] == [0, 1]


def test_noops_fill_a_round_as_one_item_after_a_while() -> None:
    """4.9: 1.5 T_ord after the last report."""
    stage = Stage()
    stage.admit(5, 3, 2)
    stage.append("a1", *values(7))
    assert stage.report("a1").rounds == 1
    stage.sleep(1.4)
    assert stage.report("a1").rounds == 1
    stage.sleep(0.2)
    report = stage.report("a1")
    assert (report.rounds, report.durable, report.records, report.queued) == (2, 10, 7, 0)
    assert stage.nodes["a1"].machine.counters.noops == 3


@pytest.mark.parametrize("mode", [Mode.STEADY, Mode.BURSTY])
def test_noops_come_after_one_and_a_half_intervals_in_windows_of_any_release(mode: Mode) -> None:
    stage = Stage({"a": ("a1",)})
    stage.admit()
    stage.open(5, mode=mode)
    stage.sleep(4.6)
    assert stage.report("a1").rounds == 3


def test_what_is_in_flight_isnt_filled_up() -> None:
    stage = Stage()
    stage.admit(3, 3, 2)
    stage.sleep(0)
    stage.nodes["a1"].held = True
    rounds = stage.report("a1").rounds
    stage.append("a1", *values(30))
    stage.sleep(1.6)
    stage.nodes["a1"].held = False
    stage.settle()
    report = stage.report("a1")
    assert report.records == 30
    assert report.rounds >= min(10, rounds + 10)


def test_nobody_goes_beyond_what_is_published() -> None:
    """A boundary race: quotas come late (F8)."""
    stage = Stage()
    stage.admit(2, 3, 2, rounds=2)
    reader = stage.subscribe("a1", "a")
    token = stage.append("a1", *values(6))
    assert [place for place, _, _ in stage.delivered(reader)] == [0, 1, 7, 8]
    assert stage.upto(reader) == 14
    assert stage.report("a1").rounds == 2
    counters = stage.nodes["a1"].machine.counters
    assert counters.stalls == 1
    stage.sleep(3)
    stage.open(1, 3, 2, rounds=2)
    assert [place for place, _, _ in stage.delivered(reader)][4:] == [14, 20]
    assert (stage.report("a1").window, stage.report("a1").rounds) == (1, 2)
    assert counters.stalled >= 3 * RULES.t_ord
    stage.cut(0, 2)
    stage.cut(1, 2)
    assert stage.positions(token) == [0, 1, 7, 8, 14, 20]


def test_a_signal_of_lag_is_answered_at_once_across_windows() -> None:
    """4.3."""
    stage = Stage()
    stage.admit(2, 3, 2, rounds=3, windows=2)
    stage.append("a1", "one")
    node = stage.nodes["a1"]
    stage.post.append((LEADER, "a1", FixLag(shard=0, signal=7, window=1, rounds=2)))
    stage.settle()
    report = stage.report("a1")
    assert (report.window, report.rounds, report.signal, report.durable) == (1, 2, 7, 10)
    assert node.machine.counters.signals == 1
    assert node.machine.counters.noops == 9
    before = len(stage.reports("a1"))
    stage.post.append((LEADER, "a1", FixLag(shard=0, signal=7, window=1, rounds=2)))
    stage.settle()
    assert len(stage.reports("a1")) == before + 1
    assert node.machine.counters.noops == 9


def test_a_signal_beyond_what_is_published_is_answered_at_the_end_of_that() -> None:
    stage = Stage()
    stage.admit(2, 3, 2, rounds=3)
    stage.post.append((LEADER, "a1", FixLag(shard=0, signal=1, window=4, rounds=2)))
    stage.settle()
    report = stage.report("a1")
    assert (report.window, report.rounds, report.signal) == (0, 3, 1)


def test_reports_are_said_again_to_another_leader_and_after_a_while() -> None:
    stage = Stage()
    stage.admit(2, 3, 2, rounds=1)
    stage.append("a1", *values(2))
    before = len(stage.reports("a1"))
    stage.lead(2)
    assert len(stage.reports("a1")) == before + 1
    stage.sleep(6)
    assert len(stage.reports("a1")) >= before + 2


def test_at_rest_no_quota_is_filled_and_a_record_is_predicted_at_once() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit(2, 3, windows=2)
    reader = stage.subscribe("b1", "b")
    stage.lead(1, at_rest=True)
    stage.sleep(50)
    assert [stage.nodes[each].machine.counters.noops for each in ("a1", "b1")] == [0, 0]
    stage.append("b1", "v")
    assert stage.delivered(reader) == [(2, "v", True)]
    stage.sleep(0.01)
    assert stage.report("b1").rounds == 1, "the rest of its quota is filled at once"
    assert stage.report("a1").rounds == 0
    stage.nodes["a1"].give(Received(LEADER, FixLag(shard=0, signal=1, window=0, rounds=1)))
    stage.settle()
    assert (stage.report("a1").rounds, stage.report("a1").signal) == (1, 1)
    stage.cut(0, 1)
    stage.sleep(50)
    assert [stage.nodes[each].machine.counters.noops for each in ("a1", "b1")] == [2, 2]


def test_when_the_rest_is_over_quotas_are_filled_by_the_clock_again() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit(2, 3)
    stage.lead(1, at_rest=True)
    stage.sleep(50)
    stage.lead(1)
    stage.sleep(0.01)
    assert [stage.report(each).rounds for each in ("a1", "b1")] == [1, 1]
    stage.sleep(1.6)
    assert [stage.report(each).rounds for each in ("a1", "b1")] == [2, 2]


def test_free_will_reports_once_an_interval_and_delivers_what_is_cut() -> None:
    """Scalog's order: nothing is foretold."""
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit()
    stage.open(1, 1, mode=Mode.FREE_WILL)
    reader = stage.subscribe("b1", "b")
    stage.sleep(2)
    before = len(stage.reports("b1"))
    tokens = [stage.append("b1", f"v{nth}") for nth in range(5)]
    assert len(stage.reports("b1")) == before + 1
    stage.sleep(1.1)
    assert len(stage.reports("b1")) == before + 2
    assert stage.report("b1").durable == 5
    assert stage.delivered(reader) == []
    stage.append("a1", "other")
    stage.decide(CutFreely(0, (1, 5)))
    assert stage.delivered(reader) == [(nth + 1, f"v{nth}", False) for nth in range(5)]
    assert [stage.positions(token) for token in tokens] == [[1], [2], [3], [4], [5]]
    assert stage.nodes["b1"].machine.counters.noops == 0
    stage.sleep(6)
    assert (stage.report("b1").records, stage.report("b1").foretold) == (5, 0)


def test_a_steady_window_goes_on_where_free_will_ended() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit()
    stage.open(1, 1, mode=Mode.FREE_WILL)
    reader = stage.subscribe("a1", "a")
    stage.append("a1", *values(3))
    stage.decide(CutFreely(0, (2, 0)))
    stage.open(1, 1)
    assert stage.delivered(reader) == [(0, "v0", False), (1, "v1", False), (2, "v2", True)]
    assert (stage.report("a1").window, stage.report("a1").rounds) == (1, 1)
