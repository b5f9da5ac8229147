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
from anabranch.core.errors import QuotaExceeded, Refresh, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.quota import Meter
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds

METERED_MAX = 100_000
"""Logs with a quota that one broker measures; the least recently heard of is forgotten first."""

ASK_MS: Milliseconds = 1_000
"""What is known of a quota that refuses may be as old as this."""


class _Metered:
    """The meter of one log, and when this broker last learned of its quota."""

    __slots__ = ("heard_at", "meter")

    def __init__(self, meter: Meter, now: Nanoseconds) -> None:
        self.meter = meter
        self.heard_at = now


class Metering:
    """What the broker may let pass of each log, and what it has."""

    def __init__(self, context: BrokerContext, correspondence: Correspondence) -> None:
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._correspondence = correspondence
        self._metered: dict[LogId, _Metered] = {}

    def append(self, log: LogId, size: int, records: int) -> QuotaExceeded | None:
        """Count an append, unless its log owes something for earlier ones."""
        metered = self._metered.get(log)
        if metered is None:
            return None
        return self._told(log, metered, metered.meter.append(self._alarms.now, size, records))

    def refuse_read(self, log: LogId) -> QuotaExceeded | None:
        """A read's size is known when it is answered: it is counted then, and the next waits."""
        metered = self._metered.get(log)
        if metered is None:
            return None
        return self._told(log, metered, metered.meter.refuse_read(self._alarms.now))

    def read(self, log: LogId, size: int) -> None:
        """So many bytes are sent to a reader."""
        metered = self._metered.get(log)
        if metered is not None:
            metered.meter.read(self._alarms.now, size)

    def pause_ms(self, log: LogId) -> Milliseconds:
        """How long a subscriber is to get nothing; it isn't refused."""
        metered = self._metered.get(log)
        owed = 0 if metered is None else metered.meter.read_debt(self._alarms.now)
        if metered is None or not owed:
            return 0
        self._ask(log, metered)
        return min(ASK_MS, -(-owed // MS))

    def told(self, logs: Iterable[LogId], quotas: Sequence[LogQuota]) -> None:
        """The quotas of these logs; those not named have none."""
        if not quotas and not self._metered:
            return
        known = {each.log: each for each in quotas}
        for log in logs:
            self._learn(log, known.get(log))

    def _learn(self, log: LogId, told: LogQuota | None) -> None:
        metered = self._metered.pop(log, None)
        if told is None:
            return
        assert told.log == log
        now = self._alarms.now
        if metered is None or metered.meter.quota != told.quota:
            metered = _Metered(Meter(told.name, told.quota), now)
        metered.heard_at = now
        self._metered[log] = metered
        if len(self._metered) > METERED_MAX:
            del self._metered[next(iter(self._metered))]

    def _told(
        self, log: LogId, metered: _Metered, exceeded: QuotaExceeded | None
    ) -> QuotaExceeded | None:
        if exceeded is not None:
            self._ask(log, metered)
            self._outbox.counters.over_quota += 1
        return exceeded

    def _ask(self, log: LogId, metered: _Metered) -> None:
        """It may have been changed since."""
        if self._alarms.now - metered.heard_at < ASK_MS * MS:
            return
        metered.heard_at = self._alarms.now

        def heard(answer: Answer) -> None:
            if isinstance(answer, Description):
                quota = answer.quota
                self._learn(log, None if quota is None else LogQuota(log, answer.name, quota))
            elif isinstance(answer, Refused) and isinstance(answer.error(), Refresh | UnknownLog):
                self._learn(log, None)

        self._correspondence.ask(Describe(log), heard)
