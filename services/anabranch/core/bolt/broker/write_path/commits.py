"""Objects on their way into the store and into the logs.

Several are written at once. One is committed only when it is durable (B11) and all before it are
committed or given up, so that what one producer sent is ordered as it was sent (spec R1).
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import accumulate

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.read_path.cache import Extent, ExtentCache
from anabranch.core.bolt.broker.write_path.open_object import Held, OpenObject
from anabranch.core.bolt.broker.write_path.pacing import Pacing
from anabranch.core.bolt.protocol.commands import Batch, CommitObject, Outcome, Row
from anabranch.core.bolt.protocol.fronts import FrontMark
from anabranch.core.bolt.state.replica import COMMITS_APART_MAX
from anabranch.core.errors import (
    AnabranchError,
    BrokerFenced,
    ObjectExists,
    StorageFull,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer, PutObject
from anabranch.core.records.objects import Placed, lay_out, object_id
from anabranch.core.records.set_sum import combined, pack_values
from anabranch.core.types import LogId, Nanoseconds, ObjectId

PUT_ATTEMPTS_MAX = 5
BACKOFF_MS = 50
"""Before the second attempt; doubled before each further one."""


class WrittenObject:
    """A closed object and how far it has come."""

    __slots__ = (
        "attempts",
        "bytes",
        "durable",
        "id",
        "number",
        "placed",
        "put_at",
        "rows",
        "senders",
    )

    def __init__(self, rows: list[list[Held]], size: int) -> None:
        assert rows, "an object has a batch at least"
        assert size > 0
        # An object names each log once: several batches of a front lie one behind the other.
        self.rows = sorted(rows, key=_log_of) if _has_fronts(rows) else rows
        self.bytes = size
        self.id = ObjectId(-1)
        """New with every attempt: after a failure something may be there under the old name."""
        self.number = -1
        """Of its commit."""
        self.placed: list[Placed] = []
        self.durable = False
        self.attempts = 0
        self.put_at: Nanoseconds = 0
        """When the last attempt began."""
        self.senders = {
            (held.log, held.entry.producer)
            for row in rows
            for held in row
            if held.entry.producer >= 0 or held.front is not None
        }


class Writing:
    """PUTs in flight and commits in order.

    Of two unanswered commits neither holds a producer that the other holds for the same log: were
    the first lost or overtaken on its way, the second would be refused for a gap that isn't one.
    """

    def __init__(
        self, context: BrokerContext, *, correspondence: Correspondence, cache: ExtentCache
    ) -> None:
        self._broker = context.name
        self._cluster = context.cluster
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._correspondence = correspondence
        self._cache = cache
        self.pacing = Pacing(context.limits)
        self._epoch: int | None = None
        self._sequence = 0
        self._commits = 0
        self._line: deque[WrittenObject] = deque()
        """Not yet sent to be committed, in order."""
        self._unwritten: deque[WrittenObject] = deque()
        """Those of the line whose first PUT hasn't begun."""
        self._flying: dict[ObjectId, WrittenObject] = {}
        self._puts = 0
        self._unanswered: dict[ObjectId, WrittenObject] = {}
        self._senders: set[tuple[LogId, int]] = set()
        self.on_landed: Callable[[], None] = lambda: None
        """Called when another PUT may begin."""
        self.on_committed: Callable[[WrittenObject, Outcome], None] = lambda _object, _outcome: None
        self.on_fenced: Callable[[Refused], None] = lambda _: None
        """Called instead when the metadata know a later life of this context.name."""
        self.on_given_up: Callable[[WrittenObject, AnabranchError], None] = lambda _object, _e: None

    @property
    def idle(self) -> bool:
        """Nothing is being written: an object closed now has nobody to wait for."""
        return self._epoch is not None and not self._puts and not self._unwritten

    @property
    def has_room(self) -> bool:
        """An object closed now is written now."""
        return (
            self._epoch is not None
            and self._puts < self._limits.puts_in_flight_max
            and not self._unwritten
        )

    def begin(self, epoch: int) -> None:
        """The broker's life has its epoch, without which no object has a name."""
        assert self._epoch is None, "a life has one epoch"
        assert epoch > 0
        self._epoch = epoch
        self._put_next()
        self.on_landed()

    def submit(self, open_object: OpenObject) -> None:
        written = WrittenObject(list(open_object.rows.values()), open_object.bytes)
        self._line.append(written)
        self._unwritten.append(written)
        self._put_next()

    def give_name(self) -> ObjectId:
        """The next object's, for one that isn't an append's."""
        assert self._epoch is not None
        name = object_id(self._epoch, self._sequence)
        self._sequence += 1
        return name

    def waiting(self) -> list[WrittenObject]:
        """Those that the metadata haven't heard of."""
        return list(self._line)

    def in_doubt(self) -> list[WrittenObject]:
        """Those that the metadata may have sequenced."""
        return list(self._unanswered.values())

    def landed(self, id: ObjectId) -> None:
        """The object is durable."""
        written = self._flying.pop(id)
        written.durable = True
        self._puts -= 1
        assert self._puts >= 0, "more PUTs ended than began"
        self.pacing.put_took(self._alarms.now - written.put_at)
        self._outbox.usage.wrote([(placed.log, placed.length) for placed in written.placed])
        self._keep(written)
        self._commit_next()
        self._put_next()
        self.on_landed()

    def crashed(self, id: ObjectId, error: AnabranchError) -> None:
        """It may or may not be there: it is written again under another name, for a while."""
        written = self._flying.pop(id)
        self._outbox.counters.put_failures += 1
        if isinstance(error, StorageFull):
            self._give_up(written, error)
        elif written.attempts >= PUT_ATTEMPTS_MAX:
            self._give_up(written, Unavailable("the object store", error.message))
        elif isinstance(error, ObjectExists):
            self._put(written)
        else:
            delay_ms = BACKOFF_MS << (written.attempts - 1)
            self._alarms.after(delay_ms, partial(self._put, written))

    def _put_next(self) -> None:
        limit = self._limits.puts_in_flight_max
        while self._unwritten and self._puts < limit and self._epoch is not None:
            written = self._unwritten.popleft()
            self._puts += 1
            self._put(written)

    def _put(self, written: WrittenObject) -> None:
        assert written.attempts < PUT_ATTEMPTS_MAX, "it was given up"
        assert not written.durable, "it is there already"
        written.attempts += 1
        written.put_at = self._alarms.now
        self.pacing.put(written.put_at)
        written.id = self.give_name()
        self._flying[written.id] = written
        parts, written.placed = _laid_out(self._cluster, written.rows)
        self._outbox.counters.puts += 1
        self._outbox.counters.puts_bytes += written.bytes
        self._outbox.effects.append(PutObject(written.id, parts))

    def _give_up(self, written: WrittenObject, error: AnabranchError) -> None:
        self._puts -= 1
        assert self._puts >= 0, "more PUTs ended than began"
        self._line.remove(written)
        self.on_given_up(written, error)
        self._commit_next()
        self._put_next()
        self.on_landed()

    def _keep(self, written: WrittenObject) -> None:
        """What was just written is what tail readers ask for next."""
        for placed, row in zip(written.placed, written.rows, strict=True):
            batches = _batches(row)
            upto = list(accumulate(each.count for each in _entries(row)))
            key = (written.id, placed.offset, placed.length)
            self._cache.put(key, Extent(batches, upto, placed.length), fresh=True)

    def _commit_next(self) -> None:
        line = self._line
        while line and line[0].durable:
            written = line[0]
            oldest = next(iter(self._unanswered.values()), None)
            if oldest is not None and self._commits - oldest.number >= COMMITS_APART_MAX:
                return
            if not self._senders.isdisjoint(written.senders):
                return
            line.popleft()
            self._commit(written)

    def _commit(self, written: WrittenObject) -> None:
        assert written.durable, "nothing is committed before it is durable (R1)"
        self._unanswered[written.id] = written
        self._senders |= written.senders
        rows: list[Row] = []
        values: list[int] = []
        for placed, row in zip(written.placed, written.rows, strict=True):
            of_row = _values(row)
            values += of_row
            total = combined(of_row)
            rows.append(Row(placed.log, placed.offset, _entries(row), _mark(row), total))
        self._outbox.counters.commits += 1
        written.number = self._commits
        self._commits += 1
        packed = pack_values(values) if len(values) > len(rows) else b""
        command = CommitObject(self._broker, written.id, rows, written.number, packed)
        # No request id: a commit is once-only by its object, which is cheaper to remember.
        self._correspondence.propose(b"", command, partial(self._answered, written), patient=True)

    def _answered(self, written: WrittenObject, outcome: Outcome) -> None:
        if isinstance(outcome, Refused) and outcome.code == BrokerFenced.code:
            self.on_fenced(outcome)
            return
        assert self._unanswered[written.id] is written, "a commit is answered once"
        del self._unanswered[written.id]
        self._senders -= written.senders
        self.on_committed(written, outcome)
        self._commit_next()


def _log_of(row: list[Held]) -> LogId:
    return row[0].log


def _has_fronts(rows: list[list[Held]]) -> bool:
    return any(row[0].front is not None for row in rows)


def _laid_out(cluster: str, rows: list[list[Held]]) -> tuple[list[Buffer], list[Placed]]:
    """The object's parts, and where each row lies."""
    if not _has_fronts(rows):
        return lay_out(cluster, [(row[0].log, _batches(row)) for row in rows])
    logs: dict[LogId, list[Buffer]] = {}
    for row in rows:
        logs.setdefault(row[0].log, []).extend(_batches(row))
    parts, _ = lay_out(cluster, list(logs.items()))
    assert len(logs) <= len(rows)
    placed: list[Placed] = []
    offset = 0
    for row in rows:
        entries = _entries(row)
        length = sum(entry.length for entry in entries)
        count = sum(entry.count for entry in entries)
        placed.append(Placed(row[0].log, offset, length, count))
        offset += length
    return parts, placed


def _batches(row: list[Held]) -> list[Buffer]:
    """The record batches of a row, as they are written."""
    if row[0].front is None:
        return [held.batch for held in row]
    return list(row[0].front.batches)


def _entries(row: list[Held]) -> list[Batch]:
    """What the metadata are told of them."""
    if row[0].front is None:
        return [held.entry for held in row]
    return row[0].front.entries


def _values(row: list[Held]) -> list[int]:
    """What they add to a set sum."""
    return [held.value for held in row] if row[0].front is None else row[0].front.values


def _mark(row: list[Held]) -> FrontMark | None:
    assert row, "a row has a batch at least"
    return None if row[0].front is None else row[0].front.mark
