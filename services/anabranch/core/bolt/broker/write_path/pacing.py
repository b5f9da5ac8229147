"""When an open object is closed: how long waiting for company pays (AgileLog, 5.2; spec 4 a2).

Waiting makes objects fewer and larger, and appends later. So it is done only while company is
likely, and never for longer than `linger_ms`: against a PUT of 50 ms some milliseconds aren't
noticed, against one of a disk they would be. A store that charges by the request is asked no more
often than `puts_per_s_max`, whatever that costs in time.
"""

from anabranch.core.limits import Limits
from anabranch.core.types import MS, Nanoseconds

SHARE = 2
"""With nothing being written, an object waits for half of what a PUT takes, at most."""

COMPANY = 2
"""Appends to be expected, for waiting to pay."""

_SMOOTHING_BITS = 3
"""A PUT's time counts for an eighth of the estimate."""

_SECOND: Nanoseconds = 1_000 * MS


class Pacing:
    """What arrivals and PUTs so far say about the next object."""

    def __init__(self, limits: Limits) -> None:
        assert limits.puts_per_s_max > 0, "nothing could ever be written"
        assert limits.linger_ms >= 0
        self._linger_max: Nanoseconds = limits.linger_ms * MS
        self._between_puts: Nanoseconds = _SECOND // limits.puts_per_s_max
        self.put_takes: Nanoseconds = 0
        """As estimated; nothing is known before the first."""
        self._window: Nanoseconds = max(self._linger_max, MS)
        """As many appends are expected within the next one as came within the last."""
        self._window_at: Nanoseconds = 0
        self._before = 0
        self._within = 0
        self._paid_until: Nanoseconds = 0
        """PUTs so far use up what is allowed until then."""

    def arrived(self, now: Nanoseconds, appends: int) -> None:
        self._turn(now)
        self._within += appends

    def put(self, now: Nanoseconds) -> None:
        """One begins, be it for the first time or once more."""
        since = max(self._paid_until, now - _SECOND)
        self._paid_until = min(since + self._between_puts, now + _SECOND)

    def put_took(self, duration: Nanoseconds) -> None:
        assert duration >= 0, "a PUT ends after it began"
        if not self.put_takes:
            self.put_takes = duration
        self.put_takes += (duration - self.put_takes) >> _SMOOTHING_BITS

    def close_at(self, now: Nanoseconds, opened_at: Nanoseconds, idle: bool) -> Nanoseconds:
        """Until when an object that isn't full waits; `idle` if nothing else is being written.

        It may be closed sooner, once that ends which was being written.
        """
        linger = self._linger_max
        if idle:
            linger = min(linger, self.put_takes // SHARE)
        if self.expected(now, linger) < COMPANY:
            linger = 0
        return max(opened_at + linger, self._paid_until)

    def expected(self, now: Nanoseconds, span: Nanoseconds) -> int:
        """Appends to come in so long a time, if they come as they did lately."""
        assert span >= 0
        self._turn(now)
        left = self._window - (now - self._window_at)
        lately = self._within + self._before * left // self._window
        return lately * span // self._window

    def _turn(self, now: Nanoseconds) -> None:
        """Counts are kept for this window and the one before it."""
        passed = (now - self._window_at) // self._window
        if passed:
            self._before = self._within if passed == 1 else 0
            self._within = 0
            self._window_at += passed * self._window
