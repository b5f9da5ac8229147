"""One question, asked until it is answered: every request here may be repeated without harm.

Reads change nothing, and whatever changes something carries a request id, under which the state
machine does it once (spec D4).
"""

from msgspec.structs import replace

from anabranch.client.effects import Answered
from anabranch.client.line import BLOCKED, NOTHING_DONE, Line, heed_ms
from anabranch.core.bolt.alarms import Alarm
from anabranch.core.bolt.commands import Refused
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    DeadlineExceeded,
    Retry,
    Unavailable,
)
from anabranch.core.types import MS, Milliseconds, Nanoseconds
from anabranch.core.wire.messages import ClientMessage, Read, Redeem, ServerMessage


class Call:
    """Has `answer` or `error` once it is finished. Made by a driver, and given with Asked."""

    __slots__ = (
        "_again",
        "_deadline",
        "_doubts",
        "_key",
        "_line",
        "_message",
        "_patience",
        "_refusal",
        "_request",
        "_timeout_ms",
        "_tries",
        "_wait_ms",
        "_what",
        "answer",
        "error",
        "waiter",
    )

    def __init__(
        self, message: ClientMessage, what: str, timeout_ms: Milliseconds, wait_ms: int = 0
    ) -> None:
        """`wait_ms`: how long the answer itself may be waited for, at a tail or for a decision."""
        self.answer: ServerMessage | None = None
        self.error: AnabranchError | None = None
        self.waiter: object = None
        """The driver's own."""
        self._line: Line | None = None
        self._message = message
        self._what = what
        self._timeout_ms = timeout_ms
        self._wait_ms = wait_ms
        self._key = self._request = self._tries = self._doubts = 0
        self._patience: Nanoseconds = 0
        self._deadline: Alarm | None = None
        self._again: Alarm | None = None
        self._refusal: AnabranchError | None = None

    @property
    def finished(self) -> bool:
        return self.answer is not None or self.error is not None

    def begin(self, line: Line) -> None:
        self._line, self._key = line, line.key()
        self._patience = line.now + self._wait_ms * MS
        line.parts[self._key] = self
        self._deadline = line.alarms.after(self._wait_ms + self._timeout_ms, self._expire)
        self.ready()

    def ready(self) -> None:
        line = self._line
        assert line is not None, "a call begins before it is heard of again"
        if not line.up or self._request:
            return
        if self._again is not None:  # a new connection came before the pause was over
            self._again.cancel()
        message = self._message
        if self._wait_ms and isinstance(message, Read | Redeem):
            message = replace(message, wait_ms=max(0, (self._patience - line.now) // MS))
        self._doubts += 1
        self._request = line.ask(self, message)

    def lost(self) -> None:
        self._request = 0

    def heard(self, message: ServerMessage | AnabranchError) -> None:
        assert self._line is not None
        self._line.unheard(self._request)
        self._request = 0
        if isinstance(message, Refused):
            self._refused(self._line, message.error())
        elif isinstance(message, BadFrame):
            self._finish(error=message)
        else:
            assert not isinstance(message, AnabranchError)
            self._finish(answer=message)

    def drop(self) -> None:
        """Its caller has gone."""
        if self._line is not None and not self.finished:
            if self._request:
                self._line.cancel(self._request)
            self._forget()

    def close(self, error: AnabranchError) -> None:
        self._finish(error=error)

    def _refused(self, line: Line, error: AnabranchError) -> None:
        if isinstance(error, NOTHING_DONE):
            self._doubts -= 1
        heed = heed_ms(error)
        self._tries = 1 if heed else self._tries + 1
        pause = heed + line.pause(self._tries)
        hopeless = isinstance(error, BLOCKED) and line.now + pause * MS >= self._patience
        if hopeless or not isinstance(error, Retry):
            self._finish(error=error)
        else:
            self._refusal = error
            self._again = line.alarms.after(pause, self.ready)

    def _expire(self) -> None:
        assert self._line is not None
        if self._doubts:
            error = DeadlineExceeded(self._what, self._timeout_ms)
            error.__cause__ = self._refusal
            self._finish(error=error)
        else:
            self._finish(error=self._refusal or Unavailable("the service", self._line.trouble))

    def _finish(
        self, answer: ServerMessage | None = None, error: AnabranchError | None = None
    ) -> None:
        assert self._line is not None
        self.answer, self.error = answer, error
        if self._request:
            self._line.cancel(self._request)
        self._forget()
        self._line.effects.append(Answered(self))

    def _forget(self) -> None:
        assert self._line is not None
        for alarm in (self._deadline, self._again):
            if alarm is not None:
                alarm.cancel()
        self._line.parts.pop(self._key, None)
