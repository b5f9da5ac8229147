"""The log of a Belfast deployment as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from anabranch.client.belfast.checks import shard_name
from anabranch.client.belfast.events import Events
from anabranch.client.belfast.rollback import Predicate
from anabranch.client.session import arguments
from anabranch.client.session.records import (
    Confirm,
    Deliver,
    Headers,
    LogRecord,
    Time,
    checked,
    record,
)
from anabranch.core.belfast.protocol.messages import (
    Directory,
    Done,
    Join,
    Leave,
    Locate,
    Status,
    Trim,
    Where,
)
from anabranch.core.belfast.protocol.messages import Inspect as Inspecting
from anabranch.core.errors import AnabranchError, BadRequest, Overloaded
from anabranch.core.records.record import Record
from anabranch.core.types import Position

if TYPE_CHECKING:
    from anabranch.client.belfast.appends import Pledge
    from anabranch.client.belfast.link import Link
    from anabranch.client.session.settings import Settings


class Appending:
    """An append on its way; await it, or look whether it is done."""

    __slots__ = ("_index", "_link", "_pledge")

    def __init__(self, link: "Link", pledge: "Pledge", index: int) -> None:
        self._link, self._pledge, self._index = link, pledge, index

    def __await__(self) -> Generator[object, None, Position]:
        yield from self._link.settled(self._pledge).__await__()
        return self.result()

    @property
    def done(self) -> bool:
        return self._pledge.outcome is not None

    @property
    def shard(self) -> str:
        """Where it is appended, or was tried last."""
        return self._pledge.shard

    def result(self) -> Position:
        """Of one that is done; raises what became of it, if it wasn't appended."""
        outcome = self._pledge.outcome
        assert outcome is not None, "only one that is done has a result"
        if isinstance(outcome, AnabranchError):
            self._link.heeded(outcome)
            raise outcome
        return self._pledge.position(self._index)


class Log:
    """One totally ordered log over several shards; the connection to it keeps itself up."""

    def __init__(self, link: "Link") -> None:
        self._link = link

    def __repr__(self) -> str:
        return f"<log of {self._link.endpoint}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(wait=error is None)

    @property
    def settings(self) -> "Settings":
        """As it was connected with."""
        return self._link.session.settings

    async def close(self, *, wait: bool = True) -> None:
        """Wait until no append is pending, then close; raises what became of one nobody awaited.

        Without `wait`, close at once: an append that isn't answered yet may be done or not.
        """
        try:
            if wait:
                await self.flush()
        finally:
            self._link.close()

    async def flush(self) -> None:
        """Wait until no append is pending; raises the first error of one that nobody awaited."""
        await self._link.quiet()
        self._link.raise_unheeded()

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
    ) -> Position:
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
            return await self._once(made, shard, request_id, timeout)
        return await await_(await self.pledge(made, shard, retry_unknown, timeout), self._link)

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
    ) -> Appending:
        """The same in the background, in order at its shard; waits only where too much is pending.

        An error of one that nobody awaits is raised by `flush` or `close`.
        """
        made = record(value, key, headers, timestamp)
        pledge = await self.pledge(made, shard, retry_unknown, timeout)
        return Appending(self._link, pledge, pledge.count - 1)

    async def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        shard: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> list[Position]:
        """Append all in order, at one shard; their positions, in the same order.

        Raises the first error: then some may have been appended, and others not.
        """
        chosen = shard
        pending: list[Appending] = []
        for value in arguments.several("the values to append", values, "[b'1', b'2']"):
            made = checked(value)
            pledge = await self.pledge(made, shard, retry_unknown, timeout, beside=chosen)
            chosen = pledge.shard or None
            pending.append(Appending(self._link, pledge, pledge.count - 1))
        return [await each for each in pending]

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
        return Events(self._link, start, where, shards, speculative=speculative)

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

    async def trim(self, position: Position, *, timeout: float | None = None) -> None:
        """Give up everything below this position, which must be confirmed."""
        message = Trim(arguments.position("a trim's position", position))
        await self._link.ask(message, Done, "trim the log", timeout)

    async def leave(self, shard: str, *, timeout: float | None = None) -> None:
        """Let a shard go: it keeps its seat to the end of the windows that are published."""
        message = Leave(shard_name(shard))
        await self._link.ask(message, Done, f"let shard {shard} go", timeout)

    async def join(self, shard: str, *, timeout: float | None = None) -> None:
        """Take back a shard that has left, once all of its replicas are there."""
        message = Join(shard_name(shard))
        await self._link.ask(message, Done, f"take shard {shard} back", timeout)

    async def status(self, *, timeout: float | None = None) -> Status:
        """What the leader of the sequencing group sees."""
        return await self._link.ask(Inspecting(), Status, "ask for the status", timeout)

    async def directory(self, *, timeout: float | None = None) -> Directory:
        """Which shards there are and who serves them, as some node knows it now."""
        return await self._link.ask(Locate(), Directory, "ask for the directory", timeout)

    async def _once(
        self, made: Record, shard: str | None, request_id: str, timeout: float | None
    ) -> Position:
        if shard is None:
            reason = (
                "name the shard as well: each shard knows only the ids that it was given itself"
            )
            raise BadRequest(f"request_id {request_id!r:.40}", reason)
        shard_name(shard)
        link = self._link
        limit_ms = link.milliseconds(timeout)
        while True:
            try:
                pledge = link.session.appender.add_request([made], limit_ms, shard, request_id)
                break
            except Overloaded:
                if not await link.room(limit_ms):
                    raise
        link.written()
        return await await_(pledge, link)

    async def pledge(
        self,
        made: Record,
        shard: str | None,
        retry_unknown: bool,
        timeout: float | None,
        *,
        beside: str | None = None,
    ) -> "Pledge":
        """Have a record taken once there is room: it is the last of this pledge.

        `beside`: the shard to choose if none is named and it takes appends.
        """
        link = self._link
        limit_ms = link.milliseconds(timeout)
        if shard is not None:
            shard_name(shard)
        while True:
            try:
                pledge = link.session.appender.add(
                    made, limit_ms, shard, beside, retry_unknown=retry_unknown
                )
                break
            except Overloaded:
                if not await link.room(limit_ms):
                    raise
        link.written()
        return pledge


async def await_(pledge: "Pledge", link: "Link") -> Position:
    """The position of the last record that this pledge has now."""
    return await Appending(link, pledge, pledge.count - 1)
