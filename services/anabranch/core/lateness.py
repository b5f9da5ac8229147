"""How late things have been of late, and so how long silence must last before it counts.

On a loaded machine letters, syncs and timers come late together. Who took that for a failure would
void a shard's records on a machine where nothing is wrong. Everything here is measured from the
times of a machine's own events, so a simulation measures the same.
"""

from anabranch.core.types import MS, Nanoseconds

SPAN: Nanoseconds = 5_000 * MS
"""A delay counts for one to two of these spans."""
MULTIPLE = 3
"""A limit grows by so many times the longest delay: the next one may be longer."""
LIMIT_MAX = 4
"""And to no more than so many times itself: what is dead must be given up in the end."""


class Delays:
    """The longest delay of this span and the one before."""

    def __init__(self) -> None:
        self._began: Nanoseconds = 0
        self._longest: Nanoseconds = 0
        self._before: Nanoseconds = 0

    def note(self, delay: Nanoseconds, now: Nanoseconds) -> None:
        self._roll(now)
        self._longest = max(self._longest, delay)

    def longest(self, now: Nanoseconds) -> Nanoseconds:
        self._roll(now)
        return max(self._longest, self._before)

    def _roll(self, now: Nanoseconds) -> None:
        if now - self._began >= SPAN:
            # After two spans without a look nothing is known of the one before.
            self._before = self._longest if now - self._began < 2 * SPAN else 0
            self._longest = 0
            self._began = now


def patience(limit: Nanoseconds, delay: Nanoseconds) -> Nanoseconds:
    """How long silence must last before it counts, where delays are so long."""
    return min(limit + MULTIPLE * delay, LIMIT_MAX * limit)
