"""A log or fork as a program without an event loop holds it; see `Log` of `anabranch.aio`."""

from collections.abc import Iterable, Iterator
from itertools import islice

from anabranch.client.bolt import log, reads
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.scans import LEASE_S
from anabranch.client.bolt.sync_receipts import Receipt, waiting
from anabranch.client.bolt.sync_scans import ScanPlan
from anabranch.client.bolt.sync_writers import Writer
from anabranch.client.driver import handover, sync_events
from anabranch.client.driver.handover import Handed, Handover, each
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN, several
from anabranch.client.session.records import (
    Appended,
    Batch,
    Headers,
    LogRecord,
    Time,
    record,
)
from anabranch.client.session.verbs import LogVerbs
from anabranch.core.bolt.protocol.commands import Description, Promotion
from anabranch.core.bolt.protocol.marks import WriterState
from anabranch.core.bolt.protocol.queries import Comparison
from anabranch.core.bolt.protocol.set_sums import SetSum
from anabranch.core.quota import Quota
from anabranch.core.records.record import Record
from anabranch.core.types import LogId, OnParentDelete, OnPromote, Position

_PORTION = 65_536
"""Records of an iterable that are handed to the loop at once."""


class Appending(handover.Appending[Pledge, Appended[Receipt]]):
    """An append on its way."""

    __slots__ = ()


class Log(LogVerbs):
    """One log or fork. It names the log by its id: a fork that was promoted or squashed says so."""

    engine = "bolt"

    def __init__(self, loop: Handover, wrapped: log.Log) -> None:
        self.wrapped = wrapped
        """The same log as the asyncio client has it."""
        self._loop = loop
        self._taker = _Taker(loop, wrapped)

    def __repr__(self) -> str:
        return repr(self.wrapped)

    @property
    def id(self) -> LogId:
        return self.wrapped.id

    @property
    def name(self) -> str:
        return self.wrapped.name

    @property
    def description(self) -> Description:
        """As it was when this handle was made; `describe` asks anew."""
        return self.wrapped.description

    def append(
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

        `request_id`: repeated with the same id, also by another program, the append gives its first
        result and is not done again, for an hour. It travels alone, and isn't ordered among appends
        that are still pending.
        """
        if request_id is not None:
            made = record(value, key, headers, timestamp)
            return self.append_many([made], request_id=request_id, timeout=timeout)[0]
        return self._put(value, key, headers, timestamp, timeout).result()

    def append_nowait(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        timeout: float | None = None,
    ) -> Appending:
        """Append in the background, in order; waits only where too much is pending already.

        An error of one whose result nobody asks for is raised by the service's `flush` or `close`.
        """
        appending = self._put(value, key, headers, timestamp, timeout)
        self._loop.announce()
        return appending

    def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Appended[Receipt]]:
        """Append all in order; cheaper than one by one.

        Raises the first error: then some may have been appended, and others not. With a
        `request_id`, as of `append`, all are one batch, of which all or none is appended.
        """
        # Iterated over here: a generator may ask this client for something, which the loop itself
        # may not.
        remaining = iter(several(VALUES, values, VALUES_SHOWN))
        if request_id is not None:
            found = list(remaining)
            self._loop.run(self._loop.taken())
            once = self.wrapped.append_many(found, request_id=request_id, timeout=timeout)
            return [waiting(self._loop, each) for each in self._loop.run(once)]
        results: list[Appended[Receipt]] = []
        while portion := list(islice(remaining, _PORTION)):
            self._loop.run(self._loop.taken())
            done = self._loop.run(self.wrapped.append_many(portion, timeout=timeout))
            results += [waiting(self._loop, each) for each in done]
        return results

    def append_batch(
        self, batch: bytes, *, request_id: str | None = None, timeout: float | None = None
    ) -> Appended[Receipt]:
        """Append a whole RecordBatch v2, as `read_batches` gives it or another Kafka tool makes it.

        Only its place in this producer's order is written into it, or its `request_id` as of
        `append`. The result is its first record's.
        """
        self._loop.run(self._loop.taken())
        made = self.wrapped.append_batch(batch, request_id=request_id, timeout=timeout)
        done = self._loop.run(made)
        return waiting(self._loop, done)

    def read(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        timeout: float | None = None,
    ) -> Iterator[LogRecord]:
        """Records from `start` on: at most `count`, and no more than are settled by now.

        `wait`: seconds to wait for the first, if there is none yet. Positions past an undecided
        promotable fork can't be read: ReadBlocked names it.
        """
        for batch in self.read_batches(start, count, wait=wait, timeout=timeout):
            yield from batch.records()

    def read_batches(
        self,
        start: Position = 0,
        count: int | None = None,
        *,
        wait: float = 0,
        timeout: float | None = None,
    ) -> Iterator[Batch]:
        """The same as whole batches, verified and not decoded yet; the last is cut to `count`."""
        for page in each(self._loop, self.wrapped.pages(start, count, wait=wait, timeout=timeout)):
            yield from page

    def subscribe(self, start: Position | None = None, *, speculative: bool = True) -> "Events":
        """Everything from `start` on, as it comes; without one, what is settled from now on.

        `speculative`: also what lies past an undecided promotable fork, to be confirmed or failed.
        """
        return Events(self._loop, self.wrapped.subscribe(start, speculative=speculative))

    def cfork(  # noqa: PLR0913  # whoever calls it names them
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
        made = self.wrapped.cfork(
            name,
            promotable=promotable,
            ttl=ttl,
            exclusive=exclusive,
            quota=quota,
            why=why,
            by=by,
            owner=owner,
            timeout=timeout,
        )
        return Log(self._loop, self._loop.run(made))

    def sfork(  # noqa: PLR0913  # whoever calls it names them
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
        are.

        What is appended to either later is not in the other. `exclusive`, `owner`: as of a
        continuous one.
        """
        made = self.wrapped.sfork(
            name,
            past=past,
            at=at,
            ttl=ttl,
            on_parent_delete=on_parent_delete,
            exclusive=exclusive,
            quota=quota,
            why=why,
            by=by,
            owner=owner,
            timeout=timeout,
        )
        return Log(self._loop, self._loop.run(made))

    def promote(self, *, expect_own: int | None = None, timeout: float | None = None) -> Promotion:
        """Make this fork its parent; the parent's other promotable forks are squashed.

        `expect_own`: only if the fork has exactly so many records of its own, else ForkMoved. Take
        it from `describe().own_records` before you read what you judge, so that nothing is promoted
        that was appended since.

        Cursors of the fork become the parent's, unless they were to stay or it has its own.
        """
        return self._loop.run(self.wrapped.promote(expect_own=expect_own, timeout=timeout))

    def squash(self, *, timeout: float | None = None) -> None:
        """Delete this fork and everything that continuously inherits from it."""
        self._loop.run(self.wrapped.squash(timeout=timeout))

    def trim(self, before: Position, *, timeout: float | None = None) -> None:
        """Give up positions below `before`; forks keep what they inherited of them."""
        self._loop.run(self.wrapped.trim(before, timeout=timeout))

    def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended and read in a second; it replaces the one before, whole.

        What is over it is refused as QuotaExceeded, which appends and reads of this library wait
        out for as long as they may; subscribers are slowed. `Quota()` takes the log's away.
        """
        self._loop.run(self.wrapped.set_quota(quota, timeout=timeout))

    def tail(self, *, timeout: float | None = None) -> Position:
        """The position that the next record gets, as far as it is settled: reads end there."""
        return self._loop.run(self.wrapped.tail(timeout=timeout))

    def describe(self, *, timeout: float | None = None) -> Description:
        """All about this log now."""
        return self._loop.run(self.wrapped.describe(timeout=timeout))

    def diff(self, other: "Log", *, timeout: float | None = None) -> Comparison:
        """Up to which position both are the same, and the ranges that only one of them has.

        Settled records are compared, by their ids. `trimmed_a` and `trimmed_b` are what can't
        be compared: the other log may have had those records, and trimmed them.
        """
        return self._loop.run(self.wrapped.diff(other.wrapped, timeout=timeout))

    def set_sum(
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
        return self._loop.run(self.wrapped.set_sum(start, end, timeout=timeout))

    def position_at(self, time: Time, *, timeout: float | None = None) -> Position:
        """The first position that was committed at or after a moment."""
        return self._loop.run(self.wrapped.position_at(time, timeout=timeout))

    def plan_scan(
        self,
        start: Position | None = None,
        end: Position | None = None,
        *,
        speculative: bool = False,
        lease: float = LEASE_S,
        timeout: float | None = None,
    ) -> ScanPlan:
        """Name the bytes that hold these positions, for readers that get them from the object store
        themselves; none of them is deleted until the plan ends, or `lease` seconds after its last
        renewal. Without `end` the scan ends where the log is settled now.

        `speculative`: at the tail instead, though a promotion may move what lies between.
        """
        made = self.wrapped.plan_scan(
            start, end, speculative=speculative, lease=lease, timeout=timeout
        )
        return ScanPlan(self._loop, self._loop.run(made))

    def cursors(self, *, timeout: float | None = None) -> dict[str, Position]:
        """Every named cursor of this log."""
        return self._loop.run(self.wrapped.cursors(timeout=timeout))

    def cursor_choices(self, *, timeout: float | None = None) -> dict[str, OnPromote]:
        """What each of them does on a promotion."""
        return self._loop.run(self.wrapped.cursor_choices(timeout=timeout))

    def writer(self, name: str) -> Writer:
        """A name under which parts of versions are appended once each, however often they are
        tried.
        """
        return Writer(self._loop, self.wrapped.writer(name))

    def writers(self, *, timeout: float | None = None) -> list[WriterState]:
        """The writers that this log itself remembers, in order of name."""
        return self._loop.run(self.wrapped.writers(timeout=timeout))

    def cursor(self, name: str) -> "Cursor":
        """A position that the log keeps for a reader."""
        return Cursor(self._loop, self.wrapped.cursor(name))

    def _put(
        self,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        timestamp: Time | None,
        timeout: float | None,
    ) -> Appending:
        made = record(value, key, headers, timestamp)
        self.wrapped.link.milliseconds(timeout)  # what can't be one is refused here
        handed = Handed(self._taker, made, timeout)
        self._loop.put(handed)
        return Appending(self._loop, handed)


class _Taker:
    """The log, as its appends see it: their receipts wait."""

    def __init__(self, loop: Handover, wrapped: log.Log) -> None:
        self._loop = loop
        self.link = wrapped.append_link
        self.pledge = wrapped.pledge
        self._placed = wrapped.placed

    def placed(self, pledge: Pledge, index: int) -> Appended[Receipt]:
        return waiting(self._loop, self._placed(pledge, index))


class Cursor:
    """A named position that a log keeps for a reader, so that it can go on where it was."""

    def __init__(self, loop: Handover, cursor: log.Cursor) -> None:
        self._loop, self._cursor = loop, cursor

    @property
    def name(self) -> str:
        return self._cursor.name

    def get(self, *, timeout: float | None = None) -> Position | None:
        """None if it was never committed."""
        return self._loop.run(self._cursor.get(timeout=timeout))

    def commit(
        self,
        position: Position,
        *,
        on_promote: OnPromote | None = None,
        timeout: float | None = None,
    ) -> None:
        """Keep the position of the next record to be read; it must be settled.

        `on_promote`: in a fork, whether it becomes its parent's when the fork is promoted (by
        default it follows); in a parent that has one of the same name, whether it goes on where
        the fork's was, if that is further (by default it stays). Chosen once, it is kept.
        """
        self._loop.run(self._cursor.commit(position, on_promote=on_promote, timeout=timeout))

    def delete(self, *, timeout: float | None = None) -> None:
        """Forget it."""
        self._loop.run(self._cursor.delete(timeout=timeout))


class Events(sync_events.Events[reads.Events]):
    """A subscription: iterate over it, within `with` or until `close`.

    What ends it is raised: Promoted, Squashed, OutOfRange after a trim.
    """
