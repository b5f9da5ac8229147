"""What is promoted is what was judged, however often the fork moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anabranch.errors import ForkMoved, Promoted
from anabranch_spark.expectations import Report, Status
from anabranch_spark.gate.rounds import rounds

REPORT = Report(
    verdict=Status.PASSED,
    reason="all pass",
    log="orders--repriced",
    log_id=2,
    parent="orders",
    fork_point=7,
    start=0,
    end=10,
    own_records=3,
    judged_at="2026-07-01T12:00:00Z",
)


class Fork:
    """Gets `appended[n]` records after its n-th judgement, and passes while there are few."""

    def __init__(self, appended: list[int], *, refused_from: int = 1 << 60) -> None:
        self.own, self._appended, self._refused_from = 3, [*appended], refused_from
        self.promoted: int | None = None
        self.judged: list[int] = []

    def judge(self, attempt: int) -> Report:
        found = self.own
        self.judged.append(found)
        if self._appended:
            self.own += self._appended.pop(0)
        verdict = Status.PASSED if found < self._refused_from else Status.FAILED
        return replace(REPORT, own_records=found, verdict=verdict, attempt=attempt)

    def promote(self, own_records: int) -> None:
        if own_records != self.own:
            raise ForkMoved("orders--repriced", own_records, self.own)
        self.promoted = own_records


def test_a_fork_that_stands_still_is_promoted_as_judged() -> None:
    fork = Fork([])
    report = rounds(fork.judge, fork.promote)
    assert (report.promoted, report.attempt, fork.promoted) == (True, 1, 3)


def test_a_fork_that_moved_is_judged_again() -> None:
    fork, said = Fork([2, 1]), list[str]()
    report = rounds(fork.judge, fork.promote, says=said.append)
    assert (report.promoted, report.attempt, fork.promoted) == (True, 3, 6)
    assert fork.judged == [3, 5, 6]
    assert said == [
        "the fork has moved: 5 records after 3",
        "the fork has moved: 6 records after 5",
    ]


def test_a_fork_that_moved_to_what_is_refused_is_not_promoted() -> None:
    fork = Fork([2], refused_from=5)
    report = rounds(fork.judge, fork.promote)
    assert (report.verdict, report.promoted, fork.promoted) == (Status.FAILED, False, None)


def test_a_fork_that_always_moves_is_given_up() -> None:
    fork = Fork([1] * 9)
    report = rounds(fork.judge, fork.promote, tries=4)
    assert (report.verdict, fork.promoted, len(fork.judged)) == (Status.UNKNOWN, None, 4)
    assert "4 times (4 records after 3; " in report.reason


def test_without_the_wish_nothing_is_promoted() -> None:
    fork = Fork([])
    assert rounds(fork.judge, None).promoted is False
    assert fork.promoted is None


@pytest.mark.parametrize("verdict", [Status.FAILED, Status.UNKNOWN])
def test_only_a_pass_is_promoted(verdict: Status) -> None:
    fork = Fork([])
    report = rounds(lambda attempt: replace(fork.judge(attempt), verdict=verdict), fork.promote)
    assert (report.verdict, fork.promoted) == (verdict, None)


def test_another_refusal_of_the_promotion_is_not_a_pass() -> None:
    def promote(_: int) -> None:
        raise Promoted("orders--repriced", "orders")

    with pytest.raises(Promoted):
        rounds(Fork([]).judge, promote)


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(1, 6), st.integers(3, 12))
def test_nothing_is_promoted_that_wasnt_judged(
    appended: list[int], tries: int, refused_from: int
) -> None:
    fork = Fork(appended, refused_from=refused_from)
    report = rounds(fork.judge, fork.promote, tries=tries)
    assert len(fork.judged) <= tries
    assert report.promoted == (fork.promoted is not None)
    if report.promoted:
        assert fork.promoted == fork.own == fork.judged[-1] < refused_from
    else:
        assert report.verdict is not Status.PASSED
