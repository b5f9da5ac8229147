"""One question, asked until it is answered: every one here may be repeated without harm."""

from collections.abc import Callable

from anabranch.client.belfast.directory import Whereabouts
from anabranch.client.belfast.effects import Answered
from anabranch.client.belfast.line import Commons, Line, unavailable
from anabranch.core.alarms import Alarm
from anabranch.core.belfast.protocol.messages import (
    Directory,
    Elsewhere,
    Locate,
    ToClient,
    ToServer,
)
from anabranch.core.errors import (
    AnabranchError,
    DeadlineExceeded,
    NotPrimary,
    Retry,
    ShardElsewhere,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Milliseconds


class Call:
    """Has `answer` or `error` once it is finished. Made by a driver, and given with Asked."""

    def __init__(self, message: ToServer, what: str, timeout_ms: Milliseconds) -> None:
        self.answer: ToClient | None = None
        self.error: AnabranchError | None = None
        self.waiter: object = None
        """The driver's own."""
        self._message, self._what, self._timeout_ms = message, what, timeout_ms
        self._commons: Commons | None = None
        self._whereabouts: Whereabouts | None = None
        self._forget: Callable[[], None] = lambda: None
        self._line: Line | None = None
        self._request = self._tries = 0
        self._doubt = False
        """It was sent and not answered: it may have been done."""
        self._refusal: AnabranchError | None = None
        self._deadline: Alarm | None = None
        self._again: Alarm | None = None

    @property
    def finished(self) -> bool:
        return self.answer is not None or self.error is not None

    def begin(self, commons: Commons, whereabouts: Whereabouts, forget: Callable[[], None]) -> None:
        self._commons, self._whereabouts, self._forget = commons, whereabouts, forget
        self._deadline = commons.alarms.after(self._timeout_ms, self._expire)
        self._ask(self._node())

    def heard(self, message: ToClient) -> None:
        assert self._line is not None
        self._line.unheard(self._request)
        self._request = 0
        match message:
            case Elsewhere(node):
                self._elsewhere(node)
            case Refused():
                self._refused(message.error())
            case _:
                self.answer = message
                self._finish()

    def lost(self, *, sent: bool) -> None:
        self._request = 0
        self._doubt = self._doubt or sent
        assert self._line is not None
        assert self._commons is not None
        if self._line.refusal is not None and not self._commons.let_in:
            self.error = self._line.refusal
            self._finish()
        else:
            self._retry()

    def drop(self) -> None:
        """Its caller has gone."""
        if not self.finished:
            self._stop()

    def close(self, error: AnabranchError) -> None:
        if not self.finished:
            self.error = error
            self._finish()

    def _node(self) -> str:
        """Every other try it is anybody's turn: the leader that is known may be gone."""
        assert self._whereabouts is not None
        known = self._whereabouts.leader
        anybody = isinstance(self._message, Locate) or not known or self._tries % 2
        return self._whereabouts.any() if anybody else known

    def _ask(self, node: str) -> None:
        assert self._commons is not None
        self._line = self._commons.line(node)
        self._request = self._line.ask(self, self._message)
        if not self._line.up or isinstance(self._message, Locate):
            patience = self._commons.settings.directory_ms
            self._again = self._commons.alarms.after(patience, self._hedge)

    def _hedge(self) -> None:
        """Whoever doesn't even take the connection isn't waited for: another may know as well."""
        assert self._line is not None
        if self._request and (not self._line.up or isinstance(self._message, Locate)):
            self._line.cancel(self._request)
            self._request = 0
            self._retry()

    def _elsewhere(self, node: str) -> None:
        """At once, but not for ever: two that name each other are out of date."""
        assert self._line is not None
        if node and node != self._line.node and not self._tries % 4:
            self._tries += 1
            self._ask(node)
        else:
            self._retry()

    def _refused(self, error: AnabranchError) -> None:
        self._refusal = error
        if isinstance(error, Retry | NotPrimary | ShardElsewhere):
            self._retry()
        else:
            self.error = error
            self._finish()

    def _retry(self) -> None:
        assert self._commons is not None
        if self._again is not None:
            self._again.cancel()
        self._tries += 1
        pause = self._commons.pause(self._tries)
        self._again = self._commons.alarms.after(pause, lambda: self._ask(self._node()))

    def _expire(self) -> None:
        assert self._commons is not None
        asked = self._request != 0 and self._line is not None and self._line.up
        if asked or self._doubt:
            self.error = DeadlineExceeded(self._what, self._timeout_ms)
            self.error.__cause__ = self._refusal
        else:
            self.error = self._refusal or unavailable(self._commons, self._what)
        self._finish()

    def _finish(self) -> None:
        assert self._commons is not None
        assert self._whereabouts is not None
        self._stop()
        if isinstance(self.answer, Directory):
            self._whereabouts.learn(self.answer)
        self._commons.effects.append(Answered(self))

    def _stop(self) -> None:
        if self._request and self._line is not None:
            self._line.cancel(self._request)
            self._request = 0
        for alarm in (self._deadline, self._again):
            if alarm is not None:
                alarm.cancel()
        self._forget()
