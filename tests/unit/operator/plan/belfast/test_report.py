"""A Belfast log's status in shared words: nothing that plans look at is lost."""

import pytest
from tests.unit.operator.belfast_log import BelfastHarness

from anabranch.core.belfast.ledger.ledger import Standing as BelfastStanding
from anabranch.core.belfast.protocol.messages import Status
from anabranch_operator.plan.belfast.report import report
from anabranch_operator.plan.groups.report import Standing


@pytest.fixture
def status() -> Status:
    harness = BelfastHarness()
    harness.settle()
    found = harness.belfast.status()
    assert isinstance(found, Status)
    return found


def test_the_leader_counts_among_those_that_are_reached(status: Status) -> None:
    found = report(status)
    assert found.leader in found.reached
    assert set(found.reached) == set(status.reachable)
    assert (found.age, found.settled) == ((status.term, status.index), status.confirmed)


def test_every_standing_has_its_word(status: Status) -> None:
    assert [each.name for each in BelfastStanding] == [each.name for each in Standing]
    assert [each.standing for each in report(status).shards] == [Standing.SEATED] * 2
