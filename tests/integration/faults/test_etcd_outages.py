"""etcd loses a member, its leader, everybody, its space: nothing acknowledged goes with them."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.etcd_groups import client_of
from tests.integration.faults.load import Load
from tests.integration.faults.world import World

from anabranch.core.errors import DeadlineExceeded, StorageFull, Unavailable
from anabranch.core.limits import KIB, MIB
from anabranch.shell.etcd.api.client import prefix_end

OUTAGE_S = 10.0
QUOTA_BYTES = 32 * MIB
BALLAST = b"/ballast/"
SETTINGS = {"blocked_wait_ms": 100, "snapshot_bytes": 64 * KIB}


class Outages:
    def __init__(self, world: World, load: Load) -> None:
        self.world, self.load = world, load

    @property
    def strikes(self) -> dict[str, Callable[[], None]]:
        return {
            "each member killed": self.each_member_dies,
            "each member asleep": self.each_member_sleeps,
            "restarted": self.restart,
            "full": self.fill,
            "away": self.leave,
        }

    def each_member_dies(self) -> None:
        """One after the other: one of them leads."""
        for member in self.world.etcd.members:
            member.kill()
            self.load.go_on()
            member.start()

    def each_member_sleeps(self) -> None:
        for member in self.world.etcd.members:
            member.pause()
            self.load.go_on()
            member.resume()

    def restart(self) -> None:
        """All at once, and at once again."""
        self.world.etcd.kill()
        self.world.etcd.start()
        self.load.go_on()

    def leave(self) -> None:
        """Beyond every lease, and longer than clients try to append."""
        self.world.etcd.kill()
        self.load.last(OUTAGE_S)
        self.world.etcd.start()
        self.load.go_on()

    def fill(self) -> None:
        """Others take its space, and give it back: we make use of it."""
        client = client_of(self.world.etcd.addresses)
        try:
            while not client.alarms():
                self._put(client.put)
            client.delete(BALLAST, prefix_end(BALLAST))
            self.load.until(lambda: not client.alarms(), "the alarm to be disarmed")
        finally:
            client.close()
        self.load.go_on(20)

    def _put(self, put: Callable[[bytes, bytes], int]) -> None:
        """Whether it is put or not, and though the member that is asked may be defragmented just
        then, for which it answers nobody.
        """
        key = BALLAST + b"%d" % self.load.rng.getrandbits(60)
        with suppress(StorageFull, Unavailable, DeadlineExceeded):
            put(key, b"x" * MIB)


@pytest.mark.nightly
def test_etcd_may_lose_members_everything_and_its_space(tmp_path: Path, seed: int) -> None:
    quota = {"quota_backend_bytes": str(QUOTA_BYTES)}
    with (
        World(tmp_path, etcd=3, members=2, settings=SETTINGS, etcd_options=quota) as world,
        Load(world, seed, tmp_path) as load,
    ):
        load.play(Outages(world, load).strikes)
        load.check(appends_min=200)
