"""All appends of one client of an Erwin log, gathered into batches."""

from collections import deque
from collections.abc import Sequence

from anabranch.client.erwin.directory import ErwinCommons, Whereabouts
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.erwin.series import Series
from anabranch.client.erwin.spread import Spread
from anabranch.client.session.effects import Settled
from anabranch.core.errors import AnabranchError
from anabranch.core.records.record import Record
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import Milliseconds

RECEIPTS_MAX = 4_096
"""Batches of one client whose positions can be asked for after they were acknowledged; a fraction
of what members remember of one producer.
"""


class Appender:
    """One producer, and one for each request."""

    def __init__(self, commons: ErwinCommons, whereabouts: Whereabouts) -> None:
        self.ended: AnabranchError | None = None
        self._commons, self._whereabouts = commons, whereabouts
        self._spread = Spread(whereabouts)
        self._series = Series(commons, whereabouts, self, self._spread)
        self._requests: dict[str, Series] = {}
        """By request id."""
        self._fresh: list[Pledge] = []
        """Without a deadline yet."""
        self._kept: deque[Pledge] = deque()
        """Acknowledged ones whose positions may be asked for, oldest first."""

    @property
    def idle(self) -> bool:
        return self._series.idle and not self._requests

    def add(
        self,
        record: Record,
        timeout_ms: Milliseconds,
        *,
        retry_unknown: bool = False,
        wants_position: bool = False,
    ) -> Pledge:
        """Take one more record: it is the last of the pledge that is returned."""
        if self.ended is not None:
            raise self.ended
        commons, series = self._commons, self._series
        size = commons.admit(record)
        pledge = series.open
        if (
            pledge is None
            or pledge.size + size > commons.batch_bytes
            or pledge.count == commons.batch_records_max
            or pledge.timeout_ms != timeout_ms
            or pledge.retry_unknown != retry_unknown
        ):
            pledge = Pledge(series, timeout_ms, retry_unknown=retry_unknown)
            series.add(pledge)
            series.open = pledge
            self._fresh.append(pledge)
        pledge.wants_position = pledge.wants_position or wants_position
        pledge.add(record, size)
        commons.pending_bytes += size
        return pledge

    def add_batch(
        self, records: Sequence[Record], timeout_ms: Milliseconds, request_id: str | None = None
    ) -> Pledge:
        """Take records as one batch, of which all or none is appended. Under a request id the log
        appends it once.
        """
        if self.ended is not None:
            raise self.ended
        commons, series = self._commons, self._series
        if request_id is not None:
            found = self._requests.get(request_id)
            series = found or Series(commons, self._whereabouts, self, self._spread, request_id)
        pledge = Pledge(series, timeout_ms, request_id=request_id or "")
        for record in records:
            pledge.add(record, commons.admit(record))
        commons.check_batch(pledge.size, pledge.count)
        commons.check_room(pledge.size)
        if request_id is not None:
            self._requests[request_id] = series
        series.add(pledge)
        # What is added next is behind this batch.
        series.open = None
        self._fresh.append(pledge)
        commons.pending_bytes += pledge.size
        return pledge

    def release(self, pledge: Pledge) -> None:
        """Its position is known: members may forget its id."""
        if pledge.kept:
            assert pledge.outstanding is not None
            pledge.kept = False
            pledge.outstanding.release(pledge.sequence)

    def pump(self) -> None:
        """Send what there is room for; at the end of each step of the session."""
        alarms = self._commons.alarms
        for pledge in self._fresh:
            pledge.alarm = alarms.after(pledge.timeout_ms, pledge.expiring())
        self._fresh.clear()
        self._series.pump()
        for request_id, series in list(self._requests.items()):
            series.pump()
            if series.idle:
                del self._requests[request_id]

    def located(self) -> None:
        """Somebody has told anew where the log is."""
        for series in (self._series, *self._requests.values()):
            series.located()

    def rose(self) -> None:
        """A node has let this client in."""
        for series in (self._series, *self._requests.values()):
            series.rose()

    def settle(self, pledge: Pledge, outcome: AppendId | AnabranchError) -> None:
        assert pledge.outcome is None, "a pledge is settled once"
        pledge.outcome = outcome
        if pledge.alarm is not None:
            pledge.alarm.cancel()
        self._commons.effects.append(Settled(pledge))
        self._commons.released(pledge.size)
        pledge.batch = b""
        if isinstance(outcome, AppendId):
            self._keep(pledge)

    def _keep(self, pledge: Pledge) -> None:
        """Members know the ids of so many of the last appends, for receipts to be redeemed."""
        pledge.kept = True
        self._kept.append(pledge)
        if len(self._kept) > RECEIPTS_MAX:
            oldest = self._kept.popleft()
            if not oldest.wants_position:
                self.release(oldest)

    def close(self, error: AnabranchError) -> None:
        self.ended = error
        self._fresh.clear()
        for series in (self._series, *self._requests.values()):
            series.close(error)
