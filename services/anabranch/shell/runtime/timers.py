"""The timers of all machines of a process: which are due, and when the next one is."""

from heapq import heapify, heappop, heappush

from anabranch.core.types import Nanoseconds

Name = tuple[str, str]
"""The node that set it, and its key there."""


class Timers:
    """Those due come out in order of time, then of being set; a moved one counts as set anew."""

    def __init__(self) -> None:
        self._heap: list[tuple[Nanoseconds, int, Name]] = []
        self._serials: dict[Name, int] = {}
        self._serial = 0

    def set(self, name: Name, at: Nanoseconds) -> None:
        self._serial += 1
        self._serials[name] = self._serial
        heappush(self._heap, (at, self._serial, name))
        # Moved and cancelled timers leave their old place behind: never more than the live ones.
        if len(self._heap) > 2 * len(self._serials) + 64:
            self._heap = [each for each in self._heap if self._serials.get(each[2]) == each[1]]
            heapify(self._heap)

    def cancel(self, name: Name) -> None:
        self._serials.pop(name, None)

    def next(self) -> Nanoseconds | None:
        heap = self._heap
        while heap and self._serials.get(heap[0][2]) != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now: Nanoseconds) -> Name | None:
        """Take the first timer whose time has come."""
        at = self.next()
        if at is None or at > now:
            return None
        name = heappop(self._heap)[2]
        del self._serials[name]
        return name
