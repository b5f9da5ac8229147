"""A way that takes longer than it does: for benchmarks of what distance costs, on one machine."""

import asyncio
from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Final

_SLACK_S: Final = 0.0005
"""The loop counts in ms: what is due in less than half of one is due."""


class Delay:
    """What is to be done later is done in its order; what comes in one turn costs one timer."""

    def __init__(self, delay_us: int) -> None:
        assert delay_us >= 0
        self._delay_s = delay_us / 1e6
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()
        self._alarm: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        return self._delay_s > 0

    def after(self, action: Callable[[], None]) -> None:
        if not self._delay_s:
            action()
            return
        self._waiting.append((asyncio.get_running_loop().time() + self._delay_s, action))
        if self._alarm is None:
            self._set(self._delay_s)

    def stop(self) -> None:
        """What waits is dropped."""
        self._waiting.clear()
        if self._alarm is not None:
            self._alarm.cancel()

    def _set(self, wait_s: float) -> None:
        wait_ms = max(1, ceil((wait_s - _SLACK_S) * 1_000))
        self._alarm = asyncio.get_running_loop().call_later(wait_ms / 1_000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = asyncio.get_running_loop().time()
        waiting = self._waiting
        while waiting and waiting[0][0] <= now + _SLACK_S:
            _, action = waiting.popleft()
            action()
        if waiting and self._alarm is None:
            self._set(waiting[0][0] - now)
