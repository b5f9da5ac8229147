"""How fast the API server is asked: a bucket of our own, and what it says itself."""

import asyncio

from anabranch.core.quota import Bucket
from anabranch.core.types import MS
from anabranch.shell.runtime.clock import Clock


class Pace:
    """So many requests a second, a burst of so many; none while the API server wants rest."""

    def __init__(self, clock: Clock, per_s: int, burst: int) -> None:
        self._clock = clock
        self._bucket = Bucket(per_s, burst * 1_000 // per_s)
        self._held_until = 0

    async def turn(self) -> None:
        """In order of asking: each takes its place at once and comes when it is due."""
        due = self._bucket.owes_until
        self._bucket.take(self._clock.now(), 1)
        while True:
            wait = max(due, self._held_until) - self._clock.now()
            if wait <= 0:
                return
            await asyncio.sleep(wait / 1e9)

    def hold(self, retry_after_ms: int) -> None:
        self._held_until = max(self._held_until, self._clock.now() + retry_after_ms * MS)
