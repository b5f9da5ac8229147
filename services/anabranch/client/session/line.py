"""A line: the conversation with one server, over as many connections as it takes.

It is dialed, greeted, watched for silence, broken and dialed again. Whoever asks something on a
line is its listener and gets the answers. A connection that breaks takes all its requests with it:
each listener is told, and asks again, on this line or on another.
"""

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from anabranch.client.session.commons import Commons
from anabranch.client.session.dialect import Dialect, Greeting
from anabranch.client.session.effects import Dial, HangUp, Transmit
from anabranch.core.alarms import Alarm
from anabranch.core.errors import AnabranchError, BadFrame, Retry, Unauthenticated
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, Milliseconds, Nanoseconds

Q = TypeVar("Q")
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)

_REQUESTS = (1 << 32) - 1
_FAILURES_OF_ONE_LEAVING = 8
"""A server that is about to stop is left alone as long as one that failed so often."""


class Listener(Protocol[A_contra]):
    """Sent a request."""

    def heard(self, message: A_contra | AnabranchError) -> None:
        """An answer; a subscription gets many. BadFrame if it can't be decoded."""
        ...

    def lost(self, *, sent: bool) -> None:
        """The connection broke: there will be no answer. What was `sent` may have been done."""
        ...


class Owner(Protocol[Q, A]):
    """The session, which has several lines and decides what is said on which."""

    def wants(self, line: "Line[Q, A]") -> bool:
        """Is the server worth another dial when a back-off is over?"""
        ...

    def back_off(self, line: "Line[Q, A]") -> Milliseconds | None:
        """When to consider another dial after a failure; None: when somebody asks on the line."""
        ...

    def idle_ms(self, line: "Line[Q, A]") -> Milliseconds | None:
        """Close the connection when nothing was said on it for so long; None: never."""
        ...

    def mistaken(self, line: "Line[Q, A]", greeting: Greeting) -> str | None:
        """Why this isn't the server that the session wants to talk to."""
        ...

    def rose(self, line: "Line[Q, A]", greeting: Greeting) -> None:
        """The server has let us in."""
        ...

    def fell(self, line: "Line[Q, A]", *, was_up: bool) -> None:
        """The connection broke, or couldn't be opened."""
        ...

    def rejected(self, line: "Line[Q, A]", error: AnabranchError) -> None:
        """The server won't let us in at all."""
        ...


class Line(Generic[Q, A]):
    """To the server at one address. `up` from its welcome until the connection breaks."""

    def __init__(
        self,
        commons: Commons[Q, A, Any],
        number: int,
        address: str,
        owner: Owner[Q, A],
        dialect: Dialect[Q, A] | None = None,
    ) -> None:
        """`dialect`: without one, the session's."""
        self.number = number
        self.address = address
        self.dialect = dialect or commons.dialect
        self.up = False
        self.leaving: str | None = None
        """Set when the server said that it is about to stop: all that is on this line must move."""
        self.resting = True
        """Neither dialed nor dialing, nor waiting for the end of a back-off."""
        self.failures = 0
        """Dials and connections that failed since the last welcome."""
        self._commons = commons
        self._owner = owner
        self._listening: dict[int, Listener[A]] = {}
        self._waiting: dict[int, Q] = {}
        """Requests to be sent once the server has let us in."""
        self._request = 0
        self._dialed = self._connected = False
        self._heard = True
        self._used_at: Nanoseconds = 0
        """When something was asked or answered last, probes included."""
        self._renewable = False
        """The next connection may show another token."""
        self._probed = False
        self._probe = 0
        self._alarm: Alarm | None = None

    def ask(self, listener: Listener[A], message: Q) -> int:
        """Send it now or once the server lets us in; `listener` gets answers until `unheard`."""
        request = self._request = self._request % _REQUESTS + 1
        if request in self._listening:
            request = self._next()
        self._listening[request] = listener
        self._used_at = self._commons.now
        if self.up:
            self._commons.effects.append(Transmit(request, message, self.number))
        else:
            self._waiting[request] = message
            self.dial()
        return request

    def tell(self, message: Q) -> None:
        """Send what has no answer, if the server is there."""
        if self._connected:
            self._commons.effects.append(Transmit(self._next(), message, self.number))

    def unheard(self, request: int) -> None:
        """Drop whatever is still answered to this request."""
        self._listening.pop(request, None)

    def cancel(self, request: int) -> None:
        """The same, and the server may spare itself the answer."""
        known = self._listening.pop(request, None)
        if self._waiting.pop(request, None) is None and known is not None and self.up:
            self.tell(self.dialect.cancel(request))

    def dial(self) -> None:
        """Unless that is happening already, a back-off isn't over, or the client was closed."""
        if self.resting and not self._commons.closed:
            self.resting = False
            self._dial()

    def connected(self, token: str | None = None) -> None:
        commons = self._commons
        self._renewable = token is not None
        self._connected, self._heard, self._probed = True, True, False
        commons.troubles[self.number] = (
            f"{self._shown} took the connection and says nothing: is it the right port?"
        )
        shown = token or commons.settings.token
        self.tell(self.dialect.hello(commons.settings, shown, self.address))
        self._watch()

    def hear(self, replies: Iterable[tuple[int, A | AnabranchError]]) -> None:
        self._heard = True
        self._used_at = self._commons.now
        for request, message in replies:
            if not self._connected:
                return
            listener = self._listening.get(request) if self.up else None
            if listener is not None:
                listener.heard(message)
            elif request == 0 or not self.up:
                self._greeted(message)
            if self.leaving is not None:
                self.failures = _FAILURES_OF_ONE_LEAVING
                self.hang_up(self.leaving)

    def heard(self, message: A | AnabranchError) -> None:
        """The answer to a probe: the server is alive, whatever it says."""
        self.unheard(self._probe)

    def lost(self, *, sent: bool) -> None:
        """The probe's connection broke; the line knows."""

    def hang_up(self, reason: str) -> None:
        self._commons.effects.append(HangUp(self.number))
        self.broken(reason)

    def broken(self, reason: str) -> None:
        if self.resting or not self._dialed:
            return
        was_up = self.up
        self._dialed = self._connected = self.up = False
        self.leaving = None
        self._commons.troubles[self.number] = (
            reason if self.address in reason else f"{self.address}: {reason}"
        )
        self._request = 0
        self.failures += 1
        self._hush()
        listening, self._listening = self._listening, {}
        waiting, self._waiting = self._waiting, {}
        back_off_ms = self._owner.back_off(self)
        self.resting = back_off_ms is None
        for request, listener in listening.items():
            listener.lost(sent=request not in waiting)
        self._owner.fell(self, was_up=was_up)
        if back_off_ms is not None:
            self._alarm = self._commons.alarms.after(back_off_ms, self._again)

    def end(self) -> None:
        """Say and hear nothing more."""
        self.up = self._connected = self._dialed = False
        self._hush()
        self._waiting.clear()
        if not self.resting:
            self.resting = True
            self._commons.effects.append(HangUp(self.number))

    @property
    def _shown(self) -> str:
        return self.address or "the server"

    def _dial(self) -> None:
        self._dialed = True
        self._commons.troubles.setdefault(self.number, f"{self._shown} doesn't answer")
        self._commons.effects.append(Dial(self.number, self.address))

    def _again(self) -> None:
        if self._waiting or self._owner.wants(self):
            self._dial()
        else:
            self.resting = True
            self._commons.troubles.pop(self.number, None)

    def _watch(self) -> None:
        self._hush()
        self._alarm = self._commons.alarms.after(self._commons.settings.silence_ms, self._look)

    def _look(self) -> None:
        """Is the server still there? Only one that owes an answer is expected to speak."""
        if self._is_idle():
            self._part()
            return
        if self._heard or (self.up and not self._listening):
            self._probed = False
        elif not self._probed:
            self._probed = True
            if self.up:
                self._probe = self.ask(self, self.dialect.probe)
        else:
            silence_ms = 2 * self._commons.settings.silence_ms
            self.hang_up(f"the server was silent for {silence_ms} ms")
            return
        self._heard = False
        self._watch()

    def _is_idle(self) -> bool:
        idle_ms = self._owner.idle_ms(self)
        if idle_ms is None or not self.up or self._listening:
            return False
        return self._commons.now - self._used_at >= idle_ms * MS

    def _part(self) -> None:
        """Close a connection that nobody uses; the next who asks has it dialed again."""
        self._commons.effects.append(HangUp(self.number))
        self._dialed = self._connected = self.up = False
        self.resting = True
        self._request = 0
        self._hush()

    def _hush(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _greeted(self, message: A | AnabranchError) -> None:
        """A welcome, or what the server says about the connection as a whole."""
        greeting = None
        if not isinstance(message, (AnabranchError, Refused)):
            greeting = self.dialect.greeting(message)
        if greeting is None or self.up:
            self._rejected(message)
            return
        mistaken = self._owner.mistaken(self, greeting)
        if mistaken is not None:
            self.hang_up(mistaken)
            return
        self.failures = 0
        self.up = True
        commons = self._commons
        commons.troubles.pop(self.number, None)
        commons.refusals.pop(self.number, None)
        commons.opened(greeting)
        waiting, self._waiting = self._waiting, {}
        for request, asked in waiting.items():
            commons.effects.append(Transmit(request, asked, self.number))
        self._owner.rose(self, greeting)

    def _rejected(self, message: A | AnabranchError) -> None:
        error = message.error() if isinstance(message, Refused) else message
        if not isinstance(error, AnabranchError):
            error = BadFrame(f"{type(message).__name__} came where a welcome was expected")
        lapsed = isinstance(error, Unauthenticated) and self._renewable and self._commons.let_in
        if isinstance(error, Retry | BadFrame) or lapsed:
            self.hang_up(error.message)
        else:
            self._owner.rejected(self, error)

    def _next(self) -> int:
        self._request = self._request % _REQUESTS + 1
        while self._request in self._listening:
            self._request = self._request % _REQUESTS + 1
        return self._request
