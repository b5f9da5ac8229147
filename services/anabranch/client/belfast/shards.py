"""Over which shards appends are spread: the one that is named, or one that has least to do."""

from collections.abc import Sequence

from anabranch.client.belfast.appends import SHARD_FAILED, Pledge, Producer, expiring, unknown
from anabranch.client.belfast.directory import Whereabouts
from anabranch.client.belfast.stream import BelfastCommons
from anabranch.client.session.call import UNANSWERED
from anabranch.client.session.effects import Settled
from anabranch.core.belfast.protocol.messages import Appended
from anabranch.core.errors import (
    AnabranchError,
    OutcomeUnknown,
    RecordVoided,
    Retry,
)
from anabranch.core.producers import request_identity
from anabranch.core.records.record import Record
from anabranch.core.types import Milliseconds, Position

_UNPLACED = ""
"""Of appends for which no shard is known yet."""


class Appender:
    """All appends of one client."""

    def __init__(self, commons: BelfastCommons, whereabouts: Whereabouts) -> None:
        self.ended: AnabranchError | None = None
        self._commons, self._whereabouts = commons, whereabouts
        self._producers: dict[str, Producer] = {}
        self._requests: dict[tuple[str, str], Producer] = {}
        """Of appends under a request id, by shard and id: each sends nothing else."""
        self._fresh: list[Pledge] = []
        """Without a deadline yet."""
        self._current = _UNPLACED
        self.acknowledged: Position = 0
        """Below this lie all records that were acknowledged."""

    @property
    def idle(self) -> bool:
        producers = (*self._producers.values(), *self._requests.values())
        return all(producer.idle for producer in producers)

    def add(
        self,
        record: Record,
        timeout_ms: Milliseconds,
        shard: str | None = None,
        beside: str | None = None,
        *,
        retry_unknown: bool = False,
    ) -> Pledge:
        """Take one more record: it is the last of the pledge that is returned."""
        if self.ended is not None:
            raise self.ended
        commons = self._commons
        size = commons.admit(record)
        producer = self._producer(shard or self._choose(beside, size))
        pledge = producer.open
        if (
            pledge is None
            or pledge.size + size > commons.batch_bytes
            or pledge.count == commons.batch_records_max
            or pledge.timeout_ms != timeout_ms
            or (pledge.named, pledge.retry_unknown) != (shard is not None, retry_unknown)
        ):
            pledge = Pledge(
                producer.shard, timeout_ms, named=shard is not None, retry_unknown=retry_unknown
            )
            producer.add(pledge)
            producer.open = pledge
            self._fresh.append(pledge)
        pledge.add(record, size)
        producer.pending_bytes += size
        commons.pending_bytes += size
        return pledge

    def add_batch(
        self,
        records: Sequence[Record],
        timeout_ms: Milliseconds,
        shard: str | None = None,
        request_id: str | None = None,
    ) -> Pledge:
        """Take records as one batch, of which all or none is appended. Under a request id, which
        goes with a shard, the shard appends it once.
        """
        if self.ended is not None:
            raise self.ended
        commons, named = self._commons, shard is not None
        pledge = Pledge(
            shard or "", timeout_ms, named=named, retry_unknown=False, request_id=request_id or ""
        )
        for record in records:
            pledge.add(record, commons.admit(record))
        commons.check_batch(pledge.size, pledge.count)
        if request_id is None:
            producer = self._producer(shard or self._choose(None, pledge.size))
        else:
            assert shard is not None, "each shard knows only the ids that it was given itself"
            producer = self._request(shard, request_id)
        producer.add(pledge)
        # What is added next is behind this batch.
        producer.open = None
        self._fresh.append(pledge)
        commons.pending_bytes += pledge.size
        return pledge

    def pump(self) -> None:
        """Send what there is room for; at the end of each step of the session."""
        alarms = self._commons.alarms
        for pledge in self._fresh:
            pledge.alarm = alarms.after(pledge.timeout_ms, expiring(pledge))
        self._fresh.clear()
        self._place()
        for producer in self._producers.values():
            producer.pump()
        for key, producer in list(self._requests.items()):
            producer.pump()
            if producer.idle:
                del self._requests[key]

    def located(self) -> None:
        """Somebody has told anew where the shards are."""
        for producer in list(self._producers.values()):
            if producer.shard != _UNPLACED and not producer.idle:
                producer.located()
        for producer in list(self._requests.values()):
            producer.located()

    def settle(self, pledge: Pledge, outcome: Appended | AnabranchError) -> None:
        if pledge.outcome is not None:
            return
        pledge.outcome = self._sure(pledge, outcome)
        if isinstance(pledge.outcome, Appended):
            last = max(run.first + run.count for run in pledge.outcome.runs)
            self.acknowledged = max(self.acknowledged, last)
        if pledge.alarm is not None:
            pledge.alarm.cancel()
        self._commons.effects.append(Settled(pledge))
        self._commons.released(pledge.size)

    @staticmethod
    def _sure(pledge: Pledge, outcome: Appended | AnabranchError) -> Appended | AnabranchError:
        """What invites to repeat an append is told only if it certainly isn't in the log."""
        if isinstance(outcome, Appended | OutcomeUnknown):
            return outcome
        if pledge.request_id:
            return outcome  # repeated under the same id, it is never appended twice
        if pledge.unsure:
            return unknown(pledge, SHARD_FAILED)
        sent = pledge.doubts or pledge.delivery.under_way
        if sent and isinstance(outcome, Retry) and not isinstance(outcome, RecordVoided):
            unsure = unknown(pledge, UNANSWERED)
            unsure.__cause__ = outcome
            return unsure
        return outcome

    def reroute(self, pledge: Pledge) -> None:
        pledge.doubts, pledge.behind = 0, False
        producer = self._producer(self._choose(None, pledge.size, avoid=pledge.shard))
        producer.add(pledge)
        producer.open = None

    def close(self, error: AnabranchError) -> None:
        self.ended = error
        self._fresh.clear()
        for producer in (*self._producers.values(), *self._requests.values()):
            producer.close(error)

    def _choose(self, beside: str | None, size: int, avoid: str = "") -> str:
        """A batch stays where it was begun; the next goes where least is on its way."""
        taking = sorted(self._whereabouts.taking())
        if beside and beside in taking:
            return beside
        current = self._producers.get(self._current)
        begun = current.open if current is not None and self._current in taking else None
        if begun is not None and begun.size + size <= self._commons.batch_bytes:
            return self._current
        others = [shard for shard in taking if shard != avoid] or taking
        if not others:
            return _UNPLACED
        # By turns among those that have as little: those after the current one come first.
        after = [shard for shard in others if shard > self._current]
        turned = after + others[: len(others) - len(after)]
        self._current = min(turned, key=self._load)
        return self._current

    def _load(self, shard: str) -> int:
        producer = self._producers.get(shard)
        return 0 if producer is None else producer.pending_bytes

    def _place(self) -> None:
        """What no shard was known for gets one now."""
        unplaced = self._producers.get(_UNPLACED)
        if unplaced is None or not unplaced.queue or not self._whereabouts.taking():
            return
        pledges = list(unplaced.queue)
        unplaced.queue.clear()
        unplaced.open, unplaced.pending_bytes = None, 0
        for pledge in pledges:
            self._producer(self._choose(None, pledge.size)).add(pledge)

    def _request(self, shard: str, request_id: str) -> Producer:
        key = (shard, request_id)
        producer = self._requests.get(key)
        if producer is None:
            identity = request_identity(f"shard {shard}", request_id)
            producer = Producer(self._commons, self._whereabouts, self, shard, identity)
            self._requests[key] = producer
        return producer

    def _producer(self, shard: str) -> Producer:
        producer = self._producers.get(shard)
        if producer is None:
            producer = Producer(self._commons, self._whereabouts, self, shard)
            self._producers[shard] = producer
        return producer
