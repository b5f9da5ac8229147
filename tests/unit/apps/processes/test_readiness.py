"""When a local Belfast log is ready for its first append."""

import pytest

from anabranch.apps.processes.readiness import unseated
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.messages import ShardStatus, Status


def shard(
    standing: Standing,
    *,
    quota: int = 10,
    resting: bool = False,
    silent: tuple[str, ...] = (),
) -> ShardStatus:
    return ShardStatus(
        name="a",
        standing=standing,
        epoch=1,
        primary="host:1",
        replicas=("host:1",),
        stand_in="",
        quota=quota,
        next_quota=10,
        window=1,
        rounds=1,
        lag=0,
        records=0,
        noops=0,
        queued=0,
        signals=0,
        resting=resting,
        silent=silent,
    )


def status(*shards: ShardStatus) -> Status:
    return Status(
        term=1,
        leader="host:0",
        members=("host:0",),
        reachable=("host:0",),
        index=1,
        view=0,
        mode=Mode.STEADY,
        window=0,
        cut=1,
        cuts=100,
        published=1,
        confirmed=0,
        horizon=0,
        trimmed=0,
        t_ord_us=10_000,
        shards=shards,
        views_changed=0,
        cuts_made=1,
    )


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
    assert unseated(status(found), ["a"]) == []


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
    assert unseated(status(found), ["a"]) == ["a"]


def test_a_shard_that_the_leader_has_not_admitted_is_waited_for() -> None:
    assert unseated(status(shard(Standing.SEATED)), ["a", "b"]) == ["b"]
