"""Quotas where they are enforced: by the broker that serves a log, for the logs that have one.

A broker learns of quotas with every commit and look-up that it asks for, so that they cost no
message, and a log without one costs one look into a dict. Until it has heard of a log it is
lenient. What a quota refuses asks for nothing, so there the broker asks by itself, now and then.
"""

from collections.abc import Iterable, Sequence

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.protocol.commands import Description, LogQuota
from anabranch.core.bolt.protocol.queries import Answer, Describe
from anabranch.core.bolt.protocol.quota import Bucket, Quota
from anabranch.core.errors import QuotaExceeded, Refresh, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds

METERED_MAX = 100_000
"""Logs with a quota that one broker measures; the least recently heard of is forgotten first."""

ASK_MS: Milliseconds = 1_000
"""What is known of a quota that refuses may be as old as this."""


class _Meter:
    """What one log with a quota has used of it."""

    __slots__ = ("append_bytes", "append_records", "heard_at", "name", "quota", "read_bytes")

    def __init__(self, name: str, quota: Quota, now: Nanoseconds) -> None:
        self.name = name
        self.quota = quota
        self.append_bytes = _bucket(quota.append_bytes_per_s, quota)
        self.append_records = _bucket(quota.append_records_per_s, quota)
        self.read_bytes = _bucket(quota.read_bytes_per_s, quota)
        self.heard_at = now
        """When it was last told or asked for."""


class Metering:
    """What the broker may let pass of each log, and what it has."""

    def __init__(self, context: BrokerContext, correspondence: Correspondence) -> None:
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._correspondence = correspondence
        self._meters: dict[LogId, _Meter] = {}

    def append(self, log: LogId, size: int, records: int) -> QuotaExceeded | None:
        """Count an append, unless its log owes something for earlier ones."""
        meter = self._meters.get(log)
        if meter is None:
            return None
        now = self._alarms.now
        by_bytes, by_records = meter.append_bytes, meter.append_records
        if by_bytes is not None and by_bytes.owes_until > now:
            return self._exceeded(log, meter, "append_bytes_per_s", by_bytes)
        if by_records is not None and by_records.owes_until > now:
            return self._exceeded(log, meter, "append_records_per_s", by_records)
        if by_bytes is not None:
            by_bytes.take(now, size)
        if by_records is not None:
            by_records.take(now, records)
        return None

    def refuse_read(self, log: LogId) -> QuotaExceeded | None:
        """A read's size is known when it is answered: it is counted then, and the next waits."""
        meter = self._meters.get(log)
        if meter is None or meter.read_bytes is None:
            return None
        if meter.read_bytes.owes_until <= self._alarms.now:
            return None
        return self._exceeded(log, meter, "read_bytes_per_s", meter.read_bytes)

    def read(self, log: LogId, size: int) -> None:
        """So much is sent to somebody who reads."""
        meter = self._meters.get(log)
        if meter is not None and meter.read_bytes is not None:
            meter.read_bytes.take(self._alarms.now, size)

    def pause_ms(self, log: LogId) -> Milliseconds:
        """How long a subscriber is to get nothing; it isn't refused."""
        meter = self._meters.get(log)
        if meter is None or meter.read_bytes is None:
            return 0
        owed = meter.read_bytes.owes_until - self._alarms.now
        if owed <= 0:
            return 0
        self._ask(log, meter)
        return min(ASK_MS, -(-owed // MS))

    def told(self, logs: Iterable[LogId], quotas: Sequence[LogQuota]) -> None:
        """The quotas of these logs; those not named have none."""
        if not quotas and not self._meters:
            return
        known = {each.log: each for each in quotas}
        for log in logs:
            self._learn(log, known.get(log))

    def _learn(self, log: LogId, told: LogQuota | None) -> None:
        meter = self._meters.pop(log, None)
        if told is None:
            return
        assert told.log == log
        if meter is None or meter.quota != told.quota:
            meter = _Meter(told.name, told.quota, self._alarms.now)
        meter.heard_at = self._alarms.now
        self._meters[log] = meter
        if len(self._meters) > METERED_MAX:
            del self._meters[next(iter(self._meters))]

    def _exceeded(self, log: LogId, meter: _Meter, quota: str, bucket: Bucket) -> QuotaExceeded:
        self._ask(log, meter)
        now = self._alarms.now
        wait_ms = -(-(bucket.owes_until - now) // MS)
        assert wait_ms > 0, "it may pass"
        self._outbox.counters.over_quota += 1
        return QuotaExceeded(meter.name, quota, bucket.rate, bucket.used(now), wait_ms)

    def _ask(self, log: LogId, meter: _Meter) -> None:
        """It may have been changed since."""
        if self._alarms.now - meter.heard_at < ASK_MS * MS:
            return
        meter.heard_at = self._alarms.now

        def heard(answer: Answer) -> None:
            if isinstance(answer, Description):
                quota = answer.quota
                self._learn(log, None if quota is None else LogQuota(log, answer.name, quota))
            elif isinstance(answer, Refused) and isinstance(answer.error(), Refresh | UnknownLog):
                self._learn(log, None)

        self._correspondence.ask(Describe(log), heard)


def _bucket(rate: int | None, quota: Quota) -> Bucket | None:
    assert rate is None or rate > 0, "the metadata keep no other quotas"
    return None if rate is None else Bucket(rate, quota.burst_ms)
