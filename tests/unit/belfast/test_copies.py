"""The replicas of a shard keep one log, whatever falls (ADR 0028)."""

import pytest
from tests.unit.belfast.replicas import World


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_was_durable_stays_and_all_come_to_the_same(count: int, seed: int) -> None:
    world = World(seed, count)
    world.run(3_000)
    world.heal()
    logs = [
        replica.content(max(each.begins for each in world.replicas.values()), replica.end)
        for replica in world.replicas.values()
    ]
    assert all(log == logs[0] for log in logs)
    assert world.durable
