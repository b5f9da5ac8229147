"""What all parts of one session share, whichever line they are on."""

from collections.abc import Callable
from typing import Generic, TypeVar

from anabranch.client.session.dialect import Dialect, Greeting
from anabranch.client.session.effects import Effect, Roomy
from anabranch.client.session.parts import Part
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError, BatchTooLarge, Overloaded, RecordTooLarge
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect as Timing
from anabranch.core.records.record import Record
from anabranch.core.types import Milliseconds, Nanoseconds

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")
"""An engine's router: where its parts ask."""

RandomBits = Callable[[int], int]
"""So many random bits as a number: `secrets.randbits`, or a simulation's seeded source."""

HEED_MS_MAX: Milliseconds = 1_000
"""The longest pause that a refusal may ask for: its quota may change before that."""

RECORD_FRAMING_BYTES = 32
"""An upper bound of a record's lengths and deltas, without its headers."""

_HEADER_FRAMING_BYTES = 12
_DOUBLINGS_MAX = 20
_JITTER_BITS = 10


def heed_ms(refusal: AnabranchError) -> Milliseconds:
    """How long the server asks to be left alone."""
    asked = refusal.facts.get("retry_after_ms")
    return max(0, min(asked, HEED_MS_MAX)) if isinstance(asked, int) else 0


class Commons(Generic[Q, A, R]):
    router: R
    """Set by the engine's session, before anything is asked."""

    def __init__(self, dialect: Dialect[Q, A], settings: Settings, randbits: RandomBits) -> None:
        limits = Limits()
        self.dialect = dialect
        self.settings = settings
        self.randbits = randbits
        self.effects: list[Effect[Q]] = []
        self.timing: list[Timing] = []
        self.alarms = Alarms(self.timing)
        self.parts: dict[int, Part] = {}
        """Parts with business at hand, by key and so in the order in which they came."""
        self.troubles: dict[int, str] = {}
        """Why each line is without a connection."""
        self.refusals: dict[int, AnabranchError] = {}
        """Why each server that doesn't let us in refuses to."""
        self.retried: AnabranchError | None = None
        """The last refusal after which something is tried again."""
        self.closed = False
        """Nobody is dialed any more."""
        self.let_in = False
        """A server has welcomed this client at least once."""
        self.record_bytes_max = limits.record_bytes_max
        self.batch_records_max = limits.batch_records_max
        self.batch_bytes_max = limits.batch_bytes_max
        self.batch_bytes = min(settings.batch_bytes, limits.batch_bytes_max)
        self.pending_bytes = 0
        self.wants_room = False
        self._keys = 0

    @property
    def now(self) -> Nanoseconds:
        return self.alarms.now

    @property
    def trouble(self) -> str:
        """Why no server can be reached."""
        return "; ".join(self.troubles.values()) or "no server has answered yet"

    @property
    def rejection(self) -> AnabranchError | None:
        """The refusal of a server, if none has ever let this client in."""
        return None if self.let_in else next(iter(self.refusals.values()), None)

    def key(self) -> int:
        """A key for `parts`."""
        self._keys += 1
        return self._keys

    def opened(self, greeting: Greeting) -> None:
        self.let_in = True
        self.record_bytes_max = greeting.record_bytes_max
        self.batch_records_max = greeting.batch_records_max
        self.batch_bytes_max = greeting.batch_bytes_max
        self.batch_bytes = min(self.settings.batch_bytes, greeting.batch_bytes_max)

    def check_record(self, size: int) -> None:
        """Raise if no server takes a record of so many bytes."""
        if size > self.record_bytes_max:
            raise RecordTooLarge(size, self.record_bytes_max)

    def check_batch(self, size: int, count: int) -> None:
        """Raise if no server takes a batch of so many bytes and records."""
        if size > self.batch_bytes_max:
            raise BatchTooLarge(size, self.batch_bytes_max)
        if count > self.batch_records_max:
            raise BatchTooLarge(count, self.batch_records_max)

    def admit(self, record: Record) -> int:
        """The bytes that it takes in a batch; raises if it is too large, or too much is pending."""
        size = record.size
        if size > self.record_bytes_max:
            raise RecordTooLarge(size, self.record_bytes_max)
        size += RECORD_FRAMING_BYTES + _HEADER_FRAMING_BYTES * len(record.headers)
        if self.pending_bytes:
            self.check_room(size)
        return size

    def check_room(self, size: int) -> None:
        """Raise Overloaded if too much is pending; Roomy is reported when there is room again."""
        limit = self.settings.pending_bytes_max
        if self.pending_bytes and self.pending_bytes + size > limit:
            self.wants_room = True
            raise Overloaded("appends that are not acknowledged", limit, "pending_bytes_max")

    def released(self, size: int) -> None:
        """So many bytes of appends aren't pending any more."""
        self.pending_bytes -= size
        assert self.pending_bytes >= 0, "what is released was pending"
        if self.wants_room and self.pending_bytes <= self.settings.pending_bytes_max // 2:
            self.wants_room = False
            self.effects.append(Roomy())

    def pause(self, tries: int, most: Milliseconds | None = None) -> Milliseconds:
        """The back-off after so many failed tries: doubling up to `most`, with jitter."""
        settings = self.settings
        if most is None:
            most = settings.backoff_ms_max
        doubled = settings.backoff_ms << min(max(tries - 1, 0), _DOUBLINGS_MAX)
        half = max(1, min(doubled, most) // 2)
        return half + (half * self.randbits(_JITTER_BITS) >> _JITTER_BITS)
