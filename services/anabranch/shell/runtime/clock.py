"""The time that machines are told: the wall clock, made to run on at an even pace."""

import time
from collections.abc import Callable
from threading import Lock

from anabranch.core.types import Nanoseconds

_LOOK_NS = 1_000_000_000
_SLEW_PPM_MAX = 5_000


class Clock:
    """Never goes back and never jumps, whatever is done to the wall clock meanwhile (duty 4 of a
    driver).

    A step of the wall clock is followed at half a percent of the pace: timers and leases stay true
    to within that, and a stamp is wrong by the step only for as long as the step takes to follow.
    Any thread may look at it.
    """

    def __init__(
        self,
        *,
        steady: Callable[[], Nanoseconds] = time.monotonic_ns,
        wall: Callable[[], Nanoseconds] = time.time_ns,
    ) -> None:
        self._steady, self._wall = steady, wall
        self._since = steady()
        self._base = wall()
        self._slew_ppm = 0
        self._lock = Lock()

    def now(self) -> Nanoseconds:
        with self._lock:
            ran = self._steady() - self._since
            if ran >= _LOOK_NS:
                self._look(ran)
                ran = 0
            return self._base + ran + ran * self._slew_ppm // 1_000_000

    def _look(self, ran: Nanoseconds) -> None:
        self._base += ran + ran * self._slew_ppm // 1_000_000
        self._since += ran
        behind_ppm = (self._wall() - self._base) * 1_000_000 // _LOOK_NS
        self._slew_ppm = max(-_SLEW_PPM_MAX, min(_SLEW_PPM_MAX, behind_ppm))
