"""A lazy front's survey in shared words: who can be spared, while its log decides or doesn't."""

from msgspec.structs import replace
from tests.unit.operator.plan.lazy.conftest import FrontHarness

from anabranch_operator.plan.lazy.report import report


def test_members_count_while_the_log_decides(harness: FrontHarness) -> None:
    survey, status = harness.front.survey(), harness.front.status()
    found = report(survey, status)
    assert found.reached == survey.sequencers
    assert found.shards == ()
    assert found.sequencing is not None
    assert (found.sequencing.ring_lasts_ms, found.sequencing.held_up) == (90_500, "")


def test_nobody_counts_while_the_controller_or_the_leader_waits_for_the_log(
    harness: FrontHarness,
) -> None:
    survey, status = harness.front.survey(), harness.front.status()
    assert report(replace(survey, obstacle="no broker answers"), status).reached == ()
    found = report(survey, replace(status, held_up="no broker answers"))
    assert found.reached == ()
    assert found.sequencing is not None
    assert found.sequencing.held_up == "no broker answers"


def test_without_appends_or_a_leader_the_ring_lasts_for_ever(harness: FrontHarness) -> None:
    survey, status = harness.front.survey(), harness.front.status()
    for each in (None, replace(status, ring_lasts_ms=-1)):
        found = report(survey, each)
        assert found.sequencing is not None
        assert found.sequencing.ring_lasts_ms is None
