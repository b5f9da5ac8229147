"""Clocks of nodes: wrong by seconds when a life begins, and slowly set right or wrong within it.

As `shell/runtime/clock.py` has it: a step of the wall clock is followed at half a percent of the
pace.
"""

from anabranch.core.types import Nanoseconds

_SLEW_PPM_MAX = 5_000


class SlewedClock:
    """How far what a node's machine is told differs from the true time."""

    def __init__(self) -> None:
        self.wall_error: Nanoseconds = 0
        """Of the machine's own clock, which may be stepped."""
        self._error: Nanoseconds = 0
        self._since: Nanoseconds = 0

    def begin(self, now: Nanoseconds) -> None:
        """A process takes the time as it finds it."""
        self._error, self._since = self.wall_error, now

    def step(self, now: Nanoseconds, wall_error: Nanoseconds) -> None:
        self._error, self._since = self.error(now), now
        self.wall_error = wall_error

    def error(self, now: Nanoseconds) -> Nanoseconds:
        if self.wall_error == self._error:
            return self._error
        most = (now - self._since) * _SLEW_PPM_MAX // 1_000_000
        return self._error + max(-most, min(most, self.wall_error - self._error))
