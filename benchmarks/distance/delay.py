"""Actions put off by a fixed time: for benchmarks of what distance costs, on one machine."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from benchmarks.distance.kernel_timer import KernelTimer

_SLACK_NS: Final = 20_000
"""Actions that are due so soon are taken with those that are due: a timer costs more."""


class Delay:
    """Runs actions in their order, each `delay_us` after it came. Event loops count in
    milliseconds, so the kernel keeps the time.

    All connections of one client or node share one delay: messages that leave together, for several
    nodes, wait for one timer.
    """

    def __init__(self, delay_us: int) -> None:
        assert delay_us >= 0
        self._delay_ns = delay_us * 1_000
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._timer: KernelTimer | None = None
        self._armed = False

    def __bool__(self) -> bool:
        return self._delay_ns > 0

    def after(self, action: Callable[[], None]) -> None:
        if not self._delay_ns:
            action()
            return
        self._waiting.append((monotonic_ns() + self._delay_ns, action))
        if not self._armed:
            self._arm(self._delay_ns)

    def stop(self) -> None:
        """Drop the actions that wait."""
        self._waiting.clear()
        self._armed = False
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def _arm(self, wait_ns: int) -> None:
        if self._timer is None:
            self._timer = KernelTimer(asyncio.get_running_loop(), self._ring)
        self._armed = True
        self._timer.set(wait_ns)

    def _ring(self) -> None:
        waiting = self._waiting
        due = monotonic_ns() + _SLACK_NS
        # Actions that come from here on have a later turn, so the loop isn't held up.
        while waiting and waiting[0][0] <= due:
            _, action = waiting.popleft()
            action()
        self._armed = False
        if waiting:
            self._arm(max(1, waiting[0][0] - monotonic_ns()))
