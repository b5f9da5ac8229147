"""How much of a log may be appended and read in a second, and the bucket that measures it."""

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.core.types import MS, Milliseconds, Nanoseconds

RATE_MAX = 10**12
BURST_MS_MAX = 60_000
_SECOND: Nanoseconds = 1_000 * MS


class Quota(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one log or fork may take; None is no limit. Fields are only ever added at the end."""

    append_bytes_per_s: int | None = None
    """Of batches as they are sent, compressed or not."""
    append_records_per_s: int | None = None
    read_bytes_per_s: int | None = None
    """Of batches as they are sent to readers and subscribers."""
    burst_ms: Milliseconds = 1_000
    """What wasn't used in so long may be used at once."""

    @property
    def limits_nothing(self) -> bool:
        rates = (self.append_bytes_per_s, self.append_records_per_s, self.read_bytes_per_s)
        return all(rate is None for rate in rates)

    def check(self, log: str) -> None:
        """Refuse what no log can be held to."""
        for name in RATES:
            rate = getattr(self, name)
            if rate is not None and not 1 <= rate <= RATE_MAX:
                reason = f"it lies between 1 and {RATE_MAX}, and {rate} doesn't"
                raise BadRequest(f"{name} of {log}", reason)
        if not 1 <= self.burst_ms <= BURST_MS_MAX:
            reason = f"it lies between 1 and {BURST_MS_MAX}, and {self.burst_ms} doesn't"
            raise BadRequest(f"burst_ms of {log}", reason)


RATES = ("append_bytes_per_s", "append_records_per_s", "read_bytes_per_s")


class Bucket:
    """A token bucket that may be overdrawn once: who owes nothing may take as much as he needs.

    So a batch larger than the bucket passes too, and is waited for afterwards. Over any stretch of
    time what was taken, its last taking apart, is at most the burst and the rate's share of it.
    """

    __slots__ = ("_burst", "_full_at", "_rest", "rate")

    def __init__(self, rate: int, burst_ms: Milliseconds) -> None:
        assert rate > 0, "a rate of nothing never lets anybody pass"
        assert burst_ms >= 0
        self.rate = rate
        self._burst: Nanoseconds = burst_ms * MS
        self._full_at: Nanoseconds = 0
        """When it will be full if nothing more is taken: all there is to know of its level."""
        self._rest = 0
        """Of a nanosecond, in parts of the rate, so that nothing is lost by rounding."""

    @property
    def owes_until(self) -> Nanoseconds:
        """From then on the next may take."""
        return self._full_at - self._burst

    def take(self, now: Nanoseconds, amount: int) -> None:
        assert amount >= 0, "what was taken isn't given back"
        if self._full_at < now:
            self._full_at, self._rest = now, 0
        cost, self._rest = divmod(amount * _SECOND + self._rest, self.rate)
        self._full_at += cost

    def used(self, now: Nanoseconds) -> int:
        """What was taken and has not flowed back."""
        return max(0, self._full_at - now) * self.rate // _SECOND
