"""Quotas of appends that a server enforces itself, for engines whose machines know no quotas.

All services of one log in a process share one `AppendLimits`, so that the log has its quota once,
however many shards it has there. An append is counted when it comes, also if the machine refuses it
afterwards: it has cost what it cost, and a shard that is asked again answers as the first time.

Clients of some engines send each append to several of the log's nodes. It is counted once then, and
all of them take it or none: what only some had refused would still be ordered.
"""

from collections.abc import Callable

from anabranch.core.errors import QuotaExceeded
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer
from anabranch.core.quota import Meter, Quota
from anabranch.core.records.batch import HEADER, Header, measure
from anabranch.core.types import MS, NEVER, Nanoseconds

_Id = tuple[int, int, int]
"""A batch's producer, epoch and base sequence."""
_Copy = tuple[_Id, int, int]
"""What copies of a batch have in common: its id, bytes and records. Another batch under the same
id is no copy: a small one that no machine takes mustn't pay for a large one.
"""
REMEMBERED = 4_096
"""Decisions on batches of which other copies may come."""


class AppendLimits:
    """What may be appended to one log through the services of this process."""

    __slots__ = ("_copies", "_decisions", "_limits", "_meter", "_now", "log")

    def __init__(
        self, log: str, limits: Limits, now: Callable[[], Nanoseconds], *, copies: bool = False
    ) -> None:
        """`copies`: clients send each append to several nodes."""
        self.log = log
        self._copies = copies
        self._decisions: dict[_Copy, tuple[Nanoseconds, QuotaExceeded | None]] = {}
        """Each with the time until which it holds; the oldest first."""
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
        if not self._copies:
            return self._meter.append(self._now(), size, records)
        header = Header(*HEADER.unpack_from(batch))
        id = header.producer_id, header.producer_epoch, header.base_sequence
        return self._decided(self._meter, id, size, records)

    def refuse_announced(self, id: _Id, size: int, records: int) -> QuotaExceeded | None:
        """The same for a batch that goes to other nodes. It is announced to all nodes that order
        the log, so these decide: data that no node has ordered yet waits where it is.
        """
        plausible = 1 <= records <= self._limits.batch_records_max
        if self._meter is None or not plausible or not 0 <= size <= self._limits.batch_bytes_max:
            return None
        return self._decided(self._meter, id, size, records)

    def charge(self, size: int, records: int) -> None:
        """Count what the log has taken, and what was counted nowhere in this process."""
        if self._meter is not None:
            self._meter.charge(self._now(), size, records)

    def _decided(self, meter: Meter, id: _Id, size: int, records: int) -> QuotaExceeded | None:
        """A batch that was refused is decided anew when its client is to try again."""
        now, copy = self._now(), (id, size, records)
        until, refusal = self._decisions.get(copy, (now, None))
        if now < until:
            return refusal
        self._decisions.pop(copy, None)
        refusal = meter.append(now, size, records)
        holds = NEVER if refusal is None else now + refusal.retry_after_ms * MS
        self._decisions[copy] = holds, refusal
        if len(self._decisions) > REMEMBERED:
            del self._decisions[next(iter(self._decisions))]
        return refusal
