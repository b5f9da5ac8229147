"""What programs do with a log of any engine; what an engine has besides is on its own type.

`anabranch.AnyLog` is for programs without an event loop, `anabranch.aio.AnyLog` for those with one.
"""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from anabranch.client.session.records import Appended, Event, Headers, LogRecord, Time
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.quota import Quota
from anabranch.core.records.record import Record
from anabranch.core.types import LogId, Position


class NamedLog(Protocol):
    """What a handle knows without asking."""

    @property
    def engine(self) -> str:
        """The engine that serves the log: `bolt`, `belfast` or `erwin`."""
        ...

    @property
    def id(self) -> LogId: ...

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> Description:
        """As it was when this handle was made; `describe` asks anew."""
        ...


class AsyncEvents(Protocol):
    """A subscription: iterate over it, within `async with` or until `close`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def __aiter__(self) -> AsyncIterator[Event]: ...

    async def take(self, *, timeout: float | None = None) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds."""
        ...

    def close(self) -> None:
        """Want no more of it."""
        ...


class AsyncLog(NamedLog, Protocol):
    """A log of any engine, as an asyncio program holds it."""

    async def append(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Appended[Any]:
        """Append one record: it is durable on return, and has its position or a receipt for it.

        `request_id`: repeated with the same id, the append is not done again. A Belfast log wants
        its `shard` as well.
        """
        ...

    def append_nowait(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        timeout: float | None = None,
    ) -> Awaitable[Appended[Any]]:
        """Append in the background; Overloaded if too much is pending already."""
        ...

    async def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Appended[Any]]:
        """Append all in order, waiting for room where too much is pending."""
        ...

    def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        timeout: float | None = None,
    ) -> AsyncGenerator[LogRecord, None]:
        """Records from `start` on: at most `count`, and no more than are settled by now."""
        ...

    def subscribe(self, start: Position | None = None, *, speculative: bool = True) -> AsyncEvents:
        """Everything from `start` on, as it comes; without one, what is settled from now on."""
        ...

    async def tail(self, *, timeout: float | None = None) -> Position:
        """Reads end here: everything below is settled."""
        ...

    async def trim(self, before: Position, /, *, timeout: float | None = None) -> None:
        """Give up positions below `before`."""
        ...

    async def describe(self, *, timeout: float | None = None) -> Description:
        """What the service knows of the log now."""
        ...

    async def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended and read in a second; `Quota()` takes the log's away.

        The reads of a Belfast or Erwin log can't be limited.
        """
        ...


class Events(Protocol):
    """A subscription: iterate over it, within `with` or until `close`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def __iter__(self) -> Iterator[Event]: ...

    def take(self, *, timeout: float | None = None) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds."""
        ...

    def close(self) -> None:
        """Want no more of it."""
        ...


class Appending(Protocol):
    """An append on its way."""

    @property
    def done(self) -> bool: ...

    def result(self) -> Appended[Any]:
        """Wait for it; raises what became of it, if it wasn't appended."""
        ...


class AnyLog(NamedLog, Protocol):
    """A log of any engine, as a program without an event loop holds it."""

    def append(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Appended[Any]:
        """Append one record: it is durable on return, and has its position or a receipt for it.

        `request_id`: repeated with the same id, the append is not done again. A Belfast log wants
        its `shard` as well.
        """
        ...

    def append_nowait(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        timeout: float | None = None,
    ) -> Appending:
        """Append in the background; waits only where too much is pending already."""
        ...

    def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Appended[Any]]:
        """Append all in order; cheaper than one by one."""
        ...

    def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        timeout: float | None = None,
    ) -> Iterator[LogRecord]:
        """Records from `start` on: at most `count`, and no more than are settled by now."""
        ...

    def subscribe(self, start: Position | None = None, *, speculative: bool = True) -> Events:
        """Everything from `start` on, as it comes; without one, what is settled from now on."""
        ...

    def tail(self, *, timeout: float | None = None) -> Position:
        """Reads end here: everything below is settled."""
        ...

    def trim(self, before: Position, /, *, timeout: float | None = None) -> None:
        """Give up positions below `before`."""
        ...

    def describe(self, *, timeout: float | None = None) -> Description:
        """What the service knows of the log now."""
        ...

    def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended and read in a second; `Quota()` takes the log's away.

        The reads of a Belfast or Erwin log can't be limited.
        """
        ...
