"""How fast appends come: says how long a ring lasts while its log is away."""

from collections import deque

from anabranch.core.alarms import Alarms
from anabranch.core.types import MS, Milliseconds, Nanoseconds

SAMPLE_MS: Milliseconds = 1_000
SAMPLES = 10


class Pace:
    """Bytes of appends over the last seconds."""

    def __init__(self, alarms: Alarms) -> None:
        self._alarms = alarms
        self._bytes = 0
        self._samples: deque[tuple[Nanoseconds, int]] = deque(maxlen=SAMPLES + 1)

    def start(self) -> None:
        self._samples.append((self._alarms.now, self._bytes))
        self._alarms.after(SAMPLE_MS, self.start)

    def note(self, size: int) -> None:
        """An append came."""
        assert size >= 0
        self._bytes += size

    @property
    def bytes_per_s(self) -> int:
        if not self._samples:
            return 0
        since, before = self._samples[0]
        elapsed = self._alarms.now - since
        return (self._bytes - before) * 1_000 * MS // elapsed if elapsed > 0 else 0

    def lasts_ms(self, room: int) -> Milliseconds:
        """Until so many bytes have come at this rate; -1: never."""
        assert room >= 0
        rate = self.bytes_per_s
        return room * 1_000 // rate if rate else -1
