"""A Belfast log as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Generic, TypeVar

from anabranch.client.belfast.appends import Pledge
from anabranch.client.belfast.checks import shard_name
from anabranch.client.belfast.events import RECORDS_MAX, Events
from anabranch.client.belfast.link import Link
from anabranch.client.belfast.rollback import Predicate
from anabranch.client.driver.closing import Closing
from anabranch.client.driver.pending import Pending, result
from anabranch.client.session import arguments
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN
from anabranch.client.session.records import (
    Confirm,
    Deliver,
    Event,
    Headers,
    LogRecord,
    Time,
    checked,
    record,
)
from anabranch.client.session.settings import Settings
from anabranch.client.session.verbs import LogVerbs
from anabranch.core.belfast.protocol.messages import (
    Directory,
    Done,
    Inspect,
    Join,
    Leave,
    Locate,
    Status,
    Trim,
    Where,
)
from anabranch.core.errors import BadRequest, DeadlineExceeded, Overloaded, TrimTooFar
from anabranch.core.records.record import Record
from anabranch.core.types import NEVER, NOWHERE, LogId, Milliseconds, Position

R = TypeVar("R")
"""What an append gives."""


class ShardAppending(Pending[Pledge, R], Generic[R]):
    """An append on its way; await it, or look whether it is done."""

    __slots__ = ()

    @property
    def shard(self) -> str:
        """Where it is appended, or was tried last."""
        return self._pledge.shard


Appending = ShardAppending[Position]


class ShardedLog(LogVerbs, ABC, Generic[R]):
    """One totally ordered log over several shards."""

    engine = "belfast"

    def __init__(self, link: Link) -> None:
        self.link = link
        """The connection to its nodes."""

    @property
    def id(self) -> LogId:
        """In its service's catalogue; NOWHERE if no service has it."""
        return NOWHERE

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def placed(self, pledge: Pledge, index: int) -> R:
        """What the append of this record of an acknowledged batch gives."""

    async def append(
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

        `shard`: which one takes it; without, one that has least to do. `retry_unknown`: append it
        again where a shard failed and nobody can tell whether it is in the log: then it may be
        there twice.

        `request_id`: repeated with the same id and shard, also by another program, the append gives
        its first position and is not done again. It goes with `shard`, for each shard knows only
        its own ids: the last 100,000, as long as their records aren't trimmed.
        """
        made = record(value, key, headers, timestamp)
        if request_id is not None:
            return (await self._batch([made], shard, request_id, timeout))[0]
        pledge = await self.pledge(made, shard, timeout, retry_unknown=retry_unknown)
        return await self._pending(pledge)

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
        """Append in the background, in order at its shard; Overloaded if too much is pending.

        An error of one that is never awaited is raised by `flush` or `close`.
        """
        made, limit_ms = record(value, key, headers, timestamp), self.link.milliseconds(timeout)
        return self._pending(self._add(made, shard, limit_ms, retry_unknown=retry_unknown))

    async def append_soon(
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
        """The same, but wait for room where too much is pending."""
        made = record(value, key, headers, timestamp)
        return self._pending(await self.pledge(made, shard, timeout, retry_unknown=retry_unknown))

    async def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        shard: str | None = None,
        together: bool = False,
        request_id: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> list[R]:
        """Append all in order, at one shard, waiting for room where too much is pending.

        Raises the first error: then some may have been appended, and others not. `together`: all
        are one batch, of which all or none is appended; BatchTooLarge if that is more than a batch
        takes. So it is with a `request_id` and its `shard`, as of `append`.
        """
        made = (checked(each) for each in arguments.several(VALUES, values, VALUES_SHOWN))
        if together or request_id is not None:
            return await self._batch(list(made), shard, request_id, timeout)
        chosen = shard
        pending: list[ShardAppending[R]] = []
        for each in made:
            pledge = await self.pledge(
                each, shard, timeout, retry_unknown=retry_unknown, beside=chosen
            )
            chosen = pledge.shard or None
            pending.append(self._pending(pledge))
        return [await each for each in pending]

    async def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        where: Where | Predicate | None = None,
        shards: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[LogRecord, None]:
        """Records from `start` on: at most `count`, and no more than are confirmed by now.

        `wait`: seconds to wait for the first, if there is none yet. `where`, `shards`: as of
        `subscribe`. Positions of no-ops are passed over.
        """
        async for portion in self.portions(
            start, count, wait=wait, where=where, shards=shards, timeout=timeout
        ):
            for each in portion:
                yield each

    async def portions(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        where: Where | Predicate | None = None,
        shards: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[list[LogRecord], None]:
        """The same in the portions in which it arrives."""
        what = f"read {self.name}"
        start, wait = arguments.position(what, start), arguments.seconds(what, wait)
        left = NEVER if count is None else arguments.number(what, count, NEVER)
        if left == 0:
            raise BadRequest(what, "count must be 1 or more")
        end, some = await self.tail(timeout=timeout), False
        async for portion in self._settled(what, start, end, left, where, shards, timeout):
            some = True
            yield portion
        if wait and not some:
            start = max(start, end)
            async with self._events(start, where, shards) as events:
                found = await events.take(records_max=min(left, RECORDS_MAX), timeout=wait)
                yield _records(found, NEVER)

    async def _settled(
        self,
        what: str,
        start: Position,
        end: Position,
        left: int,
        where: Where | Predicate | None,
        shards: Sequence[str] | None,
        timeout: float | None,
    ) -> AsyncGenerator[list[LogRecord], None]:
        """At most `left` records from `start` up to `end`, which is confirmed; no empty portion."""
        if start >= end:
            return
        limit_s = self.link.milliseconds(timeout) / 1_000
        async with self._events(start, where, shards, until=end) as events:
            while left > 0 and events.final < end:
                before = events.final
                found = await events.take(records_max=min(left, RECORDS_MAX), timeout=limit_s)
                if not found and before == events.final:
                    raise DeadlineExceeded.of_read(what, round(limit_s * 1_000))
                records = _records(found, end)
                left -= len(records)
                if records:
                    yield records

    def subscribe(
        self,
        start: Position | None = None,
        *,
        where: Where | Predicate | None = None,
        shards: Sequence[str] | None = None,
        speculative: bool = True,
    ) -> Events:
        """Everything from `start` on, in order, as soon as it is durable; without a start, what is
        confirmed from now on.

        `where`: only these records. A `Where` is looked at by the shards, so that others needn't
        travel; a function is called here, and must always say the same of the same record.
        `shards`: only what was appended to these. `speculative`: False to be given nothing before
        it is confirmed.
        """
        return self._events(start, where, shards, speculative=speculative)

    def _events(
        self,
        start: Position | None,
        where: Where | Predicate | None,
        shards: Sequence[str] | None,
        *,
        speculative: bool = False,
        until: Position = NEVER,
    ) -> Events:
        return Events(
            self.link,
            start,
            where,
            shards,
            speculative=speculative,
            until=until,
            log=self.id,
        )

    async def subscribe_with(
        self,
        start: Position | None = None,
        *,
        deliver: Callable[[LogRecord, Position, bool], Awaitable[None] | None],
        confirm: Callable[[Position], Awaitable[None] | None] | None = None,
        fail: Callable[[Position], Awaitable[None] | None] | None = None,
        where: Where | Predicate | None = None,
        shards: Sequence[str] | None = None,
    ) -> None:
        """The same with callbacks (Belfast, figure 2), until cancelled or one of them raises.

        `deliver(record, position, is_speculative)`; `confirm(up_to)`: what was delivered below is
        final; `fail(since)`: what was delivered from there on is void.
        """
        async with self.subscribe(start, where=where, shards=shards) as events:
            async for event in events:
                match event:
                    case Deliver(each, speculative):
                        told = deliver(each, each.position, speculative)
                    case Confirm(up_to):
                        told = None if confirm is None else confirm(up_to)
                    case _:
                        told = None if fail is None else fail(event.since)
                if isawaitable(told):
                    await told

    async def tail(self, *, timeout: float | None = None) -> Position:
        """Everything below this position is confirmed: reads end there.

        What this connection was told of is confirmed, whatever an outdated leader says.
        """
        status = await self.status(timeout=timeout)
        return max(status.confirmed, self.link.session.appender.acknowledged)

    async def trim(self, position: Position, *, timeout: float | None = None) -> None:
        """Give up everything below this position, which must be confirmed."""
        message = Trim(arguments.position("a trim's position", position))
        try:
            await self.link.ask(message, Done, f"trim {self.name}", timeout)
        except TrimTooFar as far:
            raise far.named(self.name) from None

    async def leave(self, shard: str, *, timeout: float | None = None) -> None:
        """Let a shard go: it keeps its seat to the end of the windows that are published."""
        message = Leave(shard_name(shard))
        await self.link.ask(message, Done, f"let shard {shard} go", timeout)

    async def join(self, shard: str, *, timeout: float | None = None) -> None:
        """Take back a shard that has left, once all of its replicas are there."""
        message = Join(shard_name(shard))
        await self.link.ask(message, Done, f"take shard {shard} back", timeout)

    async def status(self, *, timeout: float | None = None) -> Status:
        """What the leader of the sequencing group sees."""
        return await self.link.ask(Inspect(), Status, "the status", timeout)

    async def directory(self, *, timeout: float | None = None) -> Directory:
        """Which shards there are and who serves them, as some node knows it now."""
        return await self.link.ask(Locate(), Directory, "the directory", timeout)

    def check(self, shard: str | None, timeout: float | None) -> None:
        """Raise if no append can have these."""
        self.link.milliseconds(timeout)
        if shard is not None:
            shard_name(shard)

    async def pledge(
        self,
        made: Record,
        shard: str | None,
        timeout: float | None,
        *,
        retry_unknown: bool,
        beside: str | None = None,
    ) -> Pledge:
        """Have a record taken once there is room: it is the last of this pledge.

        `beside`: the shard to choose if none is named and it takes appends.
        """
        limit_ms = self.link.milliseconds(timeout)
        while True:
            try:
                return self._add(made, shard, limit_ms, beside, retry_unknown=retry_unknown)
            except Overloaded:
                if not await self.link.room(limit_ms):
                    raise

    def _add(
        self,
        made: Record,
        shard: str | None,
        limit_ms: Milliseconds,
        beside: str | None = None,
        *,
        retry_unknown: bool,
    ) -> Pledge:
        if shard is not None:
            shard_name(shard)
        appender = self.link.session.appender
        pledge = appender.add(made, limit_ms, shard, beside, retry_unknown=retry_unknown)
        self.link.written()
        return pledge

    async def _batch(
        self,
        made: Sequence[Record],
        shard: str | None,
        request_id: str | None,
        timeout: float | None,
    ) -> list[R]:
        if request_id is not None and shard is None:
            reason = (
                "name the shard as well: each shard knows only the ids that it was given itself"
            )
            raise BadRequest(f"request_id {request_id!r:.40}", reason)
        if not made:
            raise BadRequest("an append of one batch", "there is no record")
        if shard is not None:
            shard_name(shard)
        link = self.link
        limit_ms = link.milliseconds(timeout)
        while True:
            try:
                pledge = link.session.appender.add_batch(made, limit_ms, shard, request_id)
                break
            except Overloaded:
                if not await link.room(limit_ms):
                    raise
        link.written()
        await link.settled(pledge)
        return [result(self, pledge, index) for index in range(len(made))]

    def _pending(self, pledge: Pledge) -> ShardAppending[R]:
        return ShardAppending(self, pledge, pledge.count - 1)


class Log(Closing, ShardedLog[Position]):
    """The log of a deployment, which keeps up the connection to it."""

    def __repr__(self) -> str:
        return f"<log of {self.link.endpoint}>"

    @property
    def name(self) -> str:
        return self.link.endpoint.cluster

    @property
    def settings(self) -> Settings:
        """As it was connected with."""
        return self.link.session.settings

    @property
    def _links(self) -> Iterable[Link]:
        return (self.link,)

    def placed(self, pledge: Pledge, index: int) -> Position:
        return pledge.position(index)


def _records(events: Iterable[Event], end: Position) -> list[LogRecord]:
    """Those that lie below `end`."""
    delivered = (each.record for each in events if isinstance(each, Deliver))
    return [each for each in delivered if each.position < end]
