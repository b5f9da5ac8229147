"""One question, asked until it is answered: every request here may be repeated without harm.

Reads change nothing, and whatever changes something carries a request id, under which the state
machine does it once (spec D4).
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from anabranch.client.session.commons import Commons
from anabranch.client.session.effects import Answered
from anabranch.client.session.line import Line
from anabranch.core.alarms import Alarm
from anabranch.core.errors import AnabranchError, DeadlineExceeded, OutcomeUnknown, Retry
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")

UNANSWERED = "it was sent at least once without an answer"
"""Why nobody knows what became of a request whose last try certainly did nothing."""


class Call(ABC, Generic[Q, A, R]):
    """Has `answer` or `error` once it is finished. Made by a driver, and given with Asked.

    An engine's calls say on which line they are asked, which refusals they try again after, and
    what may be said when the time is over.
    """

    __slots__ = (
        "_again",
        "_commons",
        "_deadline",
        "_doubts",
        "_key",
        "_message",
        "_patience",
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
        message: Q,
        what: str,
        timeout_ms: Milliseconds,
        wait_ms: Milliseconds = 0,
        *,
        request_id: str = "",
    ) -> None:
        """`wait_ms`: how long the answer itself may be waited for, at a tail or for a decision.

        `request_id`: the caller's, if the caller can repeat this call under it.
        """
        self.answer: A | None = None
        self.error: AnabranchError | None = None
        self.waiter: object = None
        """The driver's own."""
        self.log: LogId | None = None
        """The log that the call is about, if it is known by its id."""
        self.line: Line[Q, A] | None = None
        self._commons: Commons[Q, A, R] | None = None
        self._message = message
        self._what = what
        self._timeout_ms = timeout_ms
        self._wait_ms = wait_ms
        self._request_id = request_id
        self._key = self._request = self._doubts = 0
        self._tries: int = 0
        self._patience: Nanoseconds = 0
        self._until: Nanoseconds = 0
        self._deadline: Alarm | None = None
        self._again: Alarm | None = None
        self._refusal: AnabranchError | None = None

    @property
    def finished(self) -> bool:
        return self.answer is not None or self.error is not None

    def begin(self, commons: Commons[Q, A, R]) -> None:
        self._commons, self._key = commons, commons.key()
        self._patience = commons.now + self._wait_ms * MS
        self._until = self._patience + self._timeout_ms * MS
        commons.parts[self._key] = self
        self._deadline = commons.alarms.after(self._wait_ms + self._timeout_ms, self._expire)
        self._ask()

    def lost(self, *, sent: bool) -> None:
        """The line broke."""
        self._request = 0

    def heard(self, message: A | AnabranchError) -> None:
        self._of_line.unheard(self._request)
        self._request = 0
        if isinstance(message, Refused):
            self._refused(message.error())
        elif isinstance(message, AnabranchError):
            self._finish(error=message)
        else:
            self._answered(message)

    def drop(self) -> None:
        """Its caller has gone."""
        if not self.finished:
            self._forget()

    def close(self, error: AnabranchError) -> None:
        if not self.finished:
            self._finish(error=error)

    @abstractmethod
    def _ask(self) -> None:
        """Send the message, on the line that is right now."""

    @abstractmethod
    def _refused(self, error: AnabranchError) -> None:
        """Try again, or finish."""

    @abstractmethod
    def _in_vain(self) -> AnabranchError:
        """Why it wasn't done, when the time is over and it certainly wasn't."""

    @abstractmethod
    def _learn(self, answer: A) -> None:
        """The answer may say where logs or shards are served."""

    @abstractmethod
    def _changes(self) -> bool:
        """Does it do anything but read?"""

    def _doubles(self) -> bool:
        """Is it done twice if the same call is made again, with nothing that tells it is the
        same?
        """
        return False

    def _answered(self, answer: A) -> None:
        self._finish(answer=answer)

    @property
    def _of_session(self) -> Commons[Q, A, R]:
        assert self._commons is not None, "a call begins before anything is heard of it"
        return self._commons

    @property
    def _of_line(self) -> Line[Q, A]:
        assert self.line is not None, "a call has a line once it is asked"
        return self.line

    @property
    def _in_doubt(self) -> bool:
        """It may have been done."""
        return self._doubts > 0

    def _expire(self) -> None:
        if self._in_doubt:
            timeout_ms = self._wait_ms + self._timeout_ms
            if self._changes():
                error = DeadlineExceeded(self._what, timeout_ms, self._request_id or None)
            else:
                error = DeadlineExceeded.of_read(self._what, timeout_ms)
            error.__cause__ = self._refusal
            self._finish(error=error)
        else:
            self._finish(error=self._in_vain())

    def _finish(self, answer: A | None = None, error: AnabranchError | None = None) -> None:
        self.answer, self.error = answer, self._certain(error)
        self._forget()
        if answer is not None:
            self._learn(answer)
        self._of_session.effects.append(Answered(self))

    def _certain(self, error: AnabranchError | None) -> AnabranchError | None:
        """What invites to repeat the call must not have it done twice."""
        if not (isinstance(error, Retry) and self._doubts) or self._request_id:
            return error
        if not self._doubles():
            return error
        if isinstance(error, DeadlineExceeded):
            unknown = OutcomeUnknown.late(self._what, self._wait_ms + self._timeout_ms)
            unknown.__cause__ = error.__cause__
        else:
            unknown = OutcomeUnknown(self._what, UNANSWERED)
            unknown.__cause__ = error
        return unknown

    def _forget(self) -> None:
        if self._request and self.line is not None:
            self.line.cancel(self._request)
            self._request = 0
        self._hush()
        if self._deadline is not None:
            self._deadline.cancel()
        self._of_session.parts.pop(self._key, None)

    def _hush(self) -> None:
        if self._again is not None:
            self._again.cancel()
