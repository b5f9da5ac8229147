"""Silence counts as a failure only when it is longer than what a loaded machine makes of it."""

from collections.abc import Callable

import pytest
from tests.unit.core.belfast.sequencer.policy_stage import Stage
from tests.unit.core.belfast.shard.shard_stage import LEADER
from tests.unit.core.belfast.shard.shard_stage import Stage as Shards

from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.decisions import Arrange, ChangeView
from anabranch.core.belfast.ledger.rules import ALIVE_INTERVALS, Rules
from anabranch.core.belfast.protocol.letters import FixLag, Seal
from anabranch.core.lateness import LIMIT_MAX, MULTIPLE, SPAN, Delays, patience
from anabranch.core.machine import Effect, Received
from anabranch.core.types import MS

USUAL = Rules()


def stage_of(**rules: int) -> Stage:
    """Two shards under the default limits, each of which has said where it is."""
    limits = {"silent_intervals": USUAL.silent_intervals, "fail_intervals": USUAL.fail_intervals}
    stage = Stage.seated("a", "b", t_ord_us=USUAL.t_ord_us, **{**limits, **rules})
    live(stage, 500, "a", "b")
    return stage


def live(stage: Stage, ms: int, *present: str, every: int = 50, mute: str = "") -> None:
    """Those who are present say so every few T_ord and answer signals, but for one that is mute;
    the leader looks as often as it wants.
    """
    for nth in range(0, ms, 10):
        stage.after(10)
        if nth % every == 0:
            for name in present:
                stage.alive(name)
                signal = stage.office.lag.signals.get(stage.member(name).id)
                if signal is not None and name != mute:
                    asked = signal.letter
                    stage.report(name, asked.window, asked.rounds, signal=asked.signal)
        stage.settle()


def stall(stage: Stage, ms: int) -> None:
    """The leader doesn't run; then its timer is the first thing that it sees."""
    stage.after(ms)
    stage.delays.note(ms * MS, stage.now)
    stage.office.was_away(ms * MS, stage.now)
    stage.settle()


def blamed(stage: Stage) -> list[object]:
    return [*stage.letters(Seal), *stage.of(Arrange), *stage.of(ChangeView)]


def test_the_longest_delay_counts_for_one_to_two_spans() -> None:
    delays, now = Delays(), 100 * SPAN
    delays.note(5, now)
    delays.note(3, now + 1)
    assert delays.longest(now + SPAN) == 5
    assert delays.longest(now + 2 * SPAN + 1) == 0
    delays.note(7, now + 3 * SPAN)
    assert delays.longest(now + 9 * SPAN) == 0


def test_a_limit_grows_with_the_delay_and_no_further_than_what_is_documented() -> None:
    assert patience(100, 0) == 100
    assert patience(100, 20) == 100 + MULTIPLE * 20
    assert patience(100, 1_000) == LIMIT_MAX * 100


def test_the_defaults_survive_a_shared_machine() -> None:
    """5 to 20 ms, and detection in hundreds of ms (Belfast; spec, D2, D3)."""
    assert 5_000 <= USUAL.t_ord_us <= 20_000
    silent, fails = USUAL.intervals(USUAL.silent_intervals), USUAL.intervals(USUAL.fail_intervals)
    assert 200 * MS <= silent < fails < 1_000 * MS
    assert fails >= 2 * silent, "a fail-over has the time to be done before the shard fails"


def test_a_timer_that_rings_late_tells_for_how_long_its_machine_did_not_run() -> None:
    effects: list[Effect] = []
    alarms = Alarms(effects)
    alarms.at(100, lambda: None)
    alarms.now = 100
    assert alarms.overdue == 0
    alarms.now = 150
    assert alarms.overdue == 50
    alarms.ring()
    assert alarms.overdue == 0


@pytest.mark.parametrize("ms", [100, 300, 1_000, 5_000])
def test_what_the_leader_itself_slept_through_is_nobodys_silence(ms: int) -> None:
    """A primary's letters of that time wait behind its timers, again and again."""
    stage = stage_of()
    live(stage, 3_000, "a", "b")
    for _ in range(8):
        stall(stage, ms)
        stage.after(10)
        stage.alive("a", "a1")
        stage.alive("b")
    assert blamed(stage) == []


def test_a_signal_that_the_leader_slept_through_is_not_unanswered() -> None:
    stage = stage_of()
    stage.report("a", 0, 6)
    for _ in range(40):
        stall(stage, 100)
        live(stage, 10, "a", "b", mute="b")
    assert blamed(stage) == []


def test_a_loaded_machine_on_which_the_leader_wakes_first_voids_no_shard() -> None:
    """All processes stop together, and shards go on much later than the leader."""
    stage = stage_of()
    stall(stage, 400)
    live(stage, 1_100, "a")
    live(stage, 200, "a", "b")
    assert stage.of(ChangeView) == []


def test_who_speaks_late_again_and_again_gets_more_time() -> None:
    stage = stage_of()
    live(stage, 2_000, "a", "b", every=250)
    late = 250 - 10 * ALIVE_INTERVALS
    live(stage, 300 + (MULTIPLE - 1) * late)
    assert blamed(stage) == []


def test_a_shard_that_says_that_its_disk_is_slow_has_more_time_to_answer() -> None:
    stage = stage_of()
    stage.report("a", 0, 6, durable=60)
    stage.report("b", 0, 1, durable=10, delay_us=400_000)
    assert stage.letters(FixLag)
    live(stage, 1_800, "a", "b", mute="b")
    assert stage.of(ChangeView) == []
    live(stage, 600, "a", "b", mute="b")
    assert [each.failed for each in stage.of(ChangeView)] == [(1,)]


def test_a_dead_shard_is_given_up_in_time_where_all_is_well() -> None:
    stage = stage_of()
    look = USUAL.silent_intervals // 4 * 10
    for _ in range((900 + look) // 10):
        live(stage, 10, "a")
    assert [each.failed for each in stage.of(ChangeView)] == [(1,)]


def test_a_dead_shard_is_given_up_within_the_documented_time_however_slow_the_machine_was() -> None:
    stage = stage_of()
    live(stage, 3_000, "a", "b", every=280)
    stall(stage, 4_000)
    live(stage, LIMIT_MAX * 900 + USUAL.silent_intervals // 4 * 10, "a")
    assert [each.failed for each in stage.of(ChangeView)] == [(1,)]


def test_a_shard_that_starts_after_its_leader_isnt_given_up_meanwhile() -> None:
    """As when everything starts again after a loss of power: processes take seconds to start."""
    stage = stage_of()
    stage.elect()
    live(stage, 3_500, "a")
    assert stage.of(ChangeView) == []
    live(stage, 200, "a")
    assert [each.failed for each in stage.of(ChangeView)] == [(1,)]


def test_a_restart_is_not_taken_for_a_slow_machine() -> None:
    stage = stage_of()
    live(stage, 700, "a")
    live(stage, 100, "a", "b")
    assert stage.office.membership.patience(30, stage.now) == 300 * MS


def slow_disk(stage: Shards) -> None:
    """The primary's write takes 25 T_ord: it has learned that disks are slow here."""
    stage.nodes["a1"].held = True
    stage.append("a1", "v")
    stage.sleep(25)
    stage.nodes["a1"].held = False
    stage.settle()


def late_loop(stage: Shards) -> None:
    """The primary didn't run, and an answer of its backup waits behind its timers."""
    stage.nodes["a2"].held = True
    stage.append("a1", "v")
    stage.now += 1_000 * MS
    stage.nodes["a1"].give(Received(LEADER, FixLag(shard=1, signal=1, window=0, rounds=1)))
    stage.nodes["a2"].held = False
    stage.settle()


@pytest.mark.parametrize("load", [slow_disk, late_loop])
def test_a_primary_that_was_slow_itself_calls_no_backup_silent(
    load: Callable[[Shards], None],
) -> None:
    rules = Rules(t_ord_us=10_000, window=10)
    stage = Shards({"a": ("a1", "a2"), "b": ("b1",)}, rules=rules)
    stage.admit(1, 1)
    stage.sleep(30)
    load(stage)
    stage.nodes["a2"].held = True
    stage.append("a1", "w")
    stage.sleep(60)
    assert stage.report("a1").silent == ()
    assert stage.report("a1").delay_us >= 100_000
    stage.sleep(70)
    assert stage.report("a1").silent == ("a2",)
