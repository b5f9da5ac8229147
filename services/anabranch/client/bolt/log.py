"""A log or fork as an asyncio program holds it: append, read, subscribe, fork, promote, squash."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, TypeVar

from anabranch.client.bolt.comparisons import differences, range_sum
from anabranch.client.bolt.cursors import Cursor
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.reads import Events, pages
from anabranch.client.bolt.receipts import Appending, Receipt, placed
from anabranch.client.bolt.requests import append_batch, append_records
from anabranch.client.bolt.scans import LEASE_S, ScanPlan, planning
from anabranch.client.bolt.writers import Writer, writers
from anabranch.client.driver import link as driver
from anabranch.client.driver.pending import result
from anabranch.client.session import arguments
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN
from anabranch.client.session.records import (
    Appended,
    Batch,
    Headers,
    LogRecord,
    Time,
    checked,
    milliseconds,
    record,
)
from anabranch.client.session.verbs import LogVerbs
from anabranch.core.bolt.protocol.commands import Description, Done, Promotion
from anabranch.core.bolt.protocol.marks import WriterState
from anabranch.core.bolt.protocol.messages import Appended as Acknowledged
from anabranch.core.bolt.protocol.messages import (
    ClientMessage,
    Describe,
    Fork,
    PositionAt,
    Promote,
    PromoteIf,
    ReadCursors,
    SetQuota,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.queries import At, Comparison, Cursors
from anabranch.core.bolt.protocol.scans import Plan
from anabranch.core.bolt.protocol.set_sums import SetSum
from anabranch.core.errors import AnabranchError, Overloaded
from anabranch.core.quota import Quota
from anabranch.core.records.record import Record
from anabranch.core.types import (
    NEVER,
    Kind,
    LogId,
    Milliseconds,
    OnParentDelete,
    OnPromote,
    Position,
)

A = TypeVar("A")


class Log(LogVerbs):
    """One log or fork. It names the log by its id: a fork that was promoted or squashed says so."""

    engine = "bolt"

    def __init__(self, link: Link, description: Description) -> None:
        self.link = link
        """The connection that all logs of a service share."""
        self.description = description
        """As it was when this handle was made; `describe` asks anew."""

    def __repr__(self) -> str:
        return f"<log {self.name} at {self.link.endpoint}>"

    @property
    def id(self) -> LogId:
        return self.description.id

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def append_link(self) -> driver.Link[Any, Any]:
        """The connection that its appends take."""
        return self.link

    async def append(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Appended[Receipt]:
        """Append one record: it is durable and has its place on return.

        Records that are appended at the same time by several tasks travel together. If the task is
        cancelled meanwhile, the record may or may not be appended.

        `request_id`: repeated with the same id, also by another program, the append gives its first
        result and is not done again, for an hour. It travels alone, and isn't ordered among appends
        that are still pending.
        """
        made = record(value, key, headers, timestamp)
        if request_id is not None:
            return (await self._once([made], request_id, timeout))[0]
        pledge = await self.pledge(made, timeout)
        return await Appending(self, pledge, pledge.count - 1)

    def append_nowait(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        timeout: float | None = None,
    ) -> Appending:
        """Append in the background, in order; Overloaded if too much is pending already.

        An error of one that is never awaited is raised by the service's `flush` or `close`.
        """
        link = self.link
        made = record(value, key, headers, timestamp)
        pledge = link.session.producer(self.id, self.name).add(made, link.milliseconds(timeout))
        link.written()
        return Appending(self, pledge, pledge.count - 1)

    async def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Appended[Receipt]]:
        """Append all in order, waiting for room where too much is pending; cheaper than one by one.

        Raises the first error: then some may have been appended, and others not. With a
        `request_id`, as of `append`, all are one batch, of which all or none is appended.
        """
        link = self.link
        if request_id is not None:
            made = [checked(each) for each in arguments.several(VALUES, values, VALUES_SHOWN)]
            return await self._once(made, request_id, timeout)
        limit_ms = link.milliseconds(timeout)
        producer = link.session.producer(self.id, self.name)
        pledges: list[tuple[Pledge, int]] = []
        last: Pledge | None = None
        for value in arguments.several(VALUES, values, VALUES_SHOWN):
            made = checked(value)
            try:
                pledge = producer.add(made, limit_ms)
            except Overloaded:
                pledge = await self.pledge(made, timeout)
            if pledge is not last:
                # The batch before is full: it may fly while this one fills.
                last = pledge
                link.flush()
            pledges.append((pledge, pledge.count - 1))
        link.flush()
        for pledge, _ in pledges:
            if pledge.outcome is None:
                await link.settled(pledge)
        for pledge, _ in pledges:
            if isinstance(pledge.outcome, AnabranchError):
                # The first is raised here; no other may be raised again by `flush` or `close`.
                link.heeded(pledge.outcome)
        return [result(self, pledge, index) for pledge, index in pledges]

    async def append_batch(
        self, batch: bytes, *, request_id: str | None = None, timeout: float | None = None
    ) -> Appended[Receipt]:
        """Append a whole RecordBatch v2, as `read_batches` gives it or another Kafka tool makes it.

        Only its place in this producer's order is written into it, or its `request_id` as of
        `append`. The result is its first record's.
        """
        link = self.link
        limit_ms = link.milliseconds(timeout)
        if request_id is not None:
            return await append_batch(link, self.id, self.name, batch, request_id, limit_ms)
        while True:
            producer = link.session.producer(self.id, self.name)
            try:
                pledge = producer.add_batch(batch, limit_ms)
                break
            except Overloaded:
                if not await link.room(limit_ms):
                    raise
        link.written()
        return await Appending(self, pledge, 0)

    async def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        timeout: float | None = None,
    ) -> AsyncGenerator[LogRecord, None]:
        """Records from `start` on: at most `count`, and no more than are settled by now.

        `wait`: seconds to wait for the first, if there is none yet. Positions past an undecided
        promotable fork can't be read: ReadBlocked names it.
        """
        async for batch in self.read_batches(start, count, wait=wait, timeout=timeout):
            for each in batch.records():
                yield each

    async def read_batches(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        timeout: float | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """The same as whole batches, verified and not decoded yet; the last is cut to `count`."""
        async for page in self.pages(start, count, wait=wait, timeout=timeout):
            for batch in page:
                yield batch

    async def pages(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        timeout: float | None = None,
    ) -> AsyncGenerator[list[Batch], None]:
        """The same in the portions in which it arrives; the next is on its way while one is
        used.
        """
        async for page in pages(self.link, self.description, start, count, wait, timeout):
            yield page

    def subscribe(self, start: Position | None = None, *, speculative: bool = True) -> Events:
        """Everything from `start` on, as it comes; without one, what is settled from now on.

        `speculative`: also what lies past an undecided promotable fork, to be confirmed or failed.
        """
        if start is not None:
            start = arguments.position(f"subscribe to {self.name}", start)
        return Events(self.link, self.description, start, speculative=speculative)

    async def cfork(  # noqa: PLR0913  # whoever calls it names them
        self,
        name: str | None = None,
        *,
        promotable: bool = False,
        ttl: float | None = None,
        exclusive: bool = False,
        quota: Quota | None = None,
        why: str = "",
        by: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> "Log":
        """A continuous fork: it has this log's records, past and future, and its own between them.

        A promotable one can become this log. `ttl`: seconds after which it is squashed.
        `exclusive`: a broker of its own serves it; NoSpareBroker if none is free. `quota`: its own,
        without one as large a one as this log has. `owner`: who declares it; one that has a log
        already gets that one.
        """
        link = self.link
        message = Fork(
            self.id,
            Kind.CONTINUOUS,
            link.once(),
            name,
            promotable=promotable,
            ttl_ms=_milliseconds(ttl),
            by=link.session.settings.client if by is None else by,
            why=why,
            exclusive=exclusive,
            quota=quota,
            owner=owner,
        )
        return await self._fork(message, timeout)

    async def sfork(  # noqa: PLR0913  # whoever calls it names them
        self,
        name: str | None = None,
        *,
        past: Position | None = None,
        at: Time | None = None,
        ttl: float | None = None,
        on_parent_delete: OnParentDelete = OnParentDelete.ORPHAN,
        exclusive: bool = False,
        quota: Quota | None = None,
        why: str = "",
        by: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> "Log":
        """A severed fork: this log's records up to `past`, or committed before `at`, or all there
        are. `at=t` ends it where `position_at(t)` points.

        What is appended to either later is not in the other. `exclusive`, `owner`: as of a
        continuous one.
        """
        link = self.link
        message = Fork(
            self.id,
            Kind.SEVERED,
            link.once(),
            name,
            past=past,
            at=None if at is None else milliseconds(at),
            ttl_ms=_milliseconds(ttl),
            on_parent_delete=on_parent_delete,
            by=link.session.settings.client if by is None else by,
            why=why,
            exclusive=exclusive,
            quota=quota,
            owner=owner,
        )
        return await self._fork(message, timeout)

    async def promote(
        self, *, expect_own: int | None = None, timeout: float | None = None
    ) -> Promotion:
        """Make this fork its parent; the parent's other promotable forks are squashed.

        `expect_own`: only if the fork has exactly so many records of its own, else ForkMoved. Take
        it from `describe().own_records` before you read what you judge, so that nothing is promoted
        that was appended since.

        Cursors of the fork become the parent's, unless they were to stay or it has its own.
        """
        message = Promote(self.id, self.link.once())
        if expect_own is not None:
            expected = arguments.number(f"promote {self.name}", expect_own, NEVER)
            message = PromoteIf(self.id, message.request, expected)
        return await self.ask(message, Promotion, "promote", timeout)

    async def squash(self, *, timeout: float | None = None) -> None:
        """Delete this fork and everything that continuously inherits from it."""
        message = Squash(self.id, self.link.once(), self.link.session.settings.client)
        await self.ask(message, Done, "squash", timeout)

    async def trim(self, before: Position, *, timeout: float | None = None) -> None:
        """Give up positions below `before`; forks keep what they inherited of them."""
        before = arguments.position(f"trim {self.name}", before)
        await self.ask(Trim(self.id, before, self.link.once()), Done, "trim", timeout)

    async def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended and read in a second; it replaces the one before, whole.

        What is over it is refused as QuotaExceeded, which appends and reads of this library wait
        out for as long as they may; subscribers are slowed. `Quota()` takes the log's away.
        """
        message = SetQuota(self.id, quota, self.link.once())
        await self.ask(message, Description, "set the quota of", timeout)

    async def tail(self, *, timeout: float | None = None) -> Position:
        """The position that the next record gets, as far as it is settled: reads end there."""
        return (await self.describe(timeout=timeout)).settled

    async def describe(self, *, timeout: float | None = None) -> Description:
        """All about this log now."""
        return await self.ask(Describe(self.id), Description, "describe", timeout)

    async def diff(self, other: "Log", *, timeout: float | None = None) -> Comparison:
        """Up to which position both are the same, and the ranges that only one of them has.

        Settled records are compared, by their ids. `trimmed_a` and `trimmed_b` are what can't
        be compared: the other log may have had those records, and trimmed them.
        """
        return await differences(self, other.id, timeout)

    async def set_sum(
        self,
        start: Position | None = None,
        end: Position | None = None,
        *,
        timeout: float | None = None,
    ) -> SetSum:
        """The sum that the service keeps of a range's settled batches, for an audit to compare.

        `anabranch.core.records.set_sum.set_sum` computes the same from the batches themselves, in
        whatever order. Batches of the ranges in `unsummed` are to be left out: nobody knows theirs.
        """
        what = f"the set sum of {self.name}"
        start, end = (each and arguments.position(what, each) for each in (start, end))
        return await range_sum(self, start, end, timeout)

    async def position_at(self, time: Time, *, timeout: float | None = None) -> Position:
        """The first position that was committed at or after a moment."""
        message = PositionAt(self.id, milliseconds(time))
        return (await self.ask(message, At, "find a time in", timeout)).position

    async def plan_scan(
        self,
        start: Position | None = None,
        end: Position | None = None,
        *,
        speculative: bool = False,
        lease: float = LEASE_S,
        timeout: float | None = None,
    ) -> ScanPlan:
        """Name the bytes that hold these positions, for readers that get them from the object store
        themselves. None is deleted until the plan ends, or `lease` seconds after its last renewal.
        Without `end` it ends where the log is settled now; `speculative`: at the tail.
        """
        message = planning(self.link, self.id, start, end, speculative, lease)
        return ScanPlan(self.link, await self.ask(message, Plan, "plan a scan of", timeout))

    async def cursors(self, *, timeout: float | None = None) -> dict[str, Position]:
        """Every named cursor of this log."""
        return (await self.ask(ReadCursors(self.id), Cursors, "cursors of", timeout)).positions

    async def cursor_choices(self, *, timeout: float | None = None) -> dict[str, OnPromote]:
        """What each of them does on a promotion."""
        return (await self.ask(ReadCursors(self.id), Cursors, "cursors of", timeout)).on_promote

    def cursor(self, name: str) -> Cursor:
        """A position that the log keeps for a reader."""
        return Cursor(self, name)

    def writer(self, name: str) -> Writer:
        """A name under which parts of versions are appended once each, however often they are
        tried.
        """
        return Writer(self, name)

    async def writers(self, *, timeout: float | None = None) -> list[WriterState]:
        """The writers that this log itself remembers, in order of name."""
        return await writers(self, "", timeout)

    async def _fork(self, message: Fork, timeout: float | None) -> "Log":
        return Log(self.link, await self.ask(message, Description, "fork", timeout))

    async def _once(
        self, made: Sequence[Record], request_id: str, timeout: float | None
    ) -> list[Appended[Receipt]]:
        link = self.link
        limit_ms = link.milliseconds(timeout)
        return await append_records(link, self.id, self.name, made, request_id, limit_ms)

    def placed(self, pledge: Pledge, index: int) -> Appended[Receipt]:
        """Where this record of an acknowledged batch is."""
        outcome = pledge.outcome
        assert isinstance(outcome, Acknowledged), "an error has no place in the log"
        if outcome.position is not None:
            return Appended(outcome.position + index, None)
        return placed(self.link, outcome, index)

    async def pledge(self, made: Record, timeout: float | None = None) -> Pledge:
        """Have a record taken once there is room: it is the last of this pledge."""
        link = self.link
        limit_ms = link.milliseconds(timeout)
        while True:
            try:
                pledge = link.session.producer(self.id, self.name).add(made, limit_ms)
                break
            except Overloaded:
                if not await link.room(limit_ms):
                    raise
        link.written()
        return pledge

    async def ask(
        self, message: ClientMessage, answer: type[A], what: str, timeout: float | None
    ) -> A:
        """Have the server do what no method here offers."""
        link = self.link
        return await link.ask(message, answer, f"{what} {self.name}", link.milliseconds(timeout))


def _milliseconds(seconds: float | None) -> Milliseconds | None:
    if seconds is None:
        return None
    return round(arguments.seconds("the ttl of a fork", seconds) * 1_000)
