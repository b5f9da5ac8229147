"""The time that machines are told: wall time when the process began, and monotonic from then on."""

import time

from anabranch.core.types import Nanoseconds


class Clock:
    """Never goes back, whatever is done to the wall clock meanwhile (duty 4 of a driver)."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> Nanoseconds:
        return self._offset + time.monotonic_ns()
