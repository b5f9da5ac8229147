"""How much of a log may be appended and read in a second, and what measures that.

A quota is the same for logs of every engine. Whoever serves a log keeps a `Meter` of it.
"""

import msgspec

from anabranch.core.errors import BadRequest, QuotaExceeded
from anabranch.core.types import MS, Milliseconds, Nanoseconds

RATE_MAX = 10**12
BURST_MS_MAX = 60_000
_SECOND: Nanoseconds = 1_000 * MS


class Quota(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one log or fork may take; None sets no limit. Fields are only ever added at the end."""

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

    def share(self, parts: int) -> "Quota":
        """What each of several parts may take, so that they keep the whole quota together; each
        may take something.
        """
        assert parts > 0, "a quota is shared by somebody"

        def part(rate: int | None) -> int | None:
            return None if rate is None else max(1, rate // parts)

        return msgspec.structs.replace(
            self,
            append_bytes_per_s=part(self.append_bytes_per_s),
            append_records_per_s=part(self.append_records_per_s),
            read_bytes_per_s=part(self.read_bytes_per_s),
        )

    def check(self, log: str) -> None:
        """Raise BadRequest for a rate or burst that is out of bounds."""
        for name in RATES:
            rate = getattr(self, name)
            if rate is not None and not 1 <= rate <= RATE_MAX:
                reason = f"it lies between 1 and {RATE_MAX}, and {rate} doesn't"
                raise BadRequest(f"{name} of {log}", reason)
        if not 1 <= self.burst_ms <= BURST_MS_MAX:
            reason = f"it lies between 1 and {BURST_MS_MAX}, and {self.burst_ms} doesn't"
            raise BadRequest(f"burst_ms of {log}", reason)


RATES = ("append_bytes_per_s", "append_records_per_s", "read_bytes_per_s")


class AppendShare(msgspec.Struct, frozen=True, kw_only=True):
    """What may be appended to one log through one process, as whoever runs the process tells it in
    JSON.
    """

    log: str = ""
    """What refusals call the log; empty: as its cluster is called."""
    append_bytes_per_s: int | None = None
    append_records_per_s: int | None = None
    burst_ms: int = Quota().burst_ms

    @classmethod
    def of(cls, log: str, quota: Quota | None, shards: int) -> "AppendShare":
        """Of one shard of several, each in a process of its own."""
        share = Quota() if quota is None else quota.share(shards)
        return cls(
            log=log,
            append_bytes_per_s=share.append_bytes_per_s,
            append_records_per_s=share.append_records_per_s,
            burst_ms=share.burst_ms,
        )

    @property
    def quota(self) -> Quota:
        return Quota(
            append_bytes_per_s=self.append_bytes_per_s,
            append_records_per_s=self.append_records_per_s,
            burst_ms=self.burst_ms,
        )


class Bucket:
    """A token bucket: a caller without debt may overdraw it once.

    So a batch larger than the bucket passes too, and the next caller waits until it is paid for.
    Over any stretch of time the amounts taken, without the last one, add up to at most the burst
    and the rate's share of that time.
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
        """Earliest time of the next withdrawal."""
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


class Meter:
    """What one log with a quota has used of it, as far as one server has let it pass."""

    __slots__ = ("_append_bytes", "_append_records", "_read_bytes", "log", "quota")

    def __init__(self, log: str, quota: Quota) -> None:
        self.log = log
        self.quota = quota
        self._append_bytes = _bucket(quota.append_bytes_per_s, quota)
        self._append_records = _bucket(quota.append_records_per_s, quota)
        self._read_bytes = _bucket(quota.read_bytes_per_s, quota)

    def append(self, now: Nanoseconds, size: int, records: int) -> QuotaExceeded | None:
        """Count an append, unless the log still owes something for earlier ones."""
        by_bytes, by_records = self._append_bytes, self._append_records
        if by_bytes is not None and by_bytes.owes_until > now:
            return self._exceeded("append_bytes_per_s", by_bytes, now)
        if by_records is not None and by_records.owes_until > now:
            return self._exceeded("append_records_per_s", by_records, now)
        if by_bytes is not None:
            by_bytes.take(now, size)
        if by_records is not None:
            by_records.take(now, records)
        return None

    def charge(self, now: Nanoseconds, size: int, records: int) -> None:
        """Count what was appended elsewhere, room or not: later appends wait until it is paid."""
        if self._append_bytes is not None:
            self._append_bytes.take(now, size)
        if self._append_records is not None:
            self._append_records.take(now, records)

    def refuse_read(self, now: Nanoseconds) -> QuotaExceeded | None:
        """A read's size is known when it is answered: `read` counts it then, and the next waits."""
        if self.read_debt(now) == 0:
            return None
        assert self._read_bytes is not None, "nothing is owed without a limit"
        return self._exceeded("read_bytes_per_s", self._read_bytes, now)

    def read(self, now: Nanoseconds, size: int) -> None:
        """So many bytes are sent to a reader."""
        if self._read_bytes is not None:
            self._read_bytes.take(now, size)

    def read_debt(self, now: Nanoseconds) -> Nanoseconds:
        """How long readers must wait."""
        return 0 if self._read_bytes is None else max(0, self._read_bytes.owes_until - now)

    def _exceeded(self, quota: str, bucket: Bucket, now: Nanoseconds) -> QuotaExceeded:
        wait_ms = -(-(bucket.owes_until - now) // MS)
        assert wait_ms > 0, "a log without debt isn't refused"
        return QuotaExceeded(self.log, quota, bucket.rate, bucket.used(now), wait_ms)


def _bucket(rate: int | None, quota: Quota) -> Bucket | None:
    assert rate is None or rate > 0, "a quota is checked before it is kept"
    return None if rate is None else Bucket(rate, quota.burst_ms)
