"""The client of Belfast for programs without an event loop: `with anabranch.belfast.connect(url)`.

The same names as in `anabranch.belfast.aio`, each waiting for what it does. A thread runs the
asyncio client; any number of threads may use it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from anabranch.client.belfast import aio, events, log
from anabranch.client.belfast.events import RECORDS_MAX
from anabranch.client.belfast.rollback import Predicate
from anabranch.client.session.loop import LoopThread
from anabranch.client.session.records import Confirm, Deliver, Event, Headers, LogRecord, Time
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import Directory, Status, Where
from anabranch.core.records.record import Record
from anabranch.core.types import Position


def connect(
    url: str, *, timeout: float = aio.CONNECT_TIMEOUT_S, settings: Settings | None = None
) -> "Log":
    """A log of which a node has answered; use it with `with`, or close it. The URL is as in
    `anabranch.belfast.aio`.
    """
    connecting = aio.connect(url, timeout=timeout, settings=settings)
    with ExitStack() as failing:
        thread = LoopThread()
        failing.callback(thread.stop)
        wrapped = thread.run(connecting.opened())
        failing.pop_all()
    return Log(thread, wrapped)


class Appending:
    """An append on its way."""

    __slots__ = ("_appending", "_thread")

    def __init__(self, thread: LoopThread, appending: log.Appending) -> None:
        self._thread, self._appending = thread, appending

    @property
    def done(self) -> bool:
        return self._appending.done

    def result(self) -> Position:
        """Wait for it; raises what became of it, if it wasn't appended."""

        async def waited() -> Position:
            return await self._appending

        return self._thread.run(waited())


class Log:
    """One totally ordered log over several shards; the connection to it keeps itself up."""

    def __init__(self, thread: LoopThread, wrapped: log.Log) -> None:
        self._thread = thread
        self.wrapped = wrapped
        """The same as the asyncio client has it."""

    def __repr__(self) -> str:
        return repr(self.wrapped)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(wait=error is None)

    def close(self, *, wait: bool = True) -> None:
        """Wait until no append is pending, and close; raises the error of one nobody awaited.

        Without `wait`, close at once: an append that isn't answered yet may be done or not, and
        whoever asks for its result gets an error.
        """
        self._thread.run_last(self.wrapped.close(wait=wait))

    def flush(self) -> None:
        """Wait until no append is pending; raises the first error of one that nobody awaited."""
        self._thread.run(self.wrapped.flush())

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
    ) -> Position:
        """Append one record: it is durable and its position is final on return.

        `request_id`: repeated with the same id and shard, also by another program, the append gives
        its first position and is not done again; see `anabranch.belfast.aio`.
        """
        done = self.wrapped.append(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            shard=shard,
            request_id=request_id,
            retry_unknown=retry_unknown,
            timeout=timeout,
        )
        return self._thread.run(done)

    def append_soon(
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
        """The same in the background; waits only where too much is pending already."""
        begun = self.wrapped.append_soon(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            shard=shard,
            retry_unknown=retry_unknown,
            timeout=timeout,
        )
        return Appending(self._thread, self._thread.run(begun))

    def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        shard: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> list[Position]:
        """Append all in order, at one shard; cheaper than one by one."""
        done = self.wrapped.append_many(
            values, shard=shard, retry_unknown=retry_unknown, timeout=timeout
        )
        return self._thread.run(done)

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
        return Events(self._thread, found)

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

    def trim(self, position: Position, *, timeout: float | None = None) -> None:
        """Give up everything below this position, which must be confirmed."""
        self._thread.run(self.wrapped.trim(position, timeout=timeout))

    def leave(self, shard: str, *, timeout: float | None = None) -> None:
        """Let a shard go: it keeps its seat to the end of the windows that are published."""
        self._thread.run(self.wrapped.leave(shard, timeout=timeout))

    def join(self, shard: str, *, timeout: float | None = None) -> None:
        """Take back a shard that has left, once all of its replicas are there."""
        self._thread.run(self.wrapped.join(shard, timeout=timeout))

    def status(self, *, timeout: float | None = None) -> Status:
        """What the leader of the sequencing group sees."""
        return self._thread.run(self.wrapped.status(timeout=timeout))

    def directory(self, *, timeout: float | None = None) -> Directory:
        """Which shards there are and who serves them, as some node knows it now."""
        return self._thread.run(self.wrapped.directory(timeout=timeout))


class Events:
    """A subscription: iterate over it, within `with` or until `close`."""

    def __init__(self, thread: LoopThread, wrapped: events.Events) -> None:
        self._thread, self._events = thread, wrapped

    def __enter__(self) -> Self:
        self._thread.run(self._events.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        """Raises what ends the subscription: PositionTrimmed, or Unavailable after `close`."""
        while True:
            event = self._events.given()
            if event is None:
                self._thread.run(self._events.fetch())
            else:
                yield event

    @property
    def final(self) -> Position:
        """Everything below was delivered and is confirmed: where another subscription goes on."""
        if self._thread.closed:
            return self._events.final
        return self._thread.run(self._events.reached())

    def take(self, *, records_max: int = RECORDS_MAX, timeout: float | None = None) -> list[Event]:
        """The next events that are there together; none if none came within `timeout` seconds."""
        return self._thread.run(self._events.take(records_max=records_max, timeout=timeout))

    def close(self) -> None:
        """Want no more of it."""
        if not self._thread.closed:
            self._thread.run(self._events.left())
