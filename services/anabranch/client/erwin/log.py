"""An Erwin log as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence

from anabranch.client.driver.pending import result
from anabranch.client.erwin.events import Events
from anabranch.client.erwin.link import Link
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.erwin.reads import Reader
from anabranch.client.erwin.receipts import Acknowledged, Appending, Receipt
from anabranch.client.session import arguments
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN
from anabranch.client.session.records import (
    Appended,
    Headers,
    LogRecord,
    Time,
    checked,
    record,
)
from anabranch.client.session.verbs import LogVerbs
from anabranch.core.errors import BadRequest, Overloaded, TrimTooFar
from anabranch.core.records.record import Record
from anabranch.core.sequencing.protocol.messages import (
    Directory,
    Done,
    Inspect,
    Locate,
    LogSurvey,
    SequencingStatus,
    SetShardOpen,
    Survey,
    Trim,
)
from anabranch.core.types import NOWHERE, LogId, Position


class SequencedLog(LogVerbs, ABC):
    """A log that acknowledges appends in one round trip, and orders them before they are read."""

    engine = "erwin"

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

    async def append(
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

        `await appended.receipt.position()` waits until the position is bound; `append_sync` does
        both. Whatever is appended after this has returned comes later in the log.

        `retry_unknown`: append it again where nobody can tell whether it is in the log: then it may
        be there twice. `request_id`: repeated with the same id, also by another program, the append
        isn't done again, for an hour. It travels alone.
        """
        made = record(value, key, headers, timestamp)
        if request_id is not None:
            return (await self._batch([made], request_id, timeout))[0]
        pledge = await self.pledge(made, timeout, retry_unknown=retry_unknown)
        return await Appending(self, pledge, pledge.count - 1)

    async def append_sync(
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
        """Append one record and wait until its position is bound and final (LazyLog, 5.5).

        `timeout` counts for each of the two. PositionPending, a DeadlineExceeded, if only the
        position is missing: the record is in the log.
        """
        appended = await self.append(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            request_id=request_id,
            retry_unknown=retry_unknown,
            timeout=timeout,
        )
        assert appended.receipt is not None, "an append without a position has a receipt"
        return await appended.receipt.position(timeout=timeout)

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
        """Append in the background, in order; Overloaded if too much is pending.

        An error of one that is never awaited is raised by `flush` or `close`.
        """
        pledge, index = self.begun(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            retry_unknown=retry_unknown,
            timeout=timeout,
        )
        return Appending(self, pledge, index)

    def begun(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> tuple[Pledge, int]:
        """What `append_nowait` appends, as the pledge of its batch and its place there."""
        made = record(value, key, headers, timestamp)
        pledge = self._add(made, timeout, retry_unknown=retry_unknown)
        return pledge, pledge.count - 1

    async def append_soon(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> Appending:
        """The same, but wait for room where too much is pending."""
        made = record(value, key, headers, timestamp)
        return self._appending(await self.pledge(made, timeout, retry_unknown=retry_unknown))

    async def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        together: bool = False,
        request_id: str | None = None,
        retry_unknown: bool = False,
        timeout: float | None = None,
    ) -> list[Acknowledged]:
        """Append all in order, waiting for room where too much is pending; cheaper than one by one.

        Raises the first error: then some may have been appended, and others not. `together`: all
        are one batch, of which all or none is appended, at consecutive positions; BatchTooLarge if
        that is more than a batch takes. So it is with a `request_id`, as of `append`.
        """
        made = (checked(each) for each in arguments.several(VALUES, values, VALUES_SHOWN))
        if together or request_id is not None:
            return await self._batch(list(made), request_id, timeout)
        pending: list[Appending] = []
        for each in made:
            pledge = await self.pledge(each, timeout, retry_unknown=retry_unknown)
            pending.append(self._appending(pledge))
        return [await each for each in pending]

    async def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        stable_only: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[LogRecord, None]:
        """Records from `start` on: at most `count`, and no more than are durable by now.

        Those that are ordered come at once. Where the order isn't bound yet, the read waits for it,
        as long as the timeout; with `stable_only` it ends there. `wait`: seconds to wait for the
        first record, if there is none yet. Positions of no-ops are passed over.
        """
        async for portion in self.portions(
            start, count, wait=wait, stable_only=stable_only, timeout=timeout
        ):
            for each in portion:
                yield each

    def portions(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        stable_only: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[list[LogRecord], None]:
        """The same in the portions in which it arrives."""
        reader = Reader(self.link, self.id, self.name, timeout)
        return reader.portions(start, count, wait, stable_only=stable_only)

    def subscribe(self, start: Position | None = None, *, speculative: bool = True) -> Events:
        """Everything from `start` on, in order, as soon as it is ordered; without a start, what is
        appended from now on.

        Nothing of this engine is speculative, whatever is said: no position that was read changes.
        """
        return Events(self.link, self.id, start)

    async def tail(self, *, timeout: float | None = None) -> Position:
        """How many positions are taken by records that are durable, ordered or not: reads end here.

        Every append that was acknowledged before counts. All members of the view are asked, so it
        waits while one of them is away.
        """
        return await self.link.tail(timeout)

    async def trim(self, position: Position, *, timeout: float | None = None) -> None:
        """Give up everything below this position, which must be stable."""
        message = Trim(arguments.position("a trim's position", position))
        try:
            await self.link.ask(message, Done, f"trim {self.name}", timeout)
        except TrimTooFar as far:
            raise far.named(self.name) from None

    async def status(self, *, timeout: float | None = None) -> SequencingStatus:
        """What the leader sees: view, stable and durable tail, backlog, shards."""
        return await self.link.ask(Inspect(), SequencingStatus, "the status", timeout)

    async def survey(self, *, timeout: float | None = None) -> LogSurvey:
        """What the controllers have decided and are doing, also while nobody leads."""
        return await self.link.ask(Survey(), LogSurvey, "survey the log", timeout)

    async def open_shard(self, name: str, *, timeout: float | None = None) -> None:
        """Let this shard take new records, also one that was closed or removed."""
        await self._set_open(name, True, timeout)

    async def close_shard(self, name: str, *, timeout: float | None = None) -> None:
        """Let this shard take no new records. It is removed when all that it has is trimmed."""
        await self._set_open(name, False, timeout)

    async def _set_open(self, name: str, is_open: bool, timeout: float | None) -> None:
        message = SetShardOpen(arguments.text("a shard", name), is_open)
        what = f"{'open' if is_open else 'close'} shard {name}"
        await self.link.ask(message, Done, what, timeout)

    async def directory(self, *, timeout: float | None = None) -> Directory:
        """Who orders the log and who serves its shards, as some node knows it now."""
        return await self.link.ask(Locate(), Directory, "the directory", timeout)

    def placed(self, pledge: Pledge, index: int) -> Acknowledged:
        """What the append of this record of an acknowledged batch gives."""
        return Appended(None, Receipt(self, pledge, index))

    async def pledge(
        self, made: Record, timeout: float | None = None, *, retry_unknown: bool = False
    ) -> Pledge:
        """Have a record taken once there is room: it is the last of this pledge."""
        while True:
            try:
                return self._add(made, timeout, retry_unknown=retry_unknown)
            except Overloaded:
                if not await self.link.room(self.link.milliseconds(timeout)):
                    raise

    def _add(self, made: Record, timeout: float | None, *, retry_unknown: bool) -> Pledge:
        link = self.link
        limit_ms = link.milliseconds(timeout)
        pledge = link.session.appender.add(made, limit_ms, retry_unknown=retry_unknown)
        link.written()
        return pledge

    async def _batch(
        self, made: Sequence[Record], request_id: str | None, timeout: float | None
    ) -> list[Acknowledged]:
        if not made:
            raise BadRequest("an append of one batch", "there is no record")
        link = self.link
        limit_ms = link.milliseconds(timeout)
        while True:
            try:
                pledge = link.session.appender.add_batch(made, limit_ms, request_id)
                break
            except Overloaded:
                if not await link.room(limit_ms):
                    raise
        link.written()
        await link.settled(pledge)
        return [result(self, pledge, index) for index in range(len(made))]

    def _appending(self, pledge: Pledge) -> Appending:
        return Appending(self, pledge, pledge.count - 1)
