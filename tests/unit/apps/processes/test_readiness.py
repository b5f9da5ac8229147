"""When a local Belfast log is ready for its first append."""

from typing import Any

import pytest
from tests.unit.belfast_status import log_status, shard_status

from anabranch.apps.processes.readiness import unseated
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import ShardStatus


def shard(standing: Standing, **differs: Any) -> ShardStatus:
    return shard_status(standing=standing, **differs)


@pytest.mark.parametrize(
    "found",
    [
        shard(Standing.SEATED),
        shard(Standing.SEATED, quota=0, resting=True),
        shard(Standing.LEAVING),
        shard(Standing.LEFT, quota=0),
    ],
)
def test_a_shard_with_a_seat_or_on_its_way_out_is_not_waited_for(found: ShardStatus) -> None:
    assert unseated(log_status(found), ["a"]) == []


@pytest.mark.parametrize(
    "found",
    [
        shard(Standing.WAITING, quota=0),
        shard(Standing.FAILED),
        shard(Standing.SEATED, quota=0),
        shard(Standing.SEATED, silent=("host:1",)),
    ],
)
def test_a_shard_that_can_have_nothing_ordered_is_waited_for(found: ShardStatus) -> None:
    assert unseated(log_status(found), ["a"]) == ["a"]


def test_a_shard_that_the_leader_has_not_admitted_is_waited_for() -> None:
    assert unseated(log_status(shard(Standing.SEATED)), ["a", "b"]) == ["b"]
