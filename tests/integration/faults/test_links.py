"""Links between any two parts are cut, slow, and lose what passes: what was acknowledged stays.

The proxy in them knows connections, not packets: a lossy link is one that swallows everything for a
while, ends after so many bytes, or is reset.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.faults.load import Load
from tests.integration.faults.world import World

from anabranch.apps.processes.toxiproxy import Link
from anabranch.core.limits import KIB

PAIRS = (
    ("client", "broker"),
    ("broker", "metadata"),
    ("metadata", "etcd"),
    ("broker", "s3"),
    ("metadata", "s3"),
)
FAULT_S = 1.0
ISOLATION_S = 4.0
"""At most, and a lease is half as long."""
SETTINGS = {
    "blocked_wait_ms": 100,
    "cache_bytes": 64 * KIB,
    "lease_s": 2,
    "silence_ms": 1_500,
    "snapshot_bytes": 64 * KIB,
}


class LinkFaults:
    def __init__(self, world: World, load: Load) -> None:
        self.world, self.load, self.rng = world, load, load.rng

    @property
    def strikes(self) -> dict[str, Callable[[], None]]:
        ways = (self.cut, self.swallow, self.one_way, self.slow, self.narrow, self.reset, self.end)
        on_links = {
            f"{of}-{to} {way.__name__}": self._striking(way, of, to)
            for of, to in PAIRS
            for way in ways
        }
        return on_links | {
            "leader alone": lambda: self._isolate(self.world.leader.name),
            "broker alone": lambda: self._isolate(self.rng.choice(self.world.brokers).name),
        }

    def cut(self, link: Link) -> None:
        link.cut()

    def swallow(self, link: Link) -> None:
        """Connections stand, and nothing arrives."""
        self.one_way(link, "upstream")
        self.one_way(link, "downstream")

    def one_way(self, link: Link, stream: str = "") -> None:
        link.add("timeout", stream or self.rng.choice(("upstream", "downstream")), timeout=0)

    def slow(self, link: Link) -> None:
        link.add("latency", latency=150, jitter=150)

    def narrow(self, link: Link) -> None:
        link.add("bandwidth", rate=20)

    def reset(self, link: Link) -> None:
        """Every connection, a moment after it was made."""
        link.add("reset_peer", timeout=self.rng.choice((0, 50)))

    def end(self, link: Link) -> None:
        """In the midst of whatever is being said."""
        link.add("limit_data", self.rng.choice(("upstream", "downstream")), bytes=5_000)

    def _striking(self, way: Callable[[Link], None], of: str, to: str) -> Callable[[], None]:
        def strike() -> None:
            links = [link for ends, link in self.world.links.items() if _between(ends, of, to)]
            self._while(way, self.rng.sample(links, self.rng.randint(1, len(links))))

        return strike

    def _isolate(self, name: str) -> None:
        """It reaches nobody, and nobody reaches it."""
        links = [link for ends, link in self.world.links.items() if name in ends]
        self._while(self.rng.choice((self.cut, self.swallow)), links, ISOLATION_S)

    def _while(
        self, way: Callable[[Link], None], links: list[Link], longest_s: float = FAULT_S
    ) -> None:
        for link in links:
            way(link)
        self.load.last(self.rng.uniform(0, longest_s))
        for link in links:
            link.mend()
        self.load.go_on()


def _between(ends: tuple[str, str], of: str, to: str) -> bool:
    return ends[0].startswith(of) and ends[1].startswith(to)


@pytest.mark.nightly
def test_no_link_is_needed_all_the_time(tmp_path: Path, seed: int) -> None:
    with (
        World(tmp_path, brokers=2, settings=SETTINGS) as world,
        Load(world, seed, tmp_path) as load,
    ):
        load.play(LinkFaults(world, load).strikes)
        load.check(appends_min=200)
