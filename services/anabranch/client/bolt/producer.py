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

from collections import deque
from functools import partial

from anabranch.client.bolt.refusals import LEAVING, NOTHING_DONE, PUT_OFF, hold_ms
from anabranch.client.bolt.routing import BoltCommons, BrokerLine
from anabranch.client.session.call import UNANSWERED
from anabranch.client.session.commons import heed_ms
from anabranch.client.session.delivery import Delivery
from anabranch.client.session.effects import Settled
from anabranch.client.session.pledge import Numbers, Promise
from anabranch.core.alarms import Alarm
from anabranch.core.bolt.protocol.messages import Append, Appended, ClientMessage, ServerMessage
from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    BadFrame,
    OutcomeUnknown,
    Retry,
    SequenceGap,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.records.batch import verify
from anabranch.core.records.record import Record
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds

_OPEN_PART = 8
"""A batch that can't be sent stays open to new records for this part of its time."""


class Pledge(Promise[Appended]):
    """The records of one batch to one log."""

    __slots__ = ("_producer", "delivery", "until", "wait_ms")

    def __init__(self, producer: "Producer", timeout_ms: Milliseconds) -> None:
        super().__init__(timeout_ms)
        self._producer = producer
        self.delivery: Delivery[ClientMessage, ServerMessage] = Delivery(self)
        self.wait_ms: Milliseconds | None = None
        """How long it may wait while the log is blocked. Negative: the server's default. None:
        until the deadline. A caller who gives one is told when the append is put off."""
        self.until: Nanoseconds = 0
        """When its caller stops waiting."""

    @property
    def in_doubt(self) -> bool:
        """Settled with an error, and may have been appended all the same."""
        return self.doubts > 0 and not isinstance(self.outcome, Appended)

    def answered(self, message: ServerMessage | AnabranchError) -> None:
        self._producer.answered(self, message)

    def lost(self, *, sent: bool) -> None:
        """The session tells the producer, once for all that was on its line."""


class Producer:
    """One log's appends by one client, in order."""

    def __init__(self, commons: BoltCommons, log: LogId, name: str) -> None:
        self.log: LogId | None = log
        self.name = name
        self.line: BrokerLine | None = None
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
        self._numbers = Numbers(commons.randbits)

    @property
    def idle(self) -> bool:
        return not self._queue and not self._window

    @property
    def _up(self) -> bool:
        return self.line is not None and self.line.up

    @property
    def _of_line(self) -> BrokerLine:
        assert self.line is not None, "nothing is sent before a line was chosen"
        return self.line

    def add(self, record: Record, timeout_ms: Milliseconds) -> Pledge:
        """Take one more record: it is the last of the pledge that is returned."""
        commons = self._commons
        size = commons.admit(record)
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
        commons.check_room(len(batch))
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
            self.line = commons.router.place(self.log)
        line = self.line
        if line is not None and line.up and not self._halted and not self._moving:
            while self._queue and len(self._window) < commons.settings.batches_in_flight_max:
                self._launch(self._queue.popleft())
        if self.idle:
            commons.parts.pop(self._key, None)
            if self._halted or self._severed:
                self._abandon()

    def answered(self, pledge: Pledge, message: ServerMessage | AnabranchError) -> None:
        self._unanswered -= 1
        assert self._unanswered >= 0, "each request has one answer"
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

    def lost(self, *, sent: bool) -> None:
        """The line broke: everything in the window is sent again once there is another."""
        self._unanswered = 0
        self._moving = False
        self._hush()

    def move(self, line: BrokerLine) -> None:
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
            commons.router.restless.append(self)
            if self._key not in commons.parts:
                commons.parts[self._key] = self
                if commons.router.spread or not self._up:
                    self.line = commons.router.place(self.log)

    def _launch(self, pledge: Pledge) -> None:
        if pledge is self._open:
            self._open = None
        self._number(pledge)
        self._window.append(pledge)
        self._send(pledge)

    def _number(self, pledge: Pledge) -> None:
        commons = self._commons
        self._numbers.stamp(pledge, commons.settings.codec, commons.now // MS)

    def _send(self, pledge: Pledge) -> None:
        pledge.doubts += 1
        wait_ms = self._hold_ms(pledge)
        if pledge.wait_ms is not None and pledge.wait_ms >= 0:
            wait_ms = min(wait_ms, pledge.wait_ms)
        pledge.delivery.send(Append(self._log, pledge.batch, wait_ms), self._of_line)
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
        pledge.refusal = self._commons.retried = error
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
            self._number(pledge)
            self._window.append(pledge)

    def _abandon(self) -> None:
        """Nobody waits for anything in the window: what comes next needn't either."""
        for pledge in self._window:
            pledge.delivery.stop()
        self._window.clear()
        self._unanswered = 0
        self._halted = False
        self._hush()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Count from 0 in the next epoch: once the log has heard of it, it takes no older batch."""
        self._numbers.begin_epoch()
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
