"""How fast the API server is asked, on a clock that moves when somebody sleeps."""

import asyncio
from threading import get_ident

import pytest

from anabranch.core.types import MS, Nanoseconds
from anabranch.shell.runtime.clock import Clock
from anabranch_operator.kube.rate_limit import Pace

SECOND: Nanoseconds = 1_000 * MS


class Alarm(Clock):
    """It is as late as whoever sleeps on this thread has slept. Servers that other tests share
    sleep on theirs.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.at: Nanoseconds = 1_800_000_000 * SECOND
        self.begun = self.at
        self._thread = get_ident()
        self._asleep = asyncio.sleep
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    def now(self) -> Nanoseconds:
        return self.at

    async def sleep(self, seconds: float) -> None:
        if get_ident() != self._thread:
            await self._asleep(seconds)
            return
        self.at += max(1, round(seconds * SECOND))

    @property
    def passed(self) -> float:
        return (self.at - self.begun) / SECOND


async def turns(pace: Pace, count: int) -> None:
    for _ in range(count):
        await pace.turn()


def test_after_a_burst_requests_come_at_their_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Alarm(monkeypatch)
    pace = Pace(clock, per_s=10, burst=5)
    asyncio.run(turns(pace, 6))
    assert clock.passed == 0
    asyncio.run(turns(pace, 94))
    assert clock.passed == pytest.approx(9.4)


def test_while_the_api_server_wants_rest_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Alarm(monkeypatch)
    pace = Pace(clock, per_s=10, burst=5)
    pace.hold(7_000)
    pace.hold(3_000)
    asyncio.run(turns(pace, 1))
    assert clock.passed == pytest.approx(7)
