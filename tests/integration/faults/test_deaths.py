"""Every kind of process is killed and stopped at any instant, under load, and comes back."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.faults.load import Load
from tests.integration.faults.world import World

from anabranch.apps.processes.servers import ServerProcess
from anabranch.core.limits import KIB

PAUSE_S = 0.5
A_FEW = ("leader killed", "all of ours killed")
"""For every change, each in a cluster of its own; all of them are for the night."""
SETTINGS = {
    "blocked_wait_ms": 100,
    "cache_bytes": 64 * KIB,
    "gc_interval_ms": 500,
    "grace_ms": 60_000,
    "lease_s": 2,
    "silence_ms": 1_500,
    "snapshot_bytes": 32 * KIB,
}


class Deaths:
    def __init__(self, world: World, load: Load) -> None:
        self.world, self.load = world, load

    @property
    def strikes(self) -> dict[str, Callable[[], None]]:
        world, rng = self.world, self.load.rng
        return {
            "leader killed": lambda: self.kill(world.leader),
            "leader asleep": lambda: self.pause(world.leader),
            "standby killed": lambda: self.kill(world.standby),
            "standby asleep": lambda: self.pause(world.standby),
            "broker killed": lambda: self.kill(rng.choice(world.brokers)),
            "broker asleep": lambda: self.pause(rng.choice(world.brokers)),
            "etcd member killed": lambda: self.kill(rng.choice(world.etcd.members)),
            "etcd member asleep": lambda: self.pause(rng.choice(world.etcd.members)),
            "store killed": lambda: self.kill(world.s3, alone=True),
            "store asleep": lambda: self.pause(world.s3, alone=True),
            "gateway killed": lambda: self.kill(world.gateways[0], alone=True),
            "gateway asleep": lambda: self.pause(world.gateways[0], alone=True),
            "all of ours killed": self.everything,
        }

    def kill(self, process: ServerProcess, *, alone: bool = False) -> None:
        """`alone`: there is no other that does its work."""
        self._any_moment()
        process.kill()
        if not alone:
            self.load.go_on()
        self._any_moment()
        process.start()
        self.load.go_on()

    def pause(self, process: ServerProcess, *, alone: bool = False) -> None:
        self._any_moment()
        process.pause()
        if not alone:
            self.load.go_on()
        self._any_moment()
        process.resume()
        self.load.go_on()

    def everything(self) -> None:
        """All of ours at once, and all come back."""
        self._any_moment()
        self.world.restart()
        self.load.go_on()

    def _any_moment(self) -> None:
        self.load.last(self.load.rng.uniform(0, PAUSE_S))


@pytest.mark.parametrize("death", A_FEW)
def test_a_death_costs_nothing_that_was_acknowledged(tmp_path: Path, seed: int, death: str) -> None:
    """There is one standby, and one broker: more of them and their minorities are for the night."""
    with (
        World(tmp_path, members=2, brokers=1, settings=SETTINGS) as world,
        Load(world, seed, tmp_path) as load,
    ):
        strikes = Deaths(world, load).strikes
        load.play({death: strikes[death]})
        load.check(appends_min=30)


@pytest.mark.nightly
def test_no_death_and_no_pause_costs_anything_that_was_acknowledged(
    tmp_path: Path, seed: int
) -> None:
    with (
        World(tmp_path, etcd=3, gateway=True, settings=SETTINGS) as world,
        Load(world, seed, tmp_path) as load,
    ):
        load.play(Deaths(world, load).strikes)
        load.web_goes_on()
        load.check(appends_min=200)
