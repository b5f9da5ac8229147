"""A Belfast log as a program without an event loop holds it; see `anabranch.belfast.aio`."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from anabranch.client.belfast import events, log
from anabranch.client.belfast.appends import Pledge
from anabranch.client.belfast.events import RECORDS_MAX
from anabranch.client.belfast.link import Link
from anabranch.client.belfast.rollback import Predicate
from anabranch.client.driver import handover, sync_events
from anabranch.client.driver.closing import SyncClosing
from anabranch.client.driver.handover import Handed, Handover, each
from anabranch.client.session import arguments
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN
from anabranch.client.session.records import (
    Confirm,
    Deliver,
    Event,
    Headers,
    LogRecord,
    Time,
    record,
)
from anabranch.client.session.verbs import LogVerbs
from anabranch.core.belfast.protocol.messages import Directory, Status, Where
from anabranch.core.records.record import Record
from anabranch.core.types import Position

R = TypeVar("R")
"""What an append gives."""


class ShardAppending(handover.Appending[Pledge, R], Generic[R]):
    """An append on its way."""

    __slots__ = ()


Appending = ShardAppending[Position]


class ShardedLog(LogVerbs, Generic[R]):
    """One totally ordered log over several shards."""

    engine = "belfast"

    def __init__(self, loop: Handover, wrapped: log.ShardedLog[R]) -> None:
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
        shard: str | None = None,
        request_id: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> R:
        """Append one record: it is durable and its position is final on return.

        `request_id`: repeated with the same id and shard, also by another program, the append gives
        its first position and is not done again; see `anabranch.belfast.aio`.
        """
        if request_id is not None:
            made = record(value, key, headers, timestamp)
            return self.append_many([made], shard=shard, request_id=request_id, timeout=timeout)[0]
        made = record(value, key, headers, timestamp)
        return self._put(made, shard, timeout, retry_unknown=retry_unknown).result()

    def append_nowait(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        shard: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> ShardAppending[R]:
        """Append in the background, in order at its shard; waits only where too much is pending.

        An error of one whose result nobody asks for is raised by `flush` or `close`.
        """
        made = record(value, key, headers, timestamp)
        appending = self._put(made, shard, timeout, retry_unknown=retry_unknown)
        self._loop.announce()
        return appending

    append_soon = append_nowait

    def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        shard: str | None = None,
        together: bool = False,
        request_id: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> list[R]:
        """Append all in order, at one shard; cheaper than one by one.

        `together`, or with a `request_id` and its `shard`: all are one batch, of which all or none
        is appended.
        """
        # Taken here: a generator may ask this client for something, which the loop itself may not.
        found = list(arguments.several(VALUES, values, VALUES_SHOWN))
        self._loop.run(self._loop.taken())
        done = self.wrapped.append_many(
            found,
            shard=shard,
            together=together,
            request_id=request_id,
            retry_unknown=retry_unknown,
            timeout=timeout,
        )
        return self._loop.run(done)

    def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        where: Where | Predicate | None = None,
        shards: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Iterator[LogRecord]:
        """Records from `start` on: at most `count`, and no more than are confirmed by now.

        `wait`: seconds to wait for the first, if there is none yet. `where`, `shards`: as of
        `subscribe`. Positions of no-ops are passed over.
        """
        portions = self.wrapped.portions(
            start, count, wait=wait, where=where, shards=shards, timeout=timeout
        )
        for portion in each(self._loop, portions):
            yield from portion

    def subscribe(
        self,
        start: Position | None = None,
        *,
        where: Where | Predicate | None = None,
        shards: Sequence[str] | None = None,
        speculative: bool = True,
    ) -> "Events":
        """Everything from `start` on, as soon as it is durable; see `anabranch.belfast.aio`."""
        found = self.wrapped.subscribe(start, where=where, shards=shards, speculative=speculative)
        return Events(self._loop, found)

    def subscribe_with(
        self,
        start: Position | None = None,
        *,
        deliver: Callable[[LogRecord, Position, bool], None],
        confirm: Callable[[Position], None] | None = None,
        fail: Callable[[Position], None] | None = None,
        where: Where | Predicate | None = None,
        shards: Sequence[str] | None = None,
    ) -> None:
        """The same with callbacks, which this thread calls, until one of them raises."""
        with self.subscribe(start, where=where, shards=shards) as found:
            for event in found:
                match event:
                    case Deliver(each, speculative):
                        deliver(each, each.position, speculative)
                    case Confirm(up_to):
                        if confirm is not None:
                            confirm(up_to)
                    case _:
                        if fail is not None:
                            fail(event.since)

    def tail(self, *, timeout: float | None = None) -> Position:
        """Everything below this position is confirmed: reads end there."""
        return self._loop.run(self.wrapped.tail(timeout=timeout))

    def trim(self, position: Position, *, timeout: float | None = None) -> None:
        """Give up everything below this position, which must be confirmed."""
        self._loop.run(self.wrapped.trim(position, timeout=timeout))

    def leave(self, shard: str, *, timeout: float | None = None) -> None:
        """Let a shard go: it keeps its seat to the end of the windows that are published."""
        self._loop.run(self.wrapped.leave(shard, timeout=timeout))

    def join(self, shard: str, *, timeout: float | None = None) -> None:
        """Take back a shard that has left, once all of its replicas are there."""
        self._loop.run(self.wrapped.join(shard, timeout=timeout))

    def status(self, *, timeout: float | None = None) -> Status:
        """What the leader of the sequencing group sees."""
        return self._loop.run(self.wrapped.status(timeout=timeout))

    def directory(self, *, timeout: float | None = None) -> Directory:
        """Which shards there are and who serves them, as some node knows it now."""
        return self._loop.run(self.wrapped.directory(timeout=timeout))

    def _put(
        self, made: Record, shard: str | None, timeout: float | None, *, retry_unknown: bool
    ) -> ShardAppending[R]:
        wrapped = self.wrapped
        wrapped.check(shard, timeout)  # what can't be is refused here, not on the loop
        handed = Handed(_Taker(wrapped, shard, retry_unknown=retry_unknown), made, timeout)
        self._loop.put(handed)
        return ShardAppending(self._loop, handed)


class _Taker(Generic[R]):
    """The log, as appends see it that go to a shard of theirs."""

    __slots__ = ("_log", "_retry_unknown", "_shard")

    def __init__(
        self, wrapped: log.ShardedLog[R], shard: str | None, *, retry_unknown: bool
    ) -> None:
        self._log, self._shard, self._retry_unknown = wrapped, shard, retry_unknown

    @property
    def link(self) -> Link:
        return self._log.link

    def placed(self, pledge: Pledge, index: int) -> R:
        return self._log.placed(pledge, index)

    async def pledge(self, made: Record, timeout: float | None) -> Pledge:
        return await self._log.pledge(made, self._shard, timeout, retry_unknown=self._retry_unknown)


class Log(SyncClosing, ShardedLog[Position]):
    """The log of a deployment, which keeps up the connection to it."""

    def __init__(self, loop: Handover, wrapped: log.Log) -> None:
        super().__init__(loop, wrapped)
        self._closing = wrapped


class Events(sync_events.Events[events.Events]):
    """A subscription: iterate over it, within `with` or until `close`.

    What ends it is raised: PositionTrimmed, or Unavailable after `close`.
    """

    @property
    def final(self) -> Position:
        """Everything below was delivered and is confirmed: where another subscription goes on."""
        if self._loop.closed:
            return self._events.final
        return self._loop.run(self._events.reached())

    def take(self, *, records_max: int = RECORDS_MAX, timeout: float | None = None) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds."""
        return self._loop.run(self._events.take(records_max=records_max, timeout=timeout))
