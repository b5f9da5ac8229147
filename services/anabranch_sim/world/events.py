"""Time and chance of one simulation: a virtual clock, one seeded randomness, a heap of events."""

import re
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from anabranch.core.types import MS, Nanoseconds

Action = Callable[[], None]
SECOND = 1_000 * MS

_PROMPT, _LATE = 0, 1

_VIEW = re.compile(r"<memory at 0x[0-9a-f]+>")
"""How Python shows a view of bytes: by an address that is another in every run."""


class World:
    """What happens, happens here, one thing at a time. The same seed gives the same trace."""

    def __init__(self, seed: int, *, tell: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.now: Nanoseconds = 0
        self.events = 0
        self._heap: list[tuple[Nanoseconds, int, int, Action]] = []
        self._serial = 0
        self._stamp = 0
        self._tell = tell
        self.tracing = tell is not None

    # A run calls the next three tens of thousands of times, so none of them calls another.

    def at(self, time: Nanoseconds, action: Action) -> None:
        """Do this then, after all that was to be done then already."""
        self._serial += 1
        heappush(self._heap, (max(time, self.now), _PROMPT, self._serial, action))

    def after(self, delay: Nanoseconds, action: Action) -> None:
        self._serial += 1
        heappush(self._heap, (self.now + max(delay, 0), _PROMPT, self._serial, action))

    def late(self, time: Nanoseconds, action: Action) -> None:
        """Do this when nothing else is left to do at that instant: how timers fire."""
        self._serial += 1
        heappush(self._heap, (max(time, self.now), _LATE, self._serial, action))

    def stamp(self) -> int:
        """The time, made to differ from every earlier one: what histories are told in."""
        self._stamp = max(self._stamp + 1, self.now)
        return self._stamp

    def chance(self, probability: float) -> bool:
        """No randomness is used up by what can't happen, nor by what must."""
        return probability > 0 and (probability >= 1 or self.rng.random() < probability)

    def between(self, low: int, high: int) -> int:
        return low if low >= high else low + int(self.rng.random() * (high - low + 1))

    def note(self, *words: object) -> None:
        """One line of the trace; callers that must build the words ask `tracing` first."""
        if self._tell is not None:
            text = _VIEW.sub("<bytes>", " ".join(map(str, words)))
            self._tell(f"{self.now / MS:12.3f} {text}")

    def run(self, until: Nanoseconds, done: Callable[[], bool] | None = None) -> bool:
        """Let time pass up to then, or until all is done; says whether it is."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, _, action = heappop(heap)
            self.events += 1
            action()
            if done is not None and done():
                return True
        self.now = max(self.now, until)
        return done is None or done()

    def wait(self, done: Callable[[], bool], longest: Nanoseconds, look: Nanoseconds) -> bool:
        """Let time pass until it is done, or too late; it is looked at now and then."""
        latest = self.now + longest
        while not done():
            if self.now >= latest:
                return False
            self.run(self.now + look)
        return True
