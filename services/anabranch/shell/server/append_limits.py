"""Quotas of appends that a server enforces itself, for engines whose machines know no quotas.

All services of one log in a process share one `AppendLimits`, so that the log has its quota once,
however many shards it has there. An append is counted when it comes, also if the machine refuses it
afterwards: it has cost what it cost, and a shard that is asked again answers as the first time.
"""

from collections.abc import Callable

from anabranch.core.errors import QuotaExceeded
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer
from anabranch.core.quota import Meter, Quota
from anabranch.core.records.batch import HEADER, measure
from anabranch.core.types import Nanoseconds


class AppendLimits:
    """What may be appended to one log through the services of this process."""

    __slots__ = ("_limits", "_meter", "_now", "log")

    def __init__(self, log: str, limits: Limits, now: Callable[[], Nanoseconds]) -> None:
        self.log = log
        self._limits = limits
        self._now = now
        self._meter: Meter | None = None

    def set(self, quota: Quota | None) -> None:
        """Enforce this quota from now on. What was used of the same quota before stays used."""
        if quota is None or quota.limits_nothing:
            self._meter = None
        elif self._meter is None or self._meter.quota != quota:
            self._meter = Meter(self.log, quota)

    @property
    def active(self) -> bool:
        """Whether anything is limited now."""
        return self._meter is not None

    def refuse(self, batch: Buffer) -> QuotaExceeded | None:
        """Count this batch, unless the log is over its quota."""
        if self._meter is None or len(batch) < HEADER.size:
            return None
        size, records = len(batch), measure(batch)[1]
        # Nothing in the batch is checked yet: a lie about its records mustn't use up hours of the
        # quota. The machine refuses such a batch.
        if not 1 <= records <= self._limits.batch_records_max:
            return None
        return self._meter.append(self._now(), size, records)
