"""A machine's sense of time: what the clock says, and what is to be done when it says more."""

import heapq
from collections.abc import Callable

from anabranch.core.machine import Effect, SetTimer
from anabranch.core.types import MS, NEVER, Milliseconds, Nanoseconds

_SWEEP_FROM = 1_024
"""Fewer cancelled alarms than this aren't worth sweeping out."""


class Alarm:
    """Something to do later; cancelling it is cheap, however many there are."""

    __slots__ = ("_owner", "action")

    def __init__(self, owner: "Alarms", action: Callable[[], None]) -> None:
        self._owner = owner
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        if self.action is not None:
            self.action = None
            self._owner.cancelled()


class Alarms:
    """All alarms of one machine behind one timer of its driver."""

    KEY = "alarms"

    def __init__(self, effects: list[Effect]) -> None:
        self.now: Nanoseconds = 0
        self._effects = effects
        self._heap: list[tuple[Nanoseconds, int, Alarm]] = []
        self._serial = 0
        self._dead = 0
        self._timer_at: Nanoseconds = NEVER

    @property
    def overdue(self) -> Nanoseconds:
        """How late the driver's timer is: so long at least this machine itself didn't run."""
        return max(0, self.now - self._timer_at)

    def after(self, delay_ms: Milliseconds, action: Callable[[], None]) -> Alarm:
        """Ring once, when so much time has passed."""
        assert delay_ms >= 0, "it is too late already"
        return self.at(self.now + delay_ms * MS, action)

    def at(self, time_ns: Nanoseconds, action: Callable[[], None]) -> Alarm:
        """Ring once, at this time or after it; alarms of one instant ring as they were set."""
        alarm = Alarm(self, action)
        self._serial += 1
        heapq.heappush(self._heap, (time_ns, self._serial, alarm))
        self._set_timer()
        return alarm

    def ring(self) -> None:
        """The driver's timer has fired."""
        self._timer_at = NEVER
        heap = self._heap
        while heap and heap[0][0] <= self.now:
            alarm = heapq.heappop(heap)[2]
            action, alarm.action = alarm.action, None
            if action is None:
                self._dead -= 1
                assert self._dead >= 0, "more alarms were cancelled than set"
            else:
                action()
        self._set_timer()

    def cancelled(self) -> None:
        """Called by an alarm: sweeps once the dead outnumber the living."""
        self._dead += 1
        if self._dead > _SWEEP_FROM and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)
            self._dead = 0

    def _set_timer(self) -> None:
        if self._heap and self._heap[0][0] < self._timer_at:
            self._timer_at = self._heap[0][0]
            self._effects.append(SetTimer(self.KEY, self._timer_at))
