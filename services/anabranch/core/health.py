"""How something that we depend on does: healthy, degraded, unavailable. None of them is an end.

While it is unavailable one call at a time is let through to look, at growing intervals; whoever
else asks is told how long to wait. What happens is reported by whoever makes the calls.
"""

from enum import IntEnum

from anabranch.core.types import MS, Nanoseconds

DEGRADED_AFTER = 3
"""Failures in a row."""
UNAVAILABLE_AFTER = 10
"""Failures in a row."""
HEALTHY_AFTER = 10
"""Successes in a row."""
LOOK_MS = 100
"""From the failure that made it unavailable to the first look; doubled before each further one."""
LOOK_MS_MAX = 2_000


class Standing(IntEnum):
    HEALTHY = 0
    DEGRADED = 1
    """Some calls fail: ours are repeated, and take longer."""
    UNAVAILABLE = 2


class Health:
    __slots__ = ("_failures", "_interval", "_next", "_successes", "standing")

    def __init__(self) -> None:
        self.standing = Standing.HEALTHY
        self._failures = 0
        self._successes = 0
        self._interval = 0
        self._next: Nanoseconds = 0

    @property
    def failures(self) -> int:
        """In a row, up to now."""
        return self._failures

    def succeeded(self) -> None:
        """It answered; that it refused what was asked is an answer as well."""
        self._failures = 0
        self._successes += 1
        if self.standing is Standing.UNAVAILABLE:
            self._successes = 1
            self.standing = Standing.DEGRADED
        elif self.standing is Standing.DEGRADED and self._successes >= HEALTHY_AFTER:
            self.standing = Standing.HEALTHY

    def failed(self, now: Nanoseconds) -> None:
        self._successes = 0
        self._failures += 1
        if self.standing is Standing.UNAVAILABLE:
            return  # of those let through, or under way since before: the looks have their pace
        if self._failures >= UNAVAILABLE_AFTER:
            self.standing = Standing.UNAVAILABLE
            self._interval = LOOK_MS * MS
            self._next = now + self._interval
        elif self._failures >= DEGRADED_AFTER:
            self.standing = Standing.DEGRADED

    def wait(self, now: Nanoseconds) -> Nanoseconds:
        """How long a call should wait before it asks again; 0 means go, and is a promise to."""
        if self.standing is not Standing.UNAVAILABLE:
            return 0
        assert self._interval > 0
        if now < self._next:
            assert self._next - now <= LOOK_MS_MAX * MS, "time never goes back"
            return self._next - now
        self._interval = min(2 * self._interval, LOOK_MS_MAX * MS)
        self._next = now + self._interval
        return 0
