"""An Erwin log's survey in shared words: who counts, who can be spared, which shards there are."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.operator.belfast_log import BelfastHarness

from anabranch.core.sequencing.protocol.messages import LogSurvey, SequencingStatus
from anabranch_operator.plan.erwin.report import FRESH_MS, report
from anabranch_operator.plan.groups.report import Standing


@pytest.fixture
def told() -> tuple[LogSurvey, SequencingStatus]:
    harness = BelfastHarness(erwin=True)
    harness.settle()
    return harness.erwin.survey(), harness.erwin.status()


def test_the_members_of_a_steady_view_count(told: tuple[LogSurvey, SequencingStatus]) -> None:
    survey, status = told
    found = report(survey, status)
    assert found.reached == tuple(node for node, _ in survey.members)
    assert found.leader == survey.leader
    assert (found.settled, found.trimmed) == (status.stable, status.trimmed)
    assert found.sequencing is not None
    assert (found.sequencing.tail, found.sequencing.backlog) == (status.tail, 0)


@pytest.mark.parametrize(
    "change", [{"changing": "sealing"}, {"age_ms": -1}, {"age_ms": FRESH_MS + 1}]
)
def test_nobody_can_be_spared_while_nobody_knows_who_counts(
    told: tuple[LogSurvey, SequencingStatus], change: dict[str, Any]
) -> None:
    found = report(replace(told[0], **change), None)
    assert found.reached == ()
    assert found.settled is None
    if "age_ms" in change:
        assert all(each.silent == each.replicas for each in found.shards)


def test_a_node_that_is_silent_or_leaves_does_not_count(
    told: tuple[LogSurvey, SequencingStatus],
) -> None:
    survey, _ = told
    (first, _), (second, _), (third, _) = survey.members
    place = survey.shards[0]
    told_by = replace(survey, silent=(first, place.primary), leaving=(second,))
    found = report(told_by, None)
    assert found.reached == (third,)
    assert found.shards[0].silent == (place.primary,)


def test_while_a_shard_gets_another_primary_none_of_its_replicas_can_be_spared(
    told: tuple[LogSurvey, SequencingStatus],
) -> None:
    survey, _ = told
    name = survey.shards[1].name
    found = report(replace(survey, taking_over=(name,)), None)
    assert [bool(each.silent) for each in found.shards] == [False, True]


def test_of_a_shard_that_was_added_again_the_last_place_counts(
    told: tuple[LogSurvey, SequencingStatus],
) -> None:
    survey, _ = told
    first, second = survey.shards
    removed = replace(first, open=False, removed=True)
    again = replace(first, number=2, epoch=0, replicas=())
    shards = report(replace(survey, shards=(removed, second)), None).shards
    assert [each.standing for each in shards] == [Standing.LEFT, Standing.SEATED]
    shards = report(replace(survey, shards=(removed, second, again)), None).shards
    assert {each.name: each.standing for each in shards} == {
        first.name: Standing.WAITING,
        second.name: Standing.SEATED,
    }
    shards = report(replace(survey, shards=(replace(first, open=False), second)), None).shards
    assert shards[0].standing is Standing.LEAVING
