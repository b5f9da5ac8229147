"""An Erwin log as a program without an event loop holds it; see `anabranch.aio`."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Iterable, Iterator

from anabranch.client.driver import handover, sync_events
from anabranch.client.driver.handover import Handed, Handover, each
from anabranch.client.erwin import events, log, receipts
from anabranch.client.erwin.events import RECORDS_MAX
from anabranch.client.erwin.link import Link
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.session import arguments
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN
from anabranch.client.session.records import Appended, Event, Headers, LogRecord, Time, record
from anabranch.client.session.verbs import LogVerbs
from anabranch.core.records.record import Record
from anabranch.core.sequencing.protocol.messages import Directory, LogSurvey, SequencingStatus
from anabranch.core.types import Position


class Receipt:
    """An append that is durable, and will get a position.

    It counts in this program only: keep its position, not its text.
    """

    __slots__ = ("_loop", "_receipt")

    def __init__(self, loop: Handover, receipt: receipts.Receipt) -> None:
        self._loop, self._receipt = loop, receipt

    def __repr__(self) -> str:
        return repr(self._receipt)

    def position(self, *, timeout: float | None = None) -> Position:
        """Wait until the position is final. PositionPending, a DeadlineExceeded, if it isn't in
        time: ask again.

        The log remembers the last 4,096 batches of this program; RequestForgotten for older ones.
        OutcomeUnknown if the log's durability is `memory` and all of its members lost theirs.
        """
        return self._loop.run(self._receipt.position(timeout=timeout))


Acknowledged = Appended[Receipt]
"""Its position isn't bound yet."""


class Appending(handover.Appending[Pledge, Acknowledged]):
    """An append on its way."""

    __slots__ = ()


class SequencedLog(LogVerbs):
    """A log that acknowledges appends in one round trip, and orders them before they are read."""

    engine = "erwin"

    def __init__(self, loop: Handover, wrapped: log.SequencedLog) -> None:
        self._loop = loop
        self.wrapped = wrapped
        """The same as the asyncio client has it."""

    def __repr__(self) -> str:
        return repr(self.wrapped)

    @property
    def name(self) -> str:
        return self.wrapped.name

    def append(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        request_id: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> Acknowledged:
        """Append one record: it is durable on return, and has a receipt in place of a position.

        `appended.receipt.position()` waits until the position is bound; `append_sync` does both.
        `retry_unknown`, `request_id`: as in `anabranch.aio`.
        """
        made = record(value, key, headers, timestamp)
        if request_id is not None:
            return self.append_many([made], request_id=request_id, timeout=timeout)[0]
        return self._put(made, timeout, retry_unknown=retry_unknown).result()

    def append_sync(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        request_id: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> Position:
        """Append one record and wait until its position is bound and final.

        `timeout` counts for each of the two. PositionPending, a DeadlineExceeded, if only the
        position is missing: the record is in the log.
        """
        appended = self.append(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            request_id=request_id,
            retry_unknown=retry_unknown,
            timeout=timeout,
        )
        assert appended.receipt is not None, "an append without a position has a receipt"
        return appended.receipt.position(timeout=timeout)

    def append_nowait(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> Appending:
        """Append in the background, in order; waits only where too much is pending.

        An error of one whose result nobody asks for is raised by `flush` or `close`.
        """
        made = record(value, key, headers, timestamp)
        appending = self._put(made, timeout, retry_unknown=retry_unknown)
        self._loop.announce()
        return appending

    append_soon = append_nowait

    def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        together: bool = False,
        request_id: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> list[Acknowledged]:
        """Append all in order; cheaper than one by one.

        `together`, or with a `request_id`: all are one batch, of which all or none is appended.
        """
        # Taken here: a generator may ask this client for something, which the loop itself may not.
        found = list(arguments.several(VALUES, values, VALUES_SHOWN))
        self._loop.run(self._loop.taken())
        done = self.wrapped.append_many(
            found,
            together=together,
            request_id=request_id,
            retry_unknown=retry_unknown,
            timeout=timeout,
        )
        return [_held(self._loop, appended) for appended in self._loop.run(done)]

    def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        stable_only: bool = False,
        timeout: float | None = None,
    ) -> Iterator[LogRecord]:
        """Records from `start` on: at most `count`, and no more than are durable by now.

        Those that are ordered come at once. Where the order isn't bound yet, the read waits for it,
        as long as the timeout; with `stable_only` it ends there. `wait`: seconds to wait for the
        first record, if there is none yet. Positions of no-ops are passed over.
        """
        portions = self.wrapped.portions(
            start, count, wait=wait, stable_only=stable_only, timeout=timeout
        )
        for portion in each(self._loop, portions):
            yield from portion

    def subscribe(self, start: Position | None = None, *, speculative: bool = True) -> "Events":
        """Everything from `start` on, in order, as soon as it is ordered; without a start, what is
        appended from now on.
        """
        return Events(self._loop, self.wrapped.subscribe(start, speculative=speculative))

    def tail(self, *, timeout: float | None = None) -> Position:
        """How many positions are taken by records that are durable, ordered or not: reads end here.

        Every append that was acknowledged before counts.
        """
        return self._loop.run(self.wrapped.tail(timeout=timeout))

    def trim(self, position: Position, *, timeout: float | None = None) -> None:
        """Give up everything below this position, which must be stable."""
        self._loop.run(self.wrapped.trim(position, timeout=timeout))

    def status(self, *, timeout: float | None = None) -> SequencingStatus:
        """What the leader sees: view, stable and durable tail, backlog, shards."""
        return self._loop.run(self.wrapped.status(timeout=timeout))

    def survey(self, *, timeout: float | None = None) -> LogSurvey:
        """What the controllers have decided and are doing, also while nobody leads."""
        return self._loop.run(self.wrapped.survey(timeout=timeout))

    def open_shard(self, name: str, *, timeout: float | None = None) -> None:
        """Let this shard take new records, also one that was closed or removed."""
        self._loop.run(self.wrapped.open_shard(name, timeout=timeout))

    def close_shard(self, name: str, *, timeout: float | None = None) -> None:
        """Let this shard take no new records. It is removed when all that it has is trimmed."""
        self._loop.run(self.wrapped.close_shard(name, timeout=timeout))

    def directory(self, *, timeout: float | None = None) -> Directory:
        """Who orders the log and who serves its shards, as some node knows it now."""
        return self._loop.run(self.wrapped.directory(timeout=timeout))

    def _put(self, made: Record, timeout: float | None, *, retry_unknown: bool) -> Appending:
        self.wrapped.link.milliseconds(timeout)  # what can't be is refused here, not on the loop
        taker = _Taker(self._loop, self.wrapped, retry_unknown=retry_unknown)
        handed = Handed(taker, made, timeout)
        self._loop.put(handed)
        return Appending(self._loop, handed)


class _Taker:
    """The log, as appends see it that a thread has put."""

    __slots__ = ("_log", "_loop", "_retry_unknown")

    def __init__(self, loop: Handover, wrapped: log.SequencedLog, *, retry_unknown: bool) -> None:
        self._loop, self._log, self._retry_unknown = loop, wrapped, retry_unknown

    @property
    def link(self) -> Link:
        return self._log.link

    def placed(self, pledge: Pledge, index: int) -> Acknowledged:
        return _held(self._loop, self._log.placed(pledge, index))

    async def pledge(self, made: Record, timeout: float | None) -> Pledge:
        return await self._log.pledge(made, timeout, retry_unknown=self._retry_unknown)


class Events(sync_events.Events[events.Events]):
    """A subscription: iterate over it, within `with` or until `close`.

    What ends it is raised: PositionTrimmed, or Unavailable after `close`.
    """

    @property
    def final(self) -> Position:
        """Everything below was delivered: where another subscription goes on."""
        if self._loop.closed:
            return self._events.final
        return self._loop.run(self._events.reached())

    def take(self, *, records_max: int = RECORDS_MAX, timeout: float | None = None) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds."""
        return self._loop.run(self._events.take(records_max=records_max, timeout=timeout))


def _held(loop: Handover, appended: receipts.Acknowledged) -> Acknowledged:
    assert appended.receipt is not None, "an append without a position has a receipt"
    return Appended(None, Receipt(loop, appended.receipt))
