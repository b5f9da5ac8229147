"""The line to the server as the parts of a session see it: requests by number, alarms, effects.

A part registers what it asked under the number of the request, and hears the answer. A connection
that breaks takes all its requests with it: the parts are told, and ask again on the next one.
"""

from collections.abc import Callable
from typing import Protocol

from anabranch.client.effects import Effect, Roomy, Transmit
from anabranch.client.settings import Settings
from anabranch.core.bolt.alarms import Alarms
from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    ForkBlocked,
    Mistake,
    Overloaded,
    QuotaExceeded,
    ReadBlocked,
    ReceiptPending,
    SequenceGap,
)
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect as Timing
from anabranch.core.types import Milliseconds, Nanoseconds
from anabranch.core.wire.messages import Cancel, ClientMessage, ServerMessage, Welcome

RandomBits = Callable[[int], int]
"""So many random bits as a number: `secrets.randbits`, or a simulation's seeded source."""

BLOCKED = (AppendBlocked, ForkBlocked, ReadBlocked, ReceiptPending)
"""Refused because of an undecided fork: waiting helps only if somebody decides."""

NOTHING_DONE = (*BLOCKED, Mistake, Overloaded, QuotaExceeded, SequenceGap)
"""After these it is certain that what was asked did not happen; after others it isn't."""

HEED_MS_MAX: Milliseconds = 1_000
"""The longest that is waited because a quota says so: by then it may be another."""

_REQUESTS = (1 << 32) - 1
_DOUBLINGS_MAX = 20
_JITTER_BITS = 10


def heed_ms(refusal: AnabranchError) -> Milliseconds:
    """How long it asks to be left alone."""
    asked = refusal.facts.get("retry_after_ms")
    return min(asked, HEED_MS_MAX) if isinstance(asked, int) else 0


class Listener(Protocol):
    """Whoever sent a request."""

    def heard(self, message: ServerMessage | AnabranchError) -> None: ...


class Part(Protocol):
    """Whatever has business with the server that outlives one connection."""

    def ready(self) -> None:
        """There is a connection: ask, or ask again."""
        ...

    def lost(self) -> None:
        """It broke, and every request in it is gone."""
        ...

    def close(self, error: AnabranchError) -> None:
        """There will be no other."""
        ...


class Restless(Protocol):
    def pump(self) -> None: ...


class Line:
    """What all parts of one session share. `up` from Welcome until the connection breaks."""

    def __init__(self, settings: Settings, randbits: RandomBits) -> None:
        limits = Limits()
        self.settings = settings
        self.randbits = randbits
        self.effects: list[Effect] = []
        self.timing: list[Timing] = []
        self.alarms = Alarms(self.timing)
        self.parts: dict[int, Part] = {}
        """Those with business at hand, by key and so in the order in which they came."""
        self.restless: list[Restless] = []
        """Those that may have something to send when this step ends."""
        self.up = False
        self.trouble = "there is no connection yet"
        self.record_bytes_max = limits.record_bytes_max
        self.batch_records_max = limits.batch_records_max
        self.batch_bytes_max = limits.batch_bytes_max
        self.batch_bytes = min(settings.batch_bytes, limits.batch_bytes_max)
        self.pending_bytes = 0
        self.wants_room = False
        self._listening: dict[int, Listener] = {}
        self._request = 0
        self._keys = 0

    @property
    def now(self) -> Nanoseconds:
        return self.alarms.now

    @property
    def owed(self) -> bool:
        """Is an answer expected from the server?"""
        return bool(self._listening)

    def key(self) -> int:
        """A number for whatever needs one of its own."""
        self._keys += 1
        return self._keys

    def ask(self, listener: Listener, message: ClientMessage) -> int:
        """Send, and hear whatever is answered until `unheard`."""
        request = self._number()
        self._listening[request] = listener
        self.effects.append(Transmit(request, message))
        return request

    def tell(self, message: ClientMessage) -> None:
        """Send what has no answer."""
        self.effects.append(Transmit(self._number(), message))

    def listener(self, request: int) -> Listener | None:
        return self._listening.get(request)

    def unheard(self, request: int) -> None:
        """What is still answered to this request is nobody's."""
        self._listening.pop(request, None)

    def cancel(self, request: int) -> None:
        """The same, and the server may spare itself the answer."""
        if self._listening.pop(request, None) and self.up:
            self.tell(Cancel(request))

    def opened(self, welcome: Welcome) -> None:
        self.up = True
        self.record_bytes_max = welcome.record_bytes_max
        self.batch_records_max = welcome.batch_records_max
        self.batch_bytes_max = welcome.batch_bytes_max
        self.batch_bytes = min(self.settings.batch_bytes, welcome.batch_bytes_max)

    def broke(self, reason: str) -> None:
        self.up = False
        self.trouble = reason
        self._listening.clear()
        self._request = 0

    def released(self, size: int) -> None:
        """So many bytes of appends aren't pending any more."""
        self.pending_bytes -= size
        if self.wants_room and self.pending_bytes <= self.settings.pending_bytes_max // 2:
            self.wants_room = False
            self.effects.append(Roomy())

    def pause(self, tries: int) -> Milliseconds:
        """How long to wait after so many failed tries: doubling, and no two clients in step."""
        settings = self.settings
        doubled = settings.backoff_ms << min(tries - 1, _DOUBLINGS_MAX)
        half = min(doubled, settings.backoff_ms_max) // 2
        return half + (half * self.randbits(_JITTER_BITS) >> _JITTER_BITS)

    def _number(self) -> int:
        self._request = self._request % _REQUESTS + 1
        while self._request in self._listening:
            self._request = self._request % _REQUESTS + 1
        return self._request
