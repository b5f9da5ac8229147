"""Which objects are planned next, and which later although nothing was seen to change."""

import heapq
from collections import deque
from collections.abc import Iterator

from anabranch_operator.api.anabranch_names import Nanoseconds, SetTimer
from anabranch_operator.plan.engine.objects import Ref

WAKE = "wake"
"""The timer of all wake-ups."""


class PlanQueue:
    """First come, first served; an object is in it at most once, however often it is pushed."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Ref, Nanoseconds]] = deque()
        self._queued: dict[Ref, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest_at(self) -> Nanoseconds | None:
        """When the object that has waited longest was pushed."""
        return self._waiting[0][1] if self._waiting else None

    def push(self, ref: Ref, now: Nanoseconds) -> None:
        if ref not in self._queued:
            self._queued[ref] = None
            self._waiting.append((ref, now))

    def pop(self) -> Ref:
        ref, _ = self._waiting.popleft()
        del self._queued[ref]
        return ref

    def clear(self) -> None:
        self._waiting.clear()
        self._queued.clear()


class Wakeups:
    """One time for each object, and one timer for all of them."""

    def __init__(self) -> None:
        self._at: dict[Ref, Nanoseconds] = {}
        self._heap: list[tuple[Nanoseconds, Ref]] = []
        """Also times that were replaced since: they are skipped when they come up."""
        self._timer_at: Nanoseconds | None = None

    def set(self, ref: Ref, at: Nanoseconds) -> None:
        if self._at.get(ref) != at:
            self._at[ref] = at
            heapq.heappush(self._heap, (at, ref))

    def forget(self, ref: Ref) -> None:
        self._at.pop(ref, None)

    def clear(self) -> None:
        self._at.clear()
        self._heap.clear()

    def due(self, now: Nanoseconds) -> Iterator[Ref]:
        """The timer has fired: take out the objects whose time has come."""
        self._timer_at = None
        while self._heap and self._heap[0][0] <= now:
            at, ref = heapq.heappop(self._heap)
            if self._at.get(ref) == at:
                del self._at[ref]
                yield ref

    def timer(self) -> Iterator[SetTimer]:
        """Set the timer to the earliest time, unless it is set to that already."""
        if self._heap and self._heap[0][0] != self._timer_at:
            self._timer_at = self._heap[0][0]
            yield SetTimer(WAKE, self._timer_at)
