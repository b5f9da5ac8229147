"""One question, asked until it is answered: every request here may be repeated without harm.

Reads change nothing, and whatever changes something carries a request id, under which the state
machine does it once (spec D4).
"""

from msgspec.structs import replace

from anabranch.client.session.effects import Answered
from anabranch.client.session.line import (
    BLOCKED,
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
from anabranch.core.bolt.protocol.commands import Description, Receipt
from anabranch.core.bolt.protocol.messages import (
    Append,
    ClientMessage,
    Compare,
    CreateLog,
    Describe,
    DrainBroker,
    ForgetBroker,
    Fork,
    Guarded,
    Hello,
    ListBrokers,
    ListLogs,
    Once,
    Ping,
    Read,
    Redeem,
    ServerMessage,
    Survey,
    doubles,
)
from anabranch.core.bolt.protocol.queries import Pool
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    DeadlineExceeded,
    OutcomeUnknown,
    Retry,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds
from anabranch.core.wire.session import Cancel, Credit


class Call:
    """Has `answer` or `error` once it is finished. Made by a driver, and given with Asked."""

    __slots__ = (
        "_again",
        "_commons",
        "_deadline",
        "_doubts",
        "_key",
        "_message",
        "_patience",
        "_patient",
        "_refusal",
        "_request",
        "_request_id",
        "_timeout_ms",
        "_tries",
        "_until",
        "_wait_ms",
        "_what",
        "answer",
        "error",
        "line",
        "log",
        "waiter",
    )

    def __init__(
        self,
        message: ClientMessage,
        what: str,
        timeout_ms: Milliseconds,
        wait_ms: int = 0,
        *,
        patient: bool = True,
        request_id: str = "",
    ) -> None:
        """`wait_ms`: how long the answer itself may be waited for, at a tail or for a decision.

        One that isn't `patient` takes being put off for its answer. `request_id`: the caller's, if
        the caller can repeat this call under it.
        """
        self.answer: ServerMessage | None = None
        self.error: AnabranchError | None = None
        self.waiter: object = None
        """The driver's own."""
        self.log = subject(message)
        self.line: Line | None = None
        self._commons: Commons | None = None
        self._message = message
        self._what = what
        self._timeout_ms = timeout_ms
        self._wait_ms = wait_ms
        self._patient = patient
        self._request_id = request_id
        self._key = self._request = self._tries = self._doubts = 0
        self._patience: Nanoseconds = 0
        self._until: Nanoseconds = 0
        self._deadline: Alarm | None = None
        self._again: Alarm | None = None
        self._refusal: AnabranchError | None = None

    @property
    def finished(self) -> bool:
        return self.answer is not None or self.error is not None

    def begin(self, commons: Commons) -> None:
        self._commons, self._key = commons, commons.key()
        guard = commons.settings.guard
        if guard is not None and isinstance(self._message, Once):
            self._message = Guarded(*guard, self._message)
        self._patience = commons.now + self._wait_ms * MS
        self._until = self._patience + self._timeout_ms * MS
        commons.parts[self._key] = self
        self._deadline = commons.alarms.after(self._wait_ms + self._timeout_ms, self._expire)
        self.line = commons.placing.place(self.log)
        self.ready()

    def ready(self) -> None:
        line, commons = self.line, self._commons
        assert line is not None, "a call begins before it is heard of again"
        assert commons is not None, "a call begins before it is heard of again"
        if not line.up or self._request:
            return
        if self._again is not None:  # a new connection came before the pause was over
            self._again.cancel()
        message = self._message
        if self._wait_ms and isinstance(message, Read | Redeem):
            message = replace(message, wait_ms=max(0, (self._patience - commons.now) // MS))
        elif isinstance(message, Append):
            left_ms = (self._until - commons.now) // MS
            held_ms = hold_ms(left_ms, self._wait_ms + self._timeout_ms)
            given_ms = message.wait_ms
            message = replace(message, wait_ms=held_ms if given_ms < 0 else min(given_ms, held_ms))
        self._doubts += 1
        self._request = line.ask(self, message)

    def lost(self) -> None:
        self._request = 0

    def move(self, line: Line) -> None:
        """An answer that is on its way is waited for."""
        if not self._request:
            self.line = line
            self.ready()

    def heard(self, message: ServerMessage | AnabranchError) -> None:
        assert self.line is not None
        self.line.unheard(self._request)
        self._request = 0
        if isinstance(message, Refused):
            self._refused(message.error())
        elif isinstance(message, BadFrame):
            self._finish(error=message)
        else:
            assert not isinstance(message, AnabranchError)
            self._finish(answer=message)

    def drop(self) -> None:
        """Its caller has gone."""
        if self.line is not None and not self.finished:
            if self._request:
                self.line.cancel(self._request)
            self._forget()

    def close(self, error: AnabranchError) -> None:
        self._finish(error=error)

    def _refused(self, error: AnabranchError) -> None:
        commons, line = self._commons, self.line
        assert commons is not None
        assert line is not None
        if isinstance(error, NOTHING_DONE):
            self._doubts -= 1
        if isinstance(error, LEAVING):
            self._refusal = error
            line.leaving = error.message
            return
        heed = heed_ms(error)
        self._tries = 1 if heed else self._tries + 1
        pause = heed + commons.pause(self._tries)
        hopeless = isinstance(error, BLOCKED if self._patient else PUT_OFF) and (
            commons.now + pause * MS >= self._patience
        )
        if hopeless or not isinstance(error, Retry):
            self._finish(error=error)
        else:
            self._refusal = error
            self._again = commons.alarms.after(pause, self.ready)

    def _expire(self) -> None:
        assert self._commons is not None
        if self._doubts:
            timeout_ms = self._wait_ms + self._timeout_ms
            error = DeadlineExceeded(self._what, timeout_ms, self._request_id or None)
            error.__cause__ = self._refusal
            self._finish(error=error)
        else:
            self._finish(error=self._refusal or Unavailable("the service", self._commons.trouble))

    def _finish(
        self, answer: ServerMessage | None = None, error: AnabranchError | None = None
    ) -> None:
        assert self._commons is not None
        self.answer, self.error = answer, self._certain(error)
        if self._request and self.line is not None:
            self.line.cancel(self._request)
        self._forget()
        if isinstance(answer, Description | Pool):
            self._commons.placing.learn(answer)
        self._commons.effects.append(Answered(self))

    def _certain(self, error: AnabranchError | None) -> AnabranchError | None:
        """What invites to repeat the call must not have it done twice."""
        if not (isinstance(error, Retry) and self._doubts) or self._request_id:
            return error
        if not doubles(self._message):
            return error
        if isinstance(error, DeadlineExceeded):
            unknown = OutcomeUnknown.late(self._what, self._wait_ms + self._timeout_ms)
            unknown.__cause__ = error.__cause__
        else:
            unknown = OutcomeUnknown(self._what, UNANSWERED)
            unknown.__cause__ = error
        return unknown

    def _forget(self) -> None:
        assert self._commons is not None
        for alarm in (self._deadline, self._again):
            if alarm is not None:
                alarm.cancel()
        self._commons.parts.pop(self._key, None)


def subject(message: ClientMessage) -> LogId | None:
    """The log that it is about, if that is known by its id."""
    match message:
        case Fork(parent=log) | Compare(a=log) | Redeem(Receipt(log)):
            return log
        case Describe(log):
            return None if isinstance(log, str) else log
        case (
            CreateLog()
            | ListLogs()
            | ListBrokers()
            | Ping()
            | Survey()
            | Hello()
            | Credit()
            | Cancel()
            | DrainBroker()
            | ForgetBroker()
        ):
            return None
        case Guarded(message=guarded):
            return subject(guarded)
        case _:
            return message.log
