"""Appends to one log: gathered into batches, numbered, and sent until it is known what became of
them.

Every batch carries its producer's id and a sequence, and a log takes them in that order, each once
(spec D4). So whatever wasn't answered may be sent again, in order, on the next connection. A batch
leaves the window when it is acknowledged, or refused for good. One whose outcome its caller was
told is unknown stays in it, for those behind it have their place after it.

An error that invites to repeat the append is raised only if the record certainly isn't in the log:
its caller would append it under another number. So whatever was sent and not answered ends as
OutcomeUnknown.
"""

import struct
from collections import deque
from functools import partial

from anabranch.client.session.effects import Settled
from anabranch.client.session.line import (
    LEAVING,
    NOTHING_DONE,
    PUT_OFF,
    UNANSWERED,
    Commons,
    Line,
    heed_ms,
    hold_ms,
)
from anabranch.core.alarms import Alarm
from anabranch.core.bolt.protocol.messages import Append, Appended, ServerMessage
from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    BadFrame,
    OutcomeUnknown,
    Overloaded,
    Retry,
    SequenceGap,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.producers import REQUEST_EPOCH, SEQUENCE_SPACE
from anabranch.core.records.batch import verify
from anabranch.core.records.checksum import crc32c
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds

RECORD_FRAMING_BYTES = 32
"""More than a record's lengths and deltas take, its headers apart; a header's own take less than
12."""

_HEADER_FRAMING_BYTES = 12
_PRODUCER_BITS = 63
_EPOCH_MAX = REQUEST_EPOCH - 1
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43
_CRC = struct.Struct(">I")
_CRC_AT = 17
_SUMMED_FROM = 21
_OPEN_PART = 8
"""A batch that can't be sent stays open to new records for this part of its time."""


def stamp(batch: bytes, producer: int, epoch: int, sequence: int) -> bytes:
    """The same records with another place in a producer's order: only that and the checksum
    change.
    """
    stamped = bytearray(batch)
    _PRODUCER.pack_into(stamped, _PRODUCER_AT, producer, epoch, sequence)
    _CRC.pack_into(stamped, _CRC_AT, crc32c(memoryview(stamped)[_SUMMED_FROM:]))
    return bytes(stamped)


class Pledge:
    """The records of one batch, and what became of them: settled once it has an outcome."""

    __slots__ = (
        "_producer",
        "alarm",
        "batch",
        "count",
        "doubts",
        "outcome",
        "records",
        "refusal",
        "request",
        "sequence",
        "size",
        "timeout_ms",
        "until",
        "wait_ms",
        "waiters",
    )

    def __init__(self, producer: "Producer", timeout_ms: Milliseconds) -> None:
        self._producer = producer
        self.timeout_ms = timeout_ms
        self.wait_ms: Milliseconds | None = None
        """How long it may wait while the log is blocked, negative as the server is set: whoever
        says so is told when it is put off. None: as long as there is time."""
        self.until: Nanoseconds = 0
        """When its caller stops waiting."""
        self.alarm: Alarm | None = None
        self.records: list[Record] = []
        self.count = self.size = 0
        self.batch = b""
        """What is sent; empty until it is."""
        self.sequence = -1
        self.request = 0
        """Number of the request that is unanswered, if one is."""
        self.doubts = 0
        """How many times it was sent without learning what became of that try."""
        self.refusal: AnabranchError | None = None
        self.outcome: Appended | AnabranchError | None = None
        self.waiters: list[object] = []
        """The driver's own."""

    @property
    def in_doubt(self) -> bool:
        """Settled with an error, and may have been appended all the same."""
        return self.doubts > 0 and not isinstance(self.outcome, Appended)

    def heard(self, message: ServerMessage | AnabranchError) -> None:
        self._producer.answered(self, message)


class Producer:
    """One log's appends by one client, in order."""

    def __init__(self, commons: Commons, log: LogId, name: str) -> None:
        self.log: LogId | None = log
        self.name = name
        self.line: Line | None = None
        """None until there is something to send."""
        self._log = log
        self._commons = commons
        self._key = commons.key()
        self._moving = False
        """Nothing is sent until all is answered that is on its way: then it goes elsewhere."""
        self._queue: deque[Pledge] = deque()
        """Not sent yet; the last may still be open."""
        self._open: Pledge | None = None
        self._fresh: list[Pledge] = []
        """Without a deadline yet."""
        self._window: deque[Pledge] = deque()
        """Sent and not done with, in order of their sequences."""
        self._unanswered = 0
        self._halted = False
        """Since a refusal: nothing is sent until all is answered and a pause is over."""
        self._severed = False
        """A batch before those in the window will never be appended under this producer's name."""
        self._alarm: Alarm | None = None
        self._tries = 0
        self._heed_ms: Milliseconds = 0
        """How long the refusals since ask to be left alone."""
        self._restless = False
        self._id, self._epoch = commons.randbits(_PRODUCER_BITS), 0
        self._next = 0

    @property
    def idle(self) -> bool:
        return not self._queue and not self._window

    @property
    def _up(self) -> bool:
        return self.line is not None and self.line.up

    @property
    def _of_line(self) -> Line:
        assert self.line is not None, "nothing is sent before a line was chosen"
        return self.line

    def add(self, record: Record, timeout_ms: Milliseconds) -> Pledge:
        """Take one more record: it is the last of the pledge that is returned."""
        commons = self._commons
        size = record.size
        commons.check_record(size)
        size += RECORD_FRAMING_BYTES + _HEADER_FRAMING_BYTES * len(record.headers)
        self._make_sure_of_room(size)
        pledge = self._open
        if (
            pledge is None
            or pledge.size + size > commons.batch_bytes
            or pledge.timeout_ms != timeout_ms
            or pledge.count == commons.batch_records_max
        ):
            pledge = self._open = self._enqueue(timeout_ms)
        pledge.records.append(record)
        pledge.count += 1
        pledge.size += size
        commons.pending_bytes += size
        return pledge

    def add_batch(
        self, batch: bytes, timeout_ms: Milliseconds, wait_ms: Milliseconds | None = None
    ) -> Pledge:
        """Take a whole batch, its records as they are; only the producer's name in it is
        changed.
        """
        commons = self._commons
        commons.check_batch(len(batch), 0)
        header = verify(batch, "to be appended")
        commons.check_batch(len(batch), header.count)
        self._make_sure_of_room(len(batch))
        pledge = self._enqueue(timeout_ms)
        self._open = None
        pledge.batch, pledge.wait_ms = batch, wait_ms
        pledge.count, pledge.size = header.count, len(batch)
        commons.pending_bytes += pledge.size
        return pledge

    def pump(self) -> None:
        """Send what there is room for; at the end of each step of the session."""
        self._restless = False
        commons = self._commons
        for pledge in self._fresh:
            pledge.until = commons.now + pledge.timeout_ms * MS
            open_ms = pledge.timeout_ms // _OPEN_PART
            pledge.alarm = commons.alarms.after(open_ms, partial(self._seal, pledge))
        self._fresh.clear()
        if self._moving and not self._window:
            self._moving = False
            self.line = commons.placing.place(self.log)
        line = self.line
        if line is not None and line.up and not self._halted and not self._moving:
            while self._queue and len(self._window) < commons.settings.batches_in_flight_max:
                self._launch(self._queue.popleft())
        if self.idle:
            commons.parts.pop(self._key, None)
            if self._halted or self._severed:
                self._abandon()

    def answered(self, pledge: Pledge, message: ServerMessage | AnabranchError) -> None:
        line = self.line
        assert line is not None, "what was sent was sent on a line"
        line.unheard(pledge.request)
        pledge.request = 0
        self._unanswered -= 1
        if isinstance(message, Appended):
            self._window.remove(pledge)
            self._settle(pledge, message)
            self._tries = 0
        else:
            self._refused(pledge, message)
        if self._halted and not self._unanswered:
            self._tries = 1 if self._heed_ms else self._tries + 1
            pause = self._heed_ms + self._commons.pause(self._tries)
            self._heed_ms = 0
            self._alarm = self._commons.alarms.after(pause, self._resume)
        self._stir()

    def ready(self) -> None:
        self._restart()

    def lost(self) -> None:
        self._unanswered = 0
        self._moving = False
        self._hush()
        for pledge in self._window:
            pledge.request = 0

    def move(self, line: Line) -> None:
        """At once if the old line is gone: what it may still do, a log takes once and in order.

        Else when everything is answered that is on its way, so that nothing is sent twice.
        """
        if self._window and self._up:
            self._moving = True
            return
        self.line = line
        self._hush()
        if line.up:
            self._restart()

    def close(self, error: AnabranchError) -> None:
        for pledge in (*self._window, *self._queue):
            self._settle(pledge, error)
        self._queue.clear()
        self._fresh.clear()
        self._open = None
        self._abandon()

    def _seal(self, pledge: Pledge) -> None:
        """No record joins it from now on, so that each has most of the time it was given."""
        if pledge is self._open:
            self._open = None
        rest_ms = pledge.timeout_ms - pledge.timeout_ms // _OPEN_PART
        pledge.alarm = self._commons.alarms.after(rest_ms, partial(self._expire, pledge))

    def _expire(self, pledge: Pledge) -> None:
        """Its caller waits no longer."""
        if pledge.sequence < 0:
            self._queue.remove(pledge)
            reason = "earlier appends are not acknowledged yet"
            error = Unavailable(self.name, reason if self._up else self._commons.trouble)
            self._settle(pledge, error)
        else:
            self._settle(pledge, self._unknown(pledge))
            if all(each.outcome for each in self._window):
                self._abandon()
        self._stir()

    def _make_sure_of_room(self, size: int) -> None:
        commons = self._commons
        limit = commons.settings.pending_bytes_max
        if commons.pending_bytes and commons.pending_bytes + size > limit:
            commons.wants_room = True
            raise Overloaded("appends that are not acknowledged", limit, "pending_bytes_max")

    def _enqueue(self, timeout_ms: Milliseconds) -> Pledge:
        pledge = Pledge(self, timeout_ms)
        self._queue.append(pledge)
        self._fresh.append(pledge)
        self._stir()
        return pledge

    def _stir(self) -> None:
        if not self._restless:
            self._restless = True
            commons = self._commons
            commons.restless.append(self)
            if self._key not in commons.parts:
                commons.parts[self._key] = self
                if commons.spread or not self._up:
                    self.line = commons.placing.place(self.log)

    def _launch(self, pledge: Pledge) -> None:
        if pledge is self._open:
            self._open = None
        pledge.sequence = self._next
        self._next = (self._next + pledge.count) % SEQUENCE_SPACE
        if pledge.batch:
            pledge.batch = stamp(pledge.batch, self._id, self._epoch, pledge.sequence)
        else:
            pledge.batch = encode(
                pledge.records,
                self._commons.settings.codec,
                producer_id=self._id,
                producer_epoch=self._epoch,
                base_sequence=pledge.sequence,
                now=self._commons.now // MS,
            )
            pledge.records = []
        self._window.append(pledge)
        self._send(pledge)

    def _send(self, pledge: Pledge) -> None:
        pledge.doubts += 1
        line, wait_ms = self.line, self._hold_ms(pledge)
        assert line is not None, "nothing is sent before a line was chosen"
        if pledge.wait_ms is not None and pledge.wait_ms >= 0:
            wait_ms = min(wait_ms, pledge.wait_ms)
        pledge.request = line.ask(pledge, Append(self._log, pledge.batch, wait_ms))
        self._unanswered += 1

    def _hold_ms(self, pledge: Pledge) -> Milliseconds:
        """How long a server may hold it if the log is blocked."""
        return hold_ms((pledge.until - self._commons.now) // MS, pledge.timeout_ms)

    def _is_final(self, pledge: Pledge, error: AnabranchError) -> bool:
        """Is the caller told of this refusal, rather than the batch sent again?"""
        if not isinstance(error, Retry):
            return True
        if pledge.wait_ms is not None and isinstance(error, PUT_OFF):
            return True
        # The server held it for as long as it might: no other try would wait for a decision.
        held_no_more = self._hold_ms(pledge) <= self._commons.settings.backoff_ms
        return isinstance(error, AppendBlocked) and not pledge.doubts and held_no_more

    def _refused(self, pledge: Pledge, message: ServerMessage | AnabranchError) -> None:
        self._halted = True
        if isinstance(message, Refused):
            error = message.error()
            pledge.doubts -= isinstance(error, NOTHING_DONE)
        else:
            error = BadFrame(f"an append was answered with {type(message).__name__}")
        pledge.refusal = error
        self._heed_ms = max(self._heed_ms, heed_ms(error))
        if isinstance(error, LEAVING):
            self._of_line.leaving = error.message
        elif isinstance(error, SequenceGap):
            forgotten = error.facts.get("expected") == 0 != pledge.sequence
            if forgotten and pledge is self._window[0]:
                self._severed = True
        elif self._is_final(pledge, error):
            self._window.remove(pledge)
            self._severed = True
            self._settle(pledge, error)

    def _resume(self) -> None:
        """The pause after a refusal is over."""
        if self._up or not self._window:
            self._restart()

    def _hush(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _restart(self) -> None:
        """Send everything in the window again, in order."""
        self._halted = False
        if any(each.outcome and not each.doubts for each in self._window):
            self._severed = True
        if self._severed:
            self._renumber()
        for pledge in self._window:
            self._send(pledge)
        self._stir()

    def _renumber(self) -> None:
        """Those behind a batch that was never appended can't have been appended either, and start
        anew.

        Except where one may have been, with the whole history before it, and then been forgotten:
        under another name it could be appended twice, so its outcome stays unknown.
        """
        held = [each for each in self._window if not each.outcome]
        self._window.clear()
        self._begin_anew()
        for pledge in held:
            if pledge.doubts:
                reason = "the log has forgotten what this client sent before"
                self._settle(pledge, OutcomeUnknown(f"append to {self.name}", reason))
                continue
            pledge.sequence = self._next
            self._next = (self._next + pledge.count) % SEQUENCE_SPACE
            pledge.batch = stamp(pledge.batch, self._id, self._epoch, pledge.sequence)
            self._window.append(pledge)

    def _abandon(self) -> None:
        """Nobody waits for anything in the window: what comes next needn't either."""
        for pledge in self._window:
            self._of_line.unheard(pledge.request)
        self._window.clear()
        self._unanswered = 0
        self._halted = False
        self._hush()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Count from 0 in the next epoch: once the log has heard of it, it takes no older batch."""
        self._epoch += 1
        if self._epoch > _EPOCH_MAX:
            self._id, self._epoch = self._commons.randbits(_PRODUCER_BITS), 0
        self._next = 0
        self._severed = False

    def _unknown(self, pledge: Pledge) -> AnabranchError:
        if not pledge.doubts and pledge.refusal:
            return pledge.refusal
        error = OutcomeUnknown.late(f"append to {self.name}", pledge.timeout_ms)
        error.__cause__ = pledge.refusal
        return error

    def _settle(self, pledge: Pledge, outcome: Appended | AnabranchError) -> None:
        if pledge.outcome is not None:
            return
        if isinstance(outcome, Retry) and pledge.doubts:
            unknown = OutcomeUnknown(f"append to {self.name}", UNANSWERED)
            unknown.__cause__ = outcome
            outcome = unknown
        pledge.outcome = outcome
        commons = self._commons
        if pledge.alarm is not None:
            pledge.alarm.cancel()
        commons.released(pledge.size)
        commons.effects.append(Settled(pledge))
