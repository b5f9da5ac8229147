"""What follows for a log from what was found."""

from collections.abc import Callable

import pytest

from anabranch import PlannedSlice
from anabranch.core.bolt.protocol.set_sums import SetSum
from anabranch_spark.audit.judgement import Expected, comparable, contradiction, judged, sums
from anabranch_spark.audit.portions import Portion
from anabranch_spark.audit.report import EXIT, Damage, audit_verdict
from anabranch_spark.audit.tally import Tally, merged, of_damage, of_obstacle
from anabranch_spark.jobs.verdict import Verdict

READ = Tally(portions=1, records=2, bytes=100, batches=1, sum=7, summed=2)
GAP = Damage("coverage", 0, "", 0, 0, "a gap")


@pytest.fixture
def expected(piece: Callable[..., PlannedSlice]) -> Expected:
    return Expected("orders", 0, 2, 7, 2, [], [Portion([piece(0, 2)], [])], [])


def test_all_read_and_equal_is_sound(expected: Expected) -> None:
    assert comparable(expected, READ)
    assert sums(expected, READ).equal
    report = judged(expected, READ, [])
    assert (report.verdict, report.covered, report.records) == ("sound", True, 2)


def test_a_task_that_answers_nothing_leaves_the_verdict_open(expected: Expected) -> None:
    report = judged(expected, Tally(), [])
    assert report.verdict == "unknown"
    assert report.obstacles == ["1 of 1 extents weren't read"]


def test_damage_is_certain_whatever_else_is_unknown(expected: Expected) -> None:
    tally = merged([of_obstacle("away"), of_damage([GAP])])
    assert not comparable(expected, tally)
    assert judged(expected, tally, []).verdict == "damaged"
    assert judged(expected, of_obstacle("away"), []).verdict == "unknown"


def test_a_gap_in_the_plan_and_a_wrong_sum_are_damage(expected: Expected) -> None:
    wrong = Damage("set-sum", 0, "", 0, 0, "differs")
    assert judged(expected, READ, [wrong]).verdict == "damaged"
    assert not sums(expected, Tally(portions=1, sum=8, summed=2)).equal
    assert not sums(expected, Tally(portions=1, sum=7, summed=3)).equal


@pytest.mark.parametrize(
    ("summed", "unsummed", "fine"),
    [(8, [], True), (5, [(1, 4)], True), (7, [], False), (8, [(1, 2)], False)],
)
def test_the_service_sums_or_names_every_record(
    summed: int, unsummed: list[tuple[int, int]], fine: bool
) -> None:
    found = contradiction(SetSum(0, 8, 1, summed, unsummed, 8), 0, 8)
    assert (found == []) is fine


@pytest.mark.parametrize(
    ("verdicts", "obstacles", "code"),
    [
        (["sound", "sound"], [], Verdict.DONE),
        ([], [], Verdict.DONE),
        (["sound", "unknown"], [], Verdict.UNKNOWN),
        (["sound"], ["away"], Verdict.UNKNOWN),
        (["unknown", "damaged", "sound"], ["away"], Verdict.REFUSED),
        (["sound", "of a later version"], [], Verdict.UNKNOWN),
    ],
)
def test_one_damaged_log_decides_and_then_one_that_is_unknown(
    verdicts: list[str], obstacles: list[str], code: Verdict
) -> None:
    assert EXIT[audit_verdict(verdicts, obstacles)] is code
