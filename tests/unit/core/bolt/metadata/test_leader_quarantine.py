"""What becomes of objects in quarantine: the leader knows which of them logs refer to."""

import pytest
from tests.unit.core.bolt.metadata.test_leader import Stage

from anabranch.core.bolt.metadata.leader import PURGE_MS
from anabranch.core.machine import (
    ListQuarantine,
    ObjectsReturned,
    PurgeQuarantine,
    QuarantineListed,
    QuarantinePurged,
    ReturnObjects,
)
from anabranch.core.records.objects import object_id
from anabranch.core.types import MS


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.orders()
    return stage


def test_the_quarantine_is_purged_of_what_is_too_old_and_again_after_a_while(stage: Stage) -> None:
    gc_ms = stage.limits.gc_interval_ms
    for wait_ms, looks in ((gc_ms, 1), (PURGE_MS, 2), (gc_ms, 2), (PURGE_MS, 3)):
        stage.wait(wait_ms)
        assert sum(isinstance(each, ListQuarantine) for each in stage.asked) == looks
    stage.asked.clear()
    before = stage.now // MS - stage.limits.quarantine_ms
    old, young, foreign = object_id(1, 7), object_id(1, 8), object_id(9, 0)
    stage.give(QuarantineListed([(old, before - 1), (young, before), (foreign, before - 1)]))
    assert stage.asked == [PurgeQuarantine([old])]
    stage.give(QuarantinePurged())


def test_what_a_log_refers_to_is_brought_back_from_quarantine_and_never_purged(
    stage: Stage,
) -> None:
    stage.do(stage.commit())
    stage.asked.clear()
    kept, orphan = object_id(1, 1), object_id(1, 2)
    old = stage.now // MS - stage.limits.quarantine_ms - 1
    stage.give(QuarantineListed([(kept, old), (orphan, old)]))
    assert stage.asked == [ReturnObjects([kept]), PurgeQuarantine([orphan])]
    stage.give(ObjectsReturned([kept]))


def test_a_leader_looks_through_the_quarantine_before_anything_else(stage: Stage) -> None:
    assert stage.leader.start(stage.now)[0] == ListQuarantine()
