"""The conversation with one broker: dialed, greeted, watched for silence, broken, dialed again."""

from collections.abc import Iterable
from typing import Protocol

from anabranch.client.session.effects import Dial, HangUp
from anabranch.client.session.line import Commons, Line
from anabranch.core.alarms import Alarm
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    Hello,
    Ping,
    ServerMessage,
    Welcome,
)
from anabranch.core.errors import AnabranchError, BadFrame, Retry, Unauthenticated
from anabranch.core.errors.refused import Refused

Replies = Iterable[tuple[int, ServerMessage | AnabranchError]]

_TRIES_OF_ONE_LEAVING = 8
"""A broker that is about to end is left alone as long as one that failed so often."""


class Owner(Protocol):
    """Who has several conversations, and decides what is said in which."""

    @property
    def let_in(self) -> bool:
        """Has any broker ever welcomed us?"""
        ...

    def wants(self, conversation: "Conversation") -> bool:
        """Is it worth dialing again?"""
        ...

    def mistaken(self, conversation: "Conversation", welcome: Welcome) -> str | None:
        """Why this isn't whom we want to talk to."""
        ...

    def rose(self, conversation: "Conversation", welcome: Welcome) -> None: ...

    def fell(self, conversation: "Conversation", *, was_up: bool) -> None: ...

    def rejected(self, conversation: "Conversation", error: AnabranchError) -> None:
        """The broker won't have us at all."""
        ...


class Conversation:
    """With the broker at one address, over as many connections as it takes."""

    def __init__(self, commons: Commons, number: int, address: str, owner: Owner) -> None:
        self.address = address
        self.line = Line(commons, number)
        self.resting = True
        """Neither dialed nor dialing, nor waiting to dial again."""
        self.failures = 0
        """Dials and connections that came to nothing, since the last welcome."""
        self._commons = commons
        self._owner = owner
        self._dialed = self._connected = False
        self._heard = True
        self._renewable = False
        """The next connection may show another token."""
        self._probed = False
        self._probe = 0
        self._alarm: Alarm | None = None

    def dial(self) -> None:
        """If that isn't happening already."""
        if self.resting:
            self.resting = False
            self._dial()

    def connected(self, token: str | None = None) -> None:
        commons = self._commons
        self._renewable = token is not None
        self._connected, self._heard, self._probed = True, True, False
        commons.troubles[self.line.number] = (
            f"{self.address or 'the server'} took the connection and says nothing: is it the right "
            "port?"
        )
        settings = commons.settings
        self.line.tell(
            Hello(PROTOCOL_VERSION, settings.client, token or settings.token, settings.traceparent)
        )
        self._watch()

    def hear(self, replies: Replies) -> None:
        line = self.line
        self._heard = True
        for request, message in replies:
            if not self._connected:
                return
            listener = line.listener(request)
            if listener is not None:
                listener.heard(message)
            elif isinstance(message, Welcome) and not line.up:
                self._welcomed(message)
            elif request == 0 or not line.up:
                self._rejected(message)
            if line.leaving is not None:
                self.failures = _TRIES_OF_ONE_LEAVING
                self.hang_up(line.leaving)

    def heard(self, message: ServerMessage | AnabranchError) -> None:
        """The sign of life that was asked for: that it came is all that it says."""
        self.line.unheard(self._probe)

    def hang_up(self, reason: str) -> None:
        self._commons.effects.append(HangUp(self.line.number))
        self.broken(reason)

    def broken(self, reason: str) -> None:
        if self.resting or not self._dialed:
            return
        line, commons = self.line, self._commons
        self._dialed = self._connected = False
        was_up = line.up
        line.broke(reason if self.address in reason else f"{self.address}: {reason}")
        self.failures += 1
        self._owner.fell(self, was_up=was_up)
        self._hush()
        self._alarm = commons.alarms.after(commons.pause(self.failures), self._again)

    def end(self) -> None:
        """Nothing more is said, and nothing heard."""
        self.line.up = self._connected = self._dialed = False
        self._hush()
        if not self.resting:
            self.resting = True
            self._commons.effects.append(HangUp(self.line.number))

    def _dial(self) -> None:
        self._dialed = True
        self._commons.troubles.setdefault(
            self.line.number, f"{self.address or 'the server'} doesn't answer"
        )
        self._commons.effects.append(Dial(self.line.number, self.address))

    def _again(self) -> None:
        if self._owner.wants(self):
            self._dial()
        else:
            self.resting = True
            self._commons.troubles.pop(self.line.number, None)

    def _watch(self) -> None:
        self._hush()
        self._alarm = self._commons.alarms.after(self._commons.settings.silence_ms, self._look)

    def _look(self) -> None:
        """Is the server still there? Only one that owes an answer is expected to speak."""
        line = self.line
        if self._heard or (line.up and not line.owed):
            self._probed = False
        elif not self._probed:
            self._probed = True
            if line.up:
                self._probe = line.ask(self, Ping())
        else:
            silence_ms = 2 * self._commons.settings.silence_ms
            self.hang_up(f"the server was silent for {silence_ms} ms")
            return
        self._heard = False
        self._watch()

    def _hush(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _welcomed(self, welcome: Welcome) -> None:
        mistaken = self._owner.mistaken(self, welcome)
        if mistaken is not None:
            self.hang_up(mistaken)
            return
        self.failures = 0
        self.line.opened()
        self._owner.rose(self, welcome)

    def _rejected(self, message: ServerMessage | AnabranchError) -> None:
        """What the server says of the connection as a whole, or instead of a welcome."""
        error = message.error() if isinstance(message, Refused) else message
        if not isinstance(error, AnabranchError):
            error = BadFrame(f"{type(message).__name__} came where a welcome was expected")
        lapsed = isinstance(error, Unauthenticated) and self._renewable and self._owner.let_in
        if isinstance(error, Retry | BadFrame) or lapsed:
            self.hang_up(error.message)
        else:
            self._owner.rejected(self, error)
