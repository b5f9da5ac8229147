"""What a leader shows of its log: numbers that users read as they are."""

from dataclasses import dataclass

from tests.unit.core.belfast.sequencer.policy_stage import Stage

from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import FixLag
from anabranch.core.belfast.protocol.messages import ShardStatus, Status
from anabranch.core.belfast.sequencer.status import status


@dataclass
class Consensus:
    """What a status shows of the group."""

    term: int = 4
    node: str = "s1"
    reachable: tuple[str, ...] = ("s1", "s3")


def shown(stage: Stage, *in_memory: str) -> Status:
    return status(
        stage.ledger,
        stage.office,
        Consensus(),  # pyright: ignore[reportArgumentType]
        stage.now,
        members=("s1", "s2", "s3"),
        index=17,
        in_memory=frozenset(in_memory),
    )


def of(stage: Stage, name: str) -> ShardStatus:
    return next(each for each in shown(stage).shards if each.name == name)


def test_before_the_first_window_there_is_little_to_show() -> None:
    found = shown(Stage())
    assert (found.window, found.published, found.cuts, found.mode) == (-1, -1, 0, Mode.STEADY)
    assert (found.confirmed, found.horizon, found.shards) == (0, 0, ())
    assert (found.term, found.leader, found.index) == (4, "s1", 17)
    assert (found.members, found.reachable) == (("s1", "s2", "s3"), ("s1", "s3"))


def test_a_log_in_progress() -> None:
    """Two shards with 10 records a round, and ten rounds a window."""
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 7, records=61, queued=4)
    stage.report("b", 0, 5)
    found = shown(stage)
    assert (found.window, found.cut, found.cuts) == (0, 5, 10)
    assert (found.confirmed, found.horizon) == (100, 100 * 2 * (found.published + 1))
    assert found.cuts_made == 5
    a, b = found.shards
    assert (a.quota, a.window, a.rounds, a.records, a.queued) == (10, 0, 7, 61, 4)
    assert (a.lag, b.lag) == (0, 2)
    assert (a.standing, a.primary, a.replicas) == (Standing.SEATED, "a0", ("a0", "a1"))
    assert (a.last, b.last) == (found.horizon, found.horizon)


def test_signals_of_lag_are_counted_shard_by_shard() -> None:
    stage = Stage.seated("a", "b")
    stage.report("a", 0, 6)
    assert len(stage.letters(FixLag)) == 1
    assert (of(stage, "a").signals, of(stage, "b").signals) == (0, 1)


def test_a_shard_that_has_failed_shows_who_stands_in_for_it() -> None:
    stage = Stage.seated("a", "b", "c")
    stage.pass_time(60, "a", "b")
    found = shown(stage)
    assert (found.view, found.views_changed) == (1, 1)
    c = of(stage, "c")
    assert (c.standing, c.stand_in) == (Standing.FAILED, "a")
    assert c.silent == ("c0", "c1")
    assert of(stage, "a").silent == ()


def test_quotas_are_those_of_the_window_being_cut_and_of_the_last_published() -> None:
    stage = Stage.seated("a", demand=10)
    stage.join("b", demand=3)
    for rounds in range(1, 11):
        stage.report("a", 0, rounds)
    b = of(stage, "b")
    assert (b.quota, b.next_quota, b.resting) == (0, 3, False)
    assert of(stage, "a").next_quota == 10


def test_records_are_on_disks_unless_one_of_those_that_hold_them_has_none() -> None:
    stage = Stage.seated("a")
    assert shown(stage).fsync
    assert shown(stage, "s2", "another log's").fsync
    assert not shown(stage, "a1").fsync
    assert not shown(stage, "s1").fsync
