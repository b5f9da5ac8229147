"""Appends: taken, gathered, written, committed, answered (AgileLog, 5.2; spec R1, R2).

When does an open object close? When it is full, or at the end of a turn as soon as a PUT may begin
and waiting for company doesn't pay any more, which pacing.py judges. So a lone append goes at once,
and under load an object gathers what arrives during a PUT.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from operator import attrgetter

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.rate_limits import Metering
from anabranch.core.bolt.broker.write_path.commits import Writing, WrittenObject
from anabranch.core.bolt.broker.write_path.open_object import FrontBatch, Held, OpenObject
from anabranch.core.bolt.broker.write_path.parked import Parking
from anabranch.core.bolt.protocol.commands import Batch, Committed, Outcome, Receipt, Sequenced
from anabranch.core.bolt.protocol.fronts import AppendFront, FrontEpoch
from anabranch.core.bolt.protocol.marks import AlreadyAppended, AppendMarked
from anabranch.core.bolt.protocol.messages import Append, Appended
from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    BadRequest,
    BrokerFenced,
    DeadlineExceeded,
    Overloaded,
    PartGap,
    SequenceGap,
    Unavailable,
    UnknownLog,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer, Replies, SetTimer, Token
from anabranch.core.producers import REQUEST_EPOCH, is_request
from anabranch.core.records.batch import check
from anabranch.core.records.digest import UNKNOWN, digest_of_records
from anabranch.core.records.set_sum import batch_value
from anabranch.core.types import NEVER, LogId, Nanoseconds

_count_of = attrgetter("count")
_length_of = attrgetter("length")

BatchResult = int | Receipt | AlreadyAppended | Refused
_GAPS = (SequenceGap.code, PartGap.code)
_FrontKey = tuple[LogId, FrontEpoch, int]
"""Of a front's batch: the log, and the epoch and number under which it is sent again."""


class Appending:
    """Every append that was taken and not yet answered, wherever it is on its way."""

    KEY = "close"

    def __init__(
        self, context: BrokerContext, *, writing: Writing, parking: Parking, metering: Metering
    ) -> None:
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._writing = writing
        self._parking = parking
        self._metering = metering
        self._open = OpenObject(0)
        self._close_at: Nanoseconds = NEVER
        self._serial = 0
        self.held = 0
        self.held_bytes = 0
        self._log_bytes: dict[LogId, int] = {}
        """Of them, those to each log."""
        self._front_batches: dict[_FrontKey, Held] = {}
        """Of them, those of lazy fronts."""
        writing.on_landed = self._close_soon
        writing.on_committed = self._committed
        writing.on_given_up = self._given_up
        parking.on_freed = self._again
        parking.on_refused = self._refuse

    def append(self, token: Token, message: Append) -> None:
        self.append_many((token,), (message,))

    def append_marked(self, token: Token, message: AppendMarked) -> None:
        self.append_many((token,), (message,))

    def append_many(
        self, tokens: Sequence[Token], messages: Sequence[Append | AppendMarked]
    ) -> None:
        """Take each or refuse it, before anything is written."""
        limits, now = self._limits, self._alarms.now
        self._writing.pacing.arrived(now, len(tokens))
        for token, message in zip(tokens, messages, strict=True):
            batch = message.batch
            size = len(batch)
            of_log = self._log_bytes.get(message.log, 0)
            if (
                self.held_bytes + size > limits.queue_bytes_max
                or self.held >= limits.waits_max
                or (of_log and of_log + size > limits.log_queue_bytes_max)
            ):
                self._outbox.refuse(token, self._overload(size))
                continue
            try:
                entry, value = self._checked(message)
            except AnabranchError as error:
                self._outbox.refuse(token, error)
                continue
            exceeded = self._metering.append(message.log, size, entry.count)
            if exceeded is not None:
                self._outbox.refuse(token, exceeded)
                continue
            self._serial = serial = self._serial + 1
            self.held += 1
            self.held_bytes += size
            self._log_bytes[message.log] = of_log + size
            held = Held(serial, token, message.log, batch, entry, message.wait_ms, now, value)
            # Most only join an open object that has room and a time to be closed.
            joined = self._open
            if (
                joined.rows
                and self._close_at != NEVER
                and joined.bytes + size < limits.object_bytes_max
                and message.log not in self._parking.blocked
            ):
                joined.add(held)
            else:
                self._gather(held)

    def append_front(self, token: Token, message: AppendFront) -> None:
        """A batch of a lazy front: one append that is written as several record batches. Its front
        has counted it against the log's quota, and repeats it.
        """
        key = message.log, message.mark.epoch, message.mark.number
        known = self._front_batches.get(key)
        if known is not None:
            # A store that hangs would otherwise have the same bytes queue up here again and again.
            repeated = Unavailable(f"batch {message.mark.number} of a front", "it was sent again")
            self._outbox.refuse(known.token, repeated)
            known.token = token
            return
        try:
            checked = [self._checked_batch(batch) for batch in message.batches]
            if not checked:
                raise BadRequest("a batch of a front", "it has no record batches")
        except AnabranchError as error:
            self._outbox.refuse(token, error)
            return
        entries, values = [entry for entry, _ in checked], [value for _, value in checked]
        size, count = sum(map(_length_of, entries)), sum(map(_count_of, entries))
        if self.held_bytes + size > self._limits.queue_bytes_max:
            self._outbox.refuse(token, self._overload(size))
            return
        self._writing.pacing.arrived(self._alarms.now, 1)
        self._serial += 1
        self.held += 1
        self.held_bytes += size
        self._log_bytes[message.log] = self._log_bytes.get(message.log, 0) + size
        whole = Batch(size, count)
        front = FrontBatch(message.mark, message.batches, entries, values)
        now = self._alarms.now
        held = Held(self._serial, token, message.log, b"", whole, 0, now, 0, front)
        self._front_batches[key] = held
        self._gather(held)

    def turn_ended(self) -> None:
        """The timer has fired: nothing more comes in this turn, or the linger is over."""
        self._close_at = NEVER
        if not self._open.rows:
            return
        if not self._writing.has_room:
            return
        pacing, now = self._writing.pacing, self._alarms.now
        close_at = pacing.close_at(now, self._open.opened_at, self._writing.idle)
        if now >= close_at:
            self._close()
        else:
            self._close_by(close_at)

    def drop(self, token: Token) -> None:
        """A parked append needn't happen if nobody waits for it; any other is on its way."""
        held = self._parking.drop(token)
        if held is not None:
            self._let_go(held)

    def let_parked_go(self, why: AnabranchError) -> None:
        """Those that wait for a decision are nowhere yet: let them wait elsewhere."""
        refused = Refused.of(why)
        for held in list(self._parking.held()):
            self._parking.drop(held.token)
            self._refuse(held, refused)

    def stop(self, fenced: BrokerFenced) -> None:
        """Nothing of this life can be committed any more; what was sent may have been."""
        unknown = DeadlineExceeded("the append", self._limits.propose_retry_ms)
        for written in self._writing.in_doubt():
            self._refuse_object(written, Refused.of(unknown))
        for held in list(self._at_hand()):
            self._outbox.refuse(held.token, fenced)

    def _overload(self, size: int) -> Overloaded:
        limits = self._limits
        if self.held >= limits.waits_max:
            return Overloaded("appends not yet acknowledged", limits.waits_max, "waits_max")
        if self.held_bytes + size > limits.queue_bytes_max:
            limit = limits.queue_bytes_max
            return Overloaded("bytes of appends not yet acknowledged", limit, "queue_bytes_max")
        limit = limits.log_queue_bytes_max
        what = "bytes of appends to one log not yet acknowledged"
        return Overloaded(what, limit, "log_queue_bytes_max")

    def _checked(self, message: Append | AppendMarked) -> tuple[Batch, int]:
        """What the metadata will be told of it, and what it adds to a set sum, if it may enter a
        log.
        """
        if not 0 <= message.log < NEVER:
            raise UnknownLog(str(message.log))
        if type(message) is AppendMarked:
            return self._checked_marked(message)
        return self._checked_batch(message.batch)

    def _checked_marked(self, message: AppendMarked) -> tuple[Batch, int]:
        """In the place of a producer stands the part, whose batches are kept in order like a
        producer's.
        """
        batch, mark = message.batch, message.mark
        header = check(batch, self._limits, "of this append")
        digest = digest_of_records(batch, header)
        entry = Batch(len(batch), header.count, mark.sender, 0, mark.batch, digest, mark)
        return entry, batch_value(header.crc)

    def _checked_batch(self, batch: Buffer) -> tuple[Batch, int]:
        header = check(batch, self._limits, "of this append")
        producer, epoch = header.producer_id, header.producer_epoch
        named = epoch == REQUEST_EPOCH and is_request(producer, epoch, header.base_sequence)
        entry = Batch(
            len(batch),
            header.count,
            producer,
            epoch,
            header.base_sequence,
            digest_of_records(batch, header) if named else UNKNOWN,
        )
        return entry, batch_value(header.crc)

    def _gather(self, held: Held) -> None:
        if held.log in self._parking.blocked:
            self._park(held)
            return
        full, size = self._limits.object_bytes_max, held.entry.length
        if self._open.bytes + size > full and self._open.rows:
            self._close()
        if not self._open.rows:
            self._open.opened_at = self._alarms.now
        if held.serial == self._serial:
            self._open.add(held)
        else:
            self._open.put_back(held)
        if self._open.bytes >= full:
            self._close()
        elif self._close_at == NEVER:
            self._close_by(self._alarms.now)

    def _close_soon(self) -> None:
        """At the end of this turn, so that what arrived together is written together."""
        if self._open.rows:
            self._close_by(self._alarms.now)

    def _close_by(self, at: Nanoseconds) -> None:
        assert self._open.rows, "there is nothing to close"
        if at < self._close_at:
            self._close_at = at
            self._outbox.effects.append(SetTimer(self.KEY, at))

    def _close(self) -> None:
        closed, self._open = self._open, OpenObject(self._alarms.now)
        assert closed.rows, "an object has a batch at least"
        self._writing.submit(closed)

    def _park(self, held: Held) -> None:
        self._outbox.counters.parked += 1
        self._parking.park(held)

    def _again(self, freed: list[Held]) -> None:
        for held in freed:
            self._gather(held)

    def _committed(self, written: WrittenObject, outcome: Outcome) -> None:
        if isinstance(outcome, Refused):
            self._refuse_object(written, outcome)
            return
        assert isinstance(outcome, Committed), "a commit is answered as one"
        self._metering.told((row[0].log for row in written.rows), outcome.quotas)
        refused: list[tuple[Held, Refused]] = []
        for row, result in zip(written.rows, outcome.rows, strict=True):
            if type(result) is int:
                self._acknowledge(row, result)
            else:
                refused.extend(self._results(row, result))
        if refused:
            self._refused(refused)

    def _acknowledge(self, row: list[Held], position: int) -> None:
        """The plain case, and the hot one: a row sequenced whole, at positions that may be told."""
        entries = [held.entry for held in row]
        positions = [*accumulate(map(_count_of, entries), initial=position)]
        end = positions.pop()
        tokens = [held.token for held in row]
        self._outbox.effects.append(Replies(tokens, [*map(Appended, positions)]))
        self._forget_front(row[0])
        self._count(row[0].log, len(row), sum(map(_length_of, entries)), end - position)

    def _results(
        self, row: list[Held], result: int | Receipt | Sequenced | Refused
    ) -> Iterator[tuple[Held, Refused]]:
        """Answer what was sequenced of this row; yield what wasn't."""
        for held, each in zip(row, _batch_results(row, result), strict=True):
            if isinstance(each, Refused):
                yield held, each
                continue
            if isinstance(each, AlreadyAppended):
                self._outbox.counters.appends_repeated += 1
                self._outbox.reply(held.token, each)
                self._release(held.log, 1, held.entry.length)
                continue
            receipt = each if isinstance(each, Receipt) else None
            position = None if isinstance(each, Receipt) else each
            self._outbox.reply(held.token, Appended(position, receipt))
            self._forget_front(held)
            self._count(held.log, 1, held.entry.length, held.entry.count)

    def _count(self, log: LogId, batches: int, size: int, records: int) -> None:
        self._release(log, batches, size)
        counters = self._outbox.counters
        counters.appends += batches
        counters.appends_bytes += size
        counters.appends_records += records

    def _refused(self, refused: list[tuple[Held, Refused]]) -> None:
        """Blocked ones wait. One whose producer has earlier ones waiting goes after them."""
        for held, why in refused:
            if why.code == AppendBlocked.code:
                self._parking.block(held.log, why)
                self._park(held)
        if all(why.code == AppendBlocked.code for _, why in refused):
            return
        earliest = self._earliest()
        for held, why in refused:
            if why.code == AppendBlocked.code:
                continue
            sender = (held.log, held.entry.producer)
            if why.code in _GAPS and earliest.get(sender, NEVER) < held.serial:
                self._gather(held)
            else:
                self._refuse(held, why)

    def _earliest(self) -> dict[tuple[LogId, int], int]:
        """The first append at hand of each producer of a log.

        Commits that are out needn't be asked: for one producer and log only one is out at a time,
        and that is the one just answered.
        """
        found: dict[tuple[LogId, int], int] = {}
        for held in self._at_hand():
            sender = (held.log, held.entry.producer)
            found[sender] = min(held.serial, found.get(sender, NEVER))
        return found

    def _at_hand(self) -> Iterator[Held]:
        """Those that the metadata haven't heard of, or have sent back."""
        rows = chain(
            self._open.rows.values(),
            chain.from_iterable(written.rows for written in self._writing.waiting()),
        )
        yield from chain.from_iterable(rows)
        yield from self._parking.held()

    def _given_up(self, written: WrittenObject, error: AnabranchError) -> None:
        self._refuse_object(written, Refused.of(error))

    def _refuse_object(self, written: WrittenObject, why: Refused) -> None:
        for held in chain.from_iterable(written.rows):
            self._refuse(held, why)

    def _refuse(self, held: Held, why: Refused) -> None:
        self._let_go(held)
        self._outbox.refuse(held.token, why)

    def _let_go(self, held: Held) -> None:
        self._forget_front(held)
        self._release(held.log, 1, held.entry.length)

    def _forget_front(self, held: Held) -> None:
        """A row of a front is one batch, which is answered."""
        if held.front is not None:
            mark = held.front.mark
            del self._front_batches[held.log, mark.epoch, mark.number]

    def _release(self, log: LogId, batches: int, size: int) -> None:
        self.held -= batches
        self.held_bytes -= size
        assert self.held >= 0 <= self.held_bytes, "more was answered than was taken"
        self._log_bytes[log] -= size
        if not self._log_bytes[log]:
            del self._log_bytes[log]


def _batch_results(
    row: list[Held], result: int | Receipt | Sequenced | Refused
) -> Iterator[BatchResult]:
    """A row's result, batch by batch."""
    assert row, "a row has a batch at least"
    match result:
        case Sequenced(batches):
            yield from batches
        case Refused():
            for _ in row:
                yield result
        case Receipt(log, generation, provisional):
            for held in row:
                yield Receipt(log, generation, provisional)
                provisional += held.entry.count
        case int(position):
            for held in row:
                yield position
                position += held.entry.count
