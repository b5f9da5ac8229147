"""A broker's disk is a cache: full, it costs GETs and nothing else."""

from pathlib import Path

from tests.integration.faults.load import Load
from tests.integration.faults.world import World
from tests.integration.loop_disk import LoopDisk

SETTINGS = {"blocked_wait_ms": 100, "cache_bytes": 1}


def test_a_disk_that_is_full_costs_nothing_that_was_acknowledged(
    loop: LoopDisk, tmp_path: Path, seed: int
) -> None:
    broker = {"disk_cache": loop.mount / "cache"}
    with World(tmp_path, members=1, brokers=1, settings=SETTINGS, broker_0=broker) as world:
        with Load(world, seed, tmp_path) as load:
            off = "the disk cache is off: reads go to the object store"
            load.go_on(20)
            loop.fill()
            load.until(lambda: world.brokers[0].logged(off), "the disk to be full")
            load.go_on(100)
            load.check(appends_min=100)
        world.brokers[0].kill()
