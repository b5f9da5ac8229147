"""What the parts of a session share, and the lines on which they talk to brokers.

A part registers what it asked on a line under the number of the request, and hears the answer. A
connection that breaks takes all its requests with it: the parts are told, and ask again, on the
next connection of this line or on another line.
"""

from collections.abc import Callable
from typing import Protocol

from anabranch.client.session.effects import Effect, Roomy, Transmit
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarms
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage, Welcome
from anabranch.core.bolt.protocol.queries import Pool
from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    BatchTooLarge,
    BrokerDraining,
    BrokerFenced,
    ForkBlocked,
    Mistake,
    NoSpareBroker,
    Overloaded,
    QuotaExceeded,
    ReadBlocked,
    ReceiptPending,
    RecordTooLarge,
    SequenceGap,
)
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect as Timing
from anabranch.core.types import LogId, Milliseconds, Nanoseconds
from anabranch.core.wire.session import Cancel

RandomBits = Callable[[int], int]
"""So many random bits as a number: `secrets.randbits`, or a simulation's seeded source."""

BLOCKED = (AppendBlocked, ForkBlocked, NoSpareBroker, ReadBlocked, ReceiptPending)
"""Refused until somebody else does something: decides about a fork, adds a broker."""

PUT_OFF = (*BLOCKED, Overloaded, QuotaExceeded)
"""Refused for now, and certainly not done: who doesn't want to be waited for is told."""

LEAVING = (BrokerDraining, BrokerFenced)
"""Said by a broker that is about to end: any other does what it won't do any more."""

NOTHING_DONE = (*PUT_OFF, BrokerDraining, Mistake, SequenceGap)
"""After these it is certain that what was asked did not happen; after others it isn't."""

HEED_MS_MAX: Milliseconds = 1_000
"""The longest that is waited because a quota says so: by then it may be another."""

UNANSWERED = "it was sent at least once without an answer"
"""Why nobody knows what became of a request whose last try certainly did nothing."""

HOLD_MARGIN_MS_MAX: Milliseconds = 1_000
"""A server holds a blocked append until so long before its deadline, at most: time in which its
refusal arrives, so that the caller is told what stood in the way instead of nothing at all."""

_REQUESTS = (1 << 32) - 1
_DOUBLINGS_MAX = 20
_JITTER_BITS = 10


def hold_ms(left_ms: Milliseconds, timeout_ms: Milliseconds) -> Milliseconds:
    """How long a server may hold an append that is blocked, of a caller with so much time left."""
    return max(0, left_ms - min(HOLD_MARGIN_MS_MAX, timeout_ms // 2))


def heed_ms(refusal: AnabranchError) -> Milliseconds:
    """How long it asks to be left alone."""
    asked = refusal.facts.get("retry_after_ms")
    return min(asked, HEED_MS_MAX) if isinstance(asked, int) else 0


class Listener(Protocol):
    """Whoever sent a request."""

    def heard(self, message: ServerMessage | AnabranchError) -> None: ...


class Part(Protocol):
    """Whatever has business with the service that outlives one connection."""

    log: LogId | None
    """What its business is about, if it is a log."""
    line: "Line | None"
    """Where it asks, or would."""

    def ready(self) -> None:
        """There is a new connection on its line: ask, or ask again."""
        ...

    def lost(self) -> None:
        """The connection broke, and every request in it is gone."""
        ...

    def move(self, line: "Line") -> None:
        """Go on on this line, with nothing lost, doubled or out of order."""
        ...

    def close(self, error: AnabranchError) -> None:
        """There will be no other."""
        ...


class Restless(Protocol):
    log: LogId | None

    def pump(self) -> None: ...


class Placing(Protocol):
    """Who knows which line is best."""

    def place(self, log: LogId | None) -> "Line": ...

    def learn(self, told: Description | Pool) -> None:
        """What was answered says who serves a log, or who the brokers are."""
        ...


class Commons:
    """What all parts of one session share, whichever line they are on."""

    def __init__(self, settings: Settings, randbits: RandomBits, placing: Placing) -> None:
        limits = Limits()
        self.settings = settings
        self.randbits = randbits
        self.placing = placing
        self.effects: list[Effect] = []
        self.timing: list[Timing] = []
        self.alarms = Alarms(self.timing)
        self.parts: dict[int, Part] = {}
        """Those with business at hand, by key and so in the order in which they came."""
        self.restless: list[Restless] = []
        """Those that may have something to send when this step ends."""
        self.troubles: dict[int, str] = {}
        """Why each line is without a connection."""
        self.record_bytes_max = limits.record_bytes_max
        self.batch_records_max = limits.batch_records_max
        self.batch_bytes_max = limits.batch_bytes_max
        self.batch_bytes = min(settings.batch_bytes, limits.batch_bytes_max)
        self.pending_bytes = 0
        self.wants_room = False
        self.spread = False
        """Are there brokers to choose from? If not, a line that is up is the right one."""
        self._keys = 0

    @property
    def now(self) -> Nanoseconds:
        return self.alarms.now

    @property
    def trouble(self) -> str:
        return "; ".join(self.troubles.values())

    def key(self) -> int:
        """A number for whatever needs one of its own."""
        self._keys += 1
        return self._keys

    def opened(self, welcome: Welcome) -> None:
        self.record_bytes_max = welcome.record_bytes_max
        self.batch_records_max = welcome.batch_records_max
        self.batch_bytes_max = welcome.batch_bytes_max
        self.batch_bytes = min(self.settings.batch_bytes, welcome.batch_bytes_max)

    def check_record(self, size: int) -> None:
        if size > self.record_bytes_max:
            raise RecordTooLarge(size, self.record_bytes_max)

    def check_batch(self, size: int, count: int) -> None:
        if size > self.batch_bytes_max:
            raise BatchTooLarge(size, self.batch_bytes_max)
        if count > self.batch_records_max:
            raise BatchTooLarge(count, self.batch_records_max)

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


class Line:
    """To one broker. `up` from Welcome until the connection breaks."""

    def __init__(self, commons: Commons, number: int) -> None:
        self.number = number
        self.up = False
        self.leaving: str | None = None
        """Set when the broker said that it is about to end: what is on this line must go."""
        self._commons = commons
        self._listening: dict[int, Listener] = {}
        self._request = 0

    @property
    def owed(self) -> bool:
        """Is an answer expected from the server?"""
        return bool(self._listening)

    def ask(self, listener: Listener, message: ClientMessage) -> int:
        """Send, and hear whatever is answered until `unheard`."""
        request = self._request = self._request % _REQUESTS + 1
        if request in self._listening:
            request = self._next()
        self._listening[request] = listener
        self._commons.effects.append(Transmit(request, message, self.number))
        return request

    def tell(self, message: ClientMessage) -> None:
        """Send what has no answer."""
        self._commons.effects.append(Transmit(self._next(), message, self.number))

    def listener(self, request: int) -> Listener | None:
        return self._listening.get(request)

    def unheard(self, request: int) -> None:
        """What is still answered to this request is nobody's."""
        self._listening.pop(request, None)

    def cancel(self, request: int) -> None:
        """The same, and the server may spare itself the answer."""
        if self._listening.pop(request, None) and self.up:
            self.tell(Cancel(request))

    def opened(self) -> None:
        self.up = True
        self._commons.troubles.pop(self.number, None)

    def broke(self, reason: str) -> None:
        self.up = False
        self.leaving = None
        self._commons.troubles[self.number] = reason
        self._listening.clear()
        self._request = 0

    def _next(self) -> int:
        self._request = self._request % _REQUESTS + 1
        while self._request in self._listening:
            self._request = self._request % _REQUESTS + 1
        return self._request
