"""A store is busy, away, slow or wrong: nothing acknowledged is lost, nothing spoilt is read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fault_proxy import NOTHING, Request, Spoil
from tests.integration.faults.load import Load
from tests.integration.faults.world import World

from anabranch.core.limits import KIB

ATTEMPT_MS, DEADLINE_MS = 1_000, 3_000
OUTAGE_S = 10.0
"""Three deadlines of a call, and longer than clients try to append. With the default deadlines of
20 s it would be one of a minute; that nothing but their proportion matters is why it is shorter.
"""
REQUESTS = 600
"""While 1 % is refused: as many as a quiet cluster makes in ten minutes, one a second."""
SETTINGS = {
    "archive": "sync",
    "blocked_wait_ms": 100,
    "cache_bytes": 1,  # so that every read asks the store
    "gc_interval_ms": 500,
    "grace_ms": 60_000,
    "snapshot_bytes": 64 * KIB,
    "s3_attempt_ms": ATTEMPT_MS,
    "s3_deadline_ms": DEADLINE_MS,
}


class StoreFaults:
    def __init__(self, world: World, load: Load) -> None:
        self.world, self.load = world, load
        self._spoilt: set[str] = set()

    @property
    def strikes(self) -> dict[str, Callable[[], None]]:
        return {
            "busy": self.busy,
            "very busy": self.very_busy,
            "silent": self.silent,
            "wrong": self.wrong,
            "cut short": self.cut_short,
            "slow": self.slow,
            "away": self.leave,
        }

    def busy(self) -> None:
        """1 % are refused."""
        self._while(0.01, lambda _: Spoil(status=503, code="SlowDown"), REQUESTS)

    def very_busy(self) -> None:
        self._while(0.3, lambda _: Spoil(status=503, code="SlowDown"))

    def silent(self) -> None:
        """It does what it is asked, and its answer is lost."""
        self._while(0.1, lambda _: Spoil(lost=True))

    def wrong(self) -> None:
        """A byte is another one when it arrives; each object once, on its way there and back."""
        self._spoilt.clear()
        self._while(0.3, self._flip)

    def cut_short(self) -> None:
        """The connection ends in the midst of an answer."""
        self._while(0.1, lambda request: Spoil(kept=20) if request.method == "GET" else NOTHING)

    def slow(self) -> None:
        """Some answers never end; others take their time."""
        for broker in self.world.brokers:
            self.world.links[broker.name, "s3"].add("latency", latency=100, jitter=100)
        self._while(
            0.03, lambda request: Spoil(trickled=20) if request.method == "GET" else NOTHING
        )
        for broker in self.world.brokers:
            self.world.links[broker.name, "s3"].mend()

    def leave(self) -> None:
        self.world.s3.kill()
        self.load.last(OUTAGE_S)
        self.world.s3.start()
        self.load.go_on()

    def _while(self, part: float, spoil: Callable[[Request], Spoil], requests: int = 100) -> None:
        """Until so many were made, and then without."""
        proxy, rng = self.world.proxy, self.load.rng
        end = len(proxy.requests) + requests
        proxy.spoil = lambda request: spoil(request) if rng.random() < part else NOTHING
        self.load.until(lambda: len(proxy.requests) >= end, f"{requests} requests of the store")
        self.load.go_on()
        proxy.spoil = lambda _: NOTHING
        self.load.go_on()

    def _flip(self, request: Request) -> Spoil:
        if "/data/" not in request.path or request.path in self._spoilt:
            return NOTHING
        match request.method:
            case "GET":
                self._spoilt.add(request.path)
                return Spoil(flipped=30)
            case "PUT":
                return Spoil(flipped_request=30)
            case _:
                return NOTHING


@pytest.mark.nightly
def test_a_store_may_be_busy_away_slow_and_wrong_and_all_is_rebuilt_from_it(
    tmp_path: Path, seed: int
) -> None:
    with (
        World(tmp_path, members=2, settings=SETTINGS) as world,
        Load(world, seed, tmp_path) as load,
    ):
        load.play(StoreFaults(world, load).strikes)
        throttled, damaged = (
            sum(broker.metric(f"anabranch_{name}_total") for broker in world.brokers)
            for name in ("s3_throttled", "broker_gets_damaged")
        )
        load.check(appends_min=200, anew=world.rebuild)
    assert throttled > 0
    assert damaged > 0, "no spoilt byte was found"
